//! Posting: handing work requests to a queue pair's two queues (man 3 ibv_post_send, ibv_post_recv).
//!
//! A post returns before anything is sent. Until the completion the device reads or writes the request's memory, which the
//! ledger of the queue keeps.

use std::ops::Range;

use rdma_sys::{ibv_post_recv, ibv_post_send, ibv_send_wr, ibv_sge};
use smallvec::SmallVec;

use crate::error::{positive_errno, Error, Kind, Result};
use crate::mr::MemoryRegion;
use crate::qp::QueuePair;
use crate::sge::{recv_wr, sges, show_sges, total_len, Piece, Sges};
use crate::wr::SendWr;
use crate::wr_id::{next_wr_id, next_wr_ids};
use crate::{data, fast, info};

/// Lists of up to this many requests are posted without an allocation.
const LIST: usize = 16;

impl QueuePair {
    /// `ibv_post_recv`: lends `range` of the region, in bytes from its start, to the device for one incoming SEND. Post before the peer sends, or
    /// the device answers "receiver not ready". Returns the request's number.
    ///
    /// # Errors
    /// `Error::Call`: ENOMEM if the queue is full, EINVAL in RESET. `Kind::OutOfRange` for a range outside the region,
    /// `Kind::Misuse` if the QP has an SRQ.
    #[track_caller]
    pub fn post_recv(&self, region: &MemoryRegion, range: Range<usize>) -> Result<u64> {
        self.post_recv_pieces(&[(region, range)])
    }

    /// The same with several pieces, which one SEND fills one after the other; or with none, for a WRITE with immediate.
    ///
    /// # Errors
    /// As [`post_recv`](Self::post_recv); also `Kind::Misuse` for more than `max_recv_sge` pieces.
    #[track_caller]
    pub fn post_recv_pieces(&self, pieces: &[Piece]) -> Result<u64> {
        if self.srq.is_some() {
            return Err(Error::of(Kind::Misuse, "this QP receives from an SRQ", "Post the receive to the SRQ"));
        }
        let mut sges = sges(pieces, self.cap.max_recv_sge)?;
        let wr_id = next_wr_id();
        fast!("ibv_post_recv wr_id={wr_id} len={}", total_len(&sges));
        show_sges(&sges);
        self.received.add(wr_id, pieces.iter().map(|(region, _)| region.keep()).collect());
        let (mut wr, mut bad) = (recv_wr(wr_id, &mut sges), std::ptr::null_mut());
        // SAFETY: the QP is alive. The request and its SGEs live across the call, which copies them; the ledger keeps the
        // memory until the completion is polled or the QP is gone.
        let result = unsafe { ibv_post_recv(self.raw, &mut wr, &mut bad) };
        positive_errno("ibv_post_recv", result).map(|()| wr_id).map_err(|error| {
            // Refused, and forgotten: the device holds no such receive.
            self.received.complete(wr_id);
            error
        })
    }

    /// `ibv_post_send`: hands a request to the device, and returns before anything is sent. Leave the region alone until
    /// the completion. Returns the request's number.
    ///
    /// # Errors
    /// `Error::Call`: ENOMEM if the queue is full, EINVAL before RTS (mlx5: ENOMEM). `Kind::OutOfRange` for a range
    /// outside its region, `Kind::Misuse` for what the operation or the QP cannot carry. Nothing is posted then.
    #[track_caller]
    pub fn post_send(&self, request: &SendWr) -> Result<u64> {
        let mut sges = self.sges(request)?;
        let mut wr = self.show(next_wr_id(), request, &mut sges);
        let mut bad = std::ptr::null_mut();
        // SAFETY: the QP is alive. The request and its SGEs live across the call, which copies them; from then on the ledger
        // keeps the memory until a completion says that the request is done, or the QP is reset or gone. It keeps nothing of a
        // request that is refused: rdma_rxe (Linux 6.1) has that in its queue all the same, and tries to send it later; but
        // its key opens nothing any more once the region is dropped.
        positive_errno("ibv_post_send", unsafe { ibv_post_send(self.raw, &mut wr, &mut bad) })?;
        // By now the request is on its way.
        self.note(wr.wr_id, request);
        Ok(wr.wr_id)
    }

    /// `ibv_post_send` with a list: one call for all requests. If the device refuses one, those before it are under way:
    /// so this returns the numbers of those that are, and what stopped the next.
    #[track_caller]
    pub fn post_send_all(&self, requests: &[SendWr]) -> (Range<u64>, Result<()>) {
        let sges = requests.iter().map(|request| self.sges(request));
        let mut sges: SmallVec<[_; LIST]> = match sges.collect::<Result<_>>() {
            Ok(sges) => sges,
            Err(error) => return (0..0, Err(error)),
        };
        let wr_ids = next_wr_ids(requests.len());
        let mut wrs: SmallVec<[_; LIST]> = SmallVec::new();
        for ((wr_id, request), sges) in wr_ids.clone().zip(requests).zip(&mut sges) {
            wrs.push(self.show(wr_id, request, sges));
        }
        let mut next = std::ptr::null_mut();
        for wr in wrs.iter_mut().rev() {
            wr.next = next;
            next = wr;
        }
        if next.is_null() {
            return (wr_ids, Ok(()));
        }
        let mut bad = std::ptr::null_mut();
        // SAFETY: as in post_send; `next` is the first of the list, all of which lives across the call.
        let result = positive_errno("ibv_post_send", unsafe { ibv_post_send(self.raw, next, &mut bad) });
        let count = match result {
            Ok(()) => wrs.len(),
            Err(_) => wrs.iter().position(|wr| std::ptr::eq(wr, bad)).unwrap_or(0),
        };
        let taken = wr_ids.start..wr_ids.start + count as u64;
        taken.clone().zip(requests).for_each(|(wr_id, request)| self.note(wr_id, request));
        (taken, result)
    }

    /// The request's scatter/gather elements, if this QP can carry it.
    fn sges(&self, request: &SendWr) -> Result<Sges> {
        request.fits(self.qp_type, self.send_cq.context())?;
        request.sges(self.cap.max_send_sge, self.cap.max_inline_data)
    }

    /// Shows the request and its number, in C's form.
    #[track_caller]
    fn show(&self, wr_id: u64, request: &SendWr, sges: &mut [ibv_sge]) -> ibv_send_wr {
        data!("ibv_post_send {} wr_id={wr_id} len={}", request.name(), total_len(sges));
        show_sges(sges);
        info!("WR: {}", request.dump(wr_id, sges.len()));
        request.to_c(wr_id, sges)
    }

    /// Notes the memory of a request that was posted.
    fn note(&self, wr_id: u64, request: &SendWr) {
        let signaled = request.is_signaled() || self.sq_sig_all;
        self.sent.add(wr_id, signaled, request.memory(), request.handle());
    }
}

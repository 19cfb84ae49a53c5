//! From the rings that a program fills to the work requests of the core.
//!
//! A request is drawn when the program rings the doorbell, a receive when something happens to its queue pair. Its slot is free
//! again when the core is done with it.

use super::clock::Clock;
use super::table::Table;
use super::{AddressHandle, QpEntry, Srq};
use crate::abi::{Atomic, BindMw, Dma, Flush, Rdma, RecvWqe, RxeSge, SendWqe, Ud};
use crate::ring::Ring;
use bytemuck::Zeroable;
use nic::fact::Fact;
use nic::memory::{Access, Bind, Sge};
use nic::outside::Ctx;
use nic::packet::Feth;
use nic::qp::{Service, Settings, State};
use nic::time::Time;
use nic::work::{Destination, Local, ReceiveRequest, Remote, SendRequest, Work};
use std::mem::size_of;
use std::time::Duration;

/// The bits of `ibv_send_flags`.
const FENCE: u32 = 1;
const SIGNALED: u32 = 2;
const SOLICITED: u32 = 4;
const INLINE: u32 = 8;
/// Of `ibv_wr_opcode`.
const ATOMIC_WRITE: u32 = 15;

/// How often we look for receives that a program has posted in ERR: no doorbell tells of them.
const LATE_RECEIVES: Duration = Duration::from_millis(5);

impl QpEntry {
    /// Takes over the sends that the program has posted.
    pub fn draw_sends(&mut self, handles: &Table<AddressHandle>, ctx: &mut Ctx) {
        let end = self.sends.producer();
        while let Some(index) = self.sends.draw(end) {
            let request = send_request(&self.sends, index, self.qp.settings(), handles);
            if request.map_or(true, |request| self.qp.post_send(request, ctx).is_err()) {
                self.qp.refuse(self.sends.read::<SendWqe>(index, 0).wr_id, ctx);
            }
        }
    }

    /// Takes over the receives that the program has posted.
    pub fn draw_receives(&mut self, ctx: &mut Ctx) {
        let Some(ring) = self.receives.as_mut().filter(|_| self.qp.state() != State::Reset) else { return };
        let end = ring.producer();
        while let Some(index) = ring.draw(end) {
            let request = receive_request(ring, index);
            let (Settings { number, pd, .. }, length) = (self.qp.settings(), request.room());
            // Nobody is told yet: the completion of the message will say it.
            let refusal = ctx.memory.check_room(*pd, &request.sge).err();
            ctx.say(|| {
                let posted = Fact::new("posted").with("qp", number).with("wr_id", request.wr_id).with("len", length);
                refusal.iter().fold(posted, |posted, refusal| posted.refused(refusal))
            });
            let _ = self.qp.post_receive(request, ctx);
        }
    }

    /// Gives the program back the slots that the core is done with.
    pub fn release(&self) {
        let (sends, receives) = self.qp.waiting();
        self.sends.release(sends as u32);
        if let Some(ring) = &self.receives {
            ring.release(receives as u32);
        }
    }

    /// Forgets all that was posted.
    pub fn clear(&mut self) {
        self.sends.clear();
        self.receives.iter_mut().for_each(Ring::clear);
    }

    /// When to look at it again.
    pub fn next_look(&self, clock: Clock) -> Option<Time> {
        match self.qp.is_busy() {
            true => Some(clock.now()),
            // While time stands still it is looked at before it goes on.
            false if self.awaits_receives() && clock.is_real() => Some(clock.now() + LATE_RECEIVES),
            false => self.qp.deadline(),
        }
    }

    /// Whether a program may post receives, and nobody tells us.
    pub fn awaits_receives(&self) -> bool {
        self.qp.state() == State::Err && self.receives.is_some()
    }
}

impl Srq {
    pub fn draw(&mut self) {
        let end = self.ring.producer();
        while let Some(index) = self.ring.draw(end) {
            self.queue.post(receive_request(&self.ring, index));
        }
    }

    pub fn release(&self) {
        self.ring.release(self.queue.len() as u32);
    }

    /// From now on the program posts to another ring. The receives that wait move there: they are drawn already.
    pub fn move_to(&mut self, mut ring: Ring) {
        self.release();
        ring.take_over(&self.ring);
        let end = ring.producer();
        for _ in 0..self.queue.len() {
            let _ = ring.draw(end);
        }
        self.queue.resize(ring.capacity() as usize);
        self.ring = ring;
    }
}

fn receive_request(ring: &Ring, index: u32) -> ReceiveRequest {
    let wqe: RecvWqe = ring.read(index, 0);
    ReceiveRequest { wr_id: wqe.wr_id, sge: pieces(ring, index, size_of::<RecvWqe>(), wqe.dma) }
}

/// What a send slot holds; None if there is no such request.
fn send_request(ring: &Ring, index: u32, qp: &Settings, handles: &Table<AddressHandle>) -> Option<SendRequest> {
    let wqe: SendWqe = ring.read(index, 0);
    let has = |flag| wqe.send_flags & flag != 0;
    let (local, length) = if wqe.opcode == ATOMIC_WRITE || has(INLINE) {
        let bytes = ring.bytes(index, size_of::<SendWqe>(), wqe.dma.length.min(ring.slot_bytes()) as usize);
        let length = bytes.len() as u64;
        (Local::Inline(bytes), length)
    } else {
        // The provider's own sum is wrong after ibv_wr_set_sge_list(3) (rdma-core 44).
        let sge = pieces(ring, index, size_of::<SendWqe>(), wqe.dma);
        let length = sge.iter().map(|sge| u64::from(sge.length)).sum();
        (Local::SgList(sge), length)
    };
    let (work, has_immediate) = match qp.service {
        Service::Ud => datagram(&wqe, qp.pd, handles)?,
        _ => work(&wqe)?,
    };
    let (local, length) = match work {
        Work::Flush { .. } => (Local::SgList(vec![]), part::<Flush>(&wqe).length.into()),
        work if work.is_local() => (Local::SgList(vec![]), 0),
        _ => (local, length),
    };
    Some(SendRequest {
        wr_id: wqe.wr_id,
        work,
        local,
        length: u32::try_from(length).unwrap_or(u32::MAX),
        immediate: has_immediate.then(|| u32::from_be(wqe.ex)),
        signaled: has(SIGNALED),
        solicited: has(SOLICITED),
        fence: has(FENCE),
    })
}

/// What to do, and whether immediate data goes with it: by the numbers of `ibv_wr_opcode`.
fn work(wqe: &SendWqe) -> Option<(Work, bool)> {
    let rdma: Rdma = part(wqe);
    let remote = Remote { address: rdma.remote_addr, rkey: rdma.rkey };
    let atomic: Atomic = part(wqe);
    let cell = Remote { address: atomic.remote_addr, rkey: atomic.rkey };
    Some(match wqe.opcode {
        0 => (Work::Write(remote), false),
        1 => (Work::Write(remote), true),
        2 => (Work::Send, false),
        3 => (Work::Send, true),
        4 => (Work::Read(remote), false),
        5 => (Work::CompareSwap { remote: cell, compare: atomic.compare_add, swap: atomic.swap }, false),
        6 => (Work::FetchAdd { remote: cell, add: atomic.compare_add }, false),
        7 => (Work::LocalInvalidate(wqe.ex), false),
        8 => (Work::Bind(bind(wqe)), false),
        9 => (Work::SendInvalidate(wqe.ex), false),
        14 => {
            let Flush { remote_addr, rkey, kind, level, .. } = part(wqe);
            (
                Work::Flush { remote: Remote { address: remote_addr, rkey }, feth: Feth { placement: kind, level } },
                false,
            )
        }
        ATOMIC_WRITE => (Work::AtomicWrite(remote), false),
        _ => return None,
    })
}

fn bind(wqe: &SendWqe) -> Bind {
    let BindMw { addr: address, length, mr_lkey: region, mw_rkey: window, rkey, access } = part(wqe);
    Bind { window, next: rkey as u8, region, address, length, access: Access(access) }
}

/// The same for a datagram: its address handle must be of the queue pair's domain.
fn datagram(wqe: &SendWqe, pd: u32, handles: &Table<AddressHandle>) -> Option<(Work, bool)> {
    let Ud { remote_qpn, remote_qkey, ah_num, .. } = part(wqe);
    let AddressHandle { address, class, .. } = *handles.any(ah_num).filter(|handle| handle.pd == pd)?;
    let to = Destination { address, class, qp: remote_qpn & 0xff_ffff, qkey: remote_qkey };
    match wqe.opcode {
        2 => Some((Work::Datagram(to), false)),
        3 => Some((Work::Datagram(to), true)),
        _ => None,
    }
}

/// The part of a request that its opcode calls for.
fn part<T: bytemuck::AnyBitPattern + Zeroable>(wqe: &SendWqe) -> T {
    bytemuck::pod_read_unaligned(&bytemuck::bytes_of(&wqe.wr)[..size_of::<T>()])
}

/// The pieces of memory behind a request: as many as the slot can hold.
fn pieces(ring: &Ring, index: u32, at: usize, dma: Dma) -> Vec<Sge> {
    let most = (ring.slot_bytes() as usize - at) / size_of::<RxeSge>();
    let count = (dma.num_sge as usize).min(most);
    let piece = |n| {
        let RxeSge { addr, length, lkey } = ring.read(index, at + n * size_of::<RxeSge>());
        Sge { address: addr, length, lkey }
    };
    (0..count).map(piece).collect()
}

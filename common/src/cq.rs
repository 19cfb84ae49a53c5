//! `ibv_cq`, the completion queue: where the device reports work requests that are done (man 3 ibv_create_cq,
//! ibv_poll_cq, ibv_req_notify_cq).
//!
//! Hidden: a table of the memory that posted work requests use. An entry goes in with the post, and comes out when its
//! completion is polled or its QP is gone; until then the memory stays registered and allocated, whoever drops it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use rdma_sys::{ibv_cq, ibv_create_cq, ibv_destroy_cq, ibv_poll_cq, ibv_req_notify_cq, ibv_wc};

use crate::comp_channel::CompletionChannel;
use crate::context::Context;
use crate::deadline::Deadline;
use crate::error::{null, positive_errno, Error, Result};
use crate::mr;
use crate::wc::WorkCompletion;
use crate::{data, fast, info, narrate, slow};

/// How many completions one `ibv_poll_cq` may return.
const BATCH: usize = 16;

/// Between two polls of an empty CQ. A program in a hurry would not pause at all; this one leaves the processor to others.
const PAUSE: Duration = Duration::from_micros(100);

/// A completion queue.
pub struct CompletionQueue(Rc<Inner>);

struct Inner {
    raw: *mut ibv_cq,
    context: Context,
    _channel: Option<CompletionChannel>,
    /// By wr_id: the QP that it was posted to, and the memory that it keeps alive.
    in_flight: RefCell<HashMap<u64, (u32, Rc<mr::Inner>)>>,
    /// Polled while waiting for another one.
    polled: RefCell<Vec<WorkCompletion>>,
}

impl CompletionQueue {
    /// `ibv_create_cq`: room for at least `cqe` completions, reporting to `channel`. Its completion vector (which
    /// interrupt reports) is 0, the first.
    pub fn create(channel: &CompletionChannel, cqe: i32) -> Result<Self> {
        Self::create_on(channel.context(), Some(channel), cqe)
    }

    /// Without a channel there is nothing to sleep on; called by [`Context::create_cq`].
    pub(crate) fn create_on(context: &Context, channel: Option<&CompletionChannel>, cqe: i32) -> Result<Self> {
        slow!("ibv_create_cq cqe={cqe}");
        let reports_to = channel.map_or(std::ptr::null_mut(), CompletionChannel::raw);
        // SAFETY: device and channel are open, and kept so; the channel is of this device.
        let raw = unsafe { ibv_create_cq(context.raw(), cqe, std::ptr::null_mut(), reports_to, 0) };
        let raw = null("ibv_create_cq", raw)?;
        let (context, _channel) = (context.share(), channel.map(CompletionChannel::share));
        let (in_flight, polled) = Default::default();
        let inner = Rc::new(Inner { raw, context, _channel, in_flight, polled });
        // SAFETY: the CQ is alive and ours. Inner is not moved or freed before it has destroyed the CQ.
        unsafe { (*raw).cq_context = Rc::as_ptr(&inner).cast_mut().cast() };
        Ok(Self(inner))
    }

    /// The owner of a CQ that a channel names.
    ///
    /// # Safety
    /// The CQ must have been made here, and must not be destroyed.
    pub(crate) unsafe fn from_raw(raw: *mut ibv_cq) -> Self {
        // SAFETY: `create_on` stored this pointer. Inner destroys the CQ when it is dropped, and the CQ is not destroyed:
        // so Inner lives, and its count may be raised for the new handle.
        unsafe {
            let inner = (*raw).cq_context.cast_const().cast::<Inner>();
            Rc::increment_strong_count(inner);
            Self(Rc::from_raw(inner))
        }
    }

    /// `ibv_req_notify_cq`: arms the CQ: the *next* completion puts one event into the channel. Completions that are
    /// already there do not, so poll once more after arming, before you sleep.
    pub fn req_notify(&self) -> Result<()> {
        fast!("ibv_req_notify_cq");
        // SAFETY: the CQ is alive. 0: any completion counts, not only solicited ones.
        positive_errno("ibv_req_notify_cq", unsafe { ibv_req_notify_cq(self.raw(), 0) })
    }

    /// `ibv_poll_cq`: all completions that are there, perhaps none, oldest first. Never waits.
    pub fn poll(&self) -> Result<Vec<WorkCompletion>> {
        let mut done = self.0.polled.take();
        loop {
            // SAFETY: ibv_wc is plain integers, for which zero is a value.
            let mut batch: [ibv_wc; BATCH] = unsafe { std::mem::zeroed() };
            // SAFETY: the CQ is alive, and `batch` has room for BATCH completions.
            let count = unsafe { ibv_poll_cq(self.raw(), BATCH as i32, batch.as_mut_ptr()) };
            // Negative if it fails, and no errno: ibv_poll_cq(3) gives no cause.
            let count = usize::try_from(count).map_err(|_| Error::Call { call: "ibv_poll_cq", errno: libc::EIO })?;
            for wc in &batch[..count] {
                let wc = WorkCompletion::new(wc);
                info!("WC: {wc}");
                // The device is done with this request's memory.
                self.0.in_flight.borrow_mut().remove(&wc.wr_id);
                done.push(wc);
            }
            if count < BATCH {
                return Ok(done);
            }
        }
    }

    /// Polls until work request `wr_id` is done. Completions of others are kept for later; but an error among them, the
    /// cause of what follows, is returned at once. `awaited` is for the error if the deadline passes.
    pub fn wait_for(&self, wr_id: u64, awaited: &str) -> Result<WorkCompletion> {
        data!("ibv_poll_cq until wr_id={wr_id}, {awaited}");
        let deadline = Deadline::answer(format!("the completion of work request {wr_id} ({awaited})"));
        loop {
            let mut done = self.poll()?;
            if let Some(error) = done.iter().find(|wc| !wc.is_success() && !wc.is_flush()) {
                return Err(error.to_error());
            }
            if let Some(position) = done.iter().position(|wc| wc.wr_id == wr_id) {
                let wc = done.remove(position);
                self.0.polled.replace(done);
                return wc.into_success();
            }
            self.0.polled.replace(done);
            deadline.left()?;
            std::thread::sleep(PAUSE);
        }
    }

    pub(crate) fn raw(&self) -> *mut ibv_cq {
        self.0.raw
    }

    pub(crate) fn context(&self) -> &Context {
        &self.0.context
    }

    /// Another handle on the same queue, for its QPs.
    pub(crate) fn share(&self) -> Self {
        Self(Rc::clone(&self.0))
    }

    /// From the post of `wr_id` to its completion, `memory` must stay.
    pub(crate) fn keep(&self, wr_id: u64, qp_num: u32, memory: Rc<mr::Inner>) {
        self.0.in_flight.borrow_mut().insert(wr_id, (qp_num, memory));
    }

    /// The QP is gone: so is the need for the memory of its unfinished requests.
    pub(crate) fn release_all(&self, qp_num: u32) {
        self.0.in_flight.borrow_mut().retain(|_, (posted_to, _)| *posted_to != qp_num);
    }
}

/// Two handles are equal if they are on the same queue.
impl PartialEq for CompletionQueue {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for CompletionQueue {}

impl fmt::Debug for CompletionQueue {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "CompletionQueue({:p})", self.raw())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        slow!("ibv_destroy_cq");
        // SAFETY: from ibv_create_cq; every QP on it shares Inner, so none is left, and every event is acked.
        if let Err(error) = positive_errno("ibv_destroy_cq", unsafe { ibv_destroy_cq(self.raw) }) {
            narrate::failure(&error.to_string());
        }
    }
}

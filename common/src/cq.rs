//! `ibv_cq`, the completion queue: where the device reports work requests that are done (man 3 ibv_create_cq,
//! ibv_poll_cq, ibv_req_notify_cq). cq/wait.rs waits for it by polling, and cq/event.rs asleep.
//!
//! Hidden: each completion is shown to the queue of its QP, which then lets go of the request's memory (ledger.rs). Drop
//! destroys the CQ when its last QP is gone.

mod event;
mod wait;

use std::cell::{RefCell, RefMut};
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

use rdma_sys::{ibv_cq, ibv_create_cq, ibv_destroy_cq, ibv_poll_cq, ibv_req_notify_cq, ibv_wc};

use crate::comp_channel::CompletionChannel;
use crate::context::Context;
use crate::error::{null, positive_errno, Error, Result};
use crate::route::Routes;
use crate::wc::WorkCompletion;
use crate::{data, fast, narrate, slow};

/// How many completions one `ibv_poll_cq` may return.
const BATCH: usize = 16;

/// A completion queue.
pub struct CompletionQueue(Rc<Inner>);

struct Inner {
    raw: *mut ibv_cq,
    context: Context,
    _channel: Option<CompletionChannel>,
    /// The QPs whose requests complete here.
    routes: RefCell<Routes>,
    /// Taken from the device, and not yet given out: completions that came while another one was awaited.
    polled: RefCell<VecDeque<WorkCompletion>>,
    /// Where the device writes completions. It is made once: to clear it for each poll would cost as much as the poll itself.
    batch: RefCell<[ibv_wc; BATCH]>,
}

impl CompletionChannel {
    /// `ibv_create_cq`: room for at least `cqe` completions, reporting to this channel. Its completion vector (which
    /// interrupt reports) is 0, the first.
    ///
    /// # Errors
    /// `Error::Call`: EINVAL for less than 1 completion, or more than the device's `max_cqe`; ENOMEM without the memory.
    #[track_caller]
    pub fn create_cq(&self, cqe: i32) -> Result<CompletionQueue> {
        CompletionQueue::create(self.context(), Some(self), cqe)
    }
}

impl Context {
    /// `ibv_create_cq` without a channel, to be polled only, with room for at least `cqe` completions.
    ///
    /// # Errors
    /// As [`CompletionChannel::create_cq`].
    #[track_caller]
    pub fn create_cq(&self, cqe: i32) -> Result<CompletionQueue> {
        CompletionQueue::create(self, None, cqe)
    }
}

impl CompletionQueue {
    /// Without a channel there is nothing to sleep on.
    #[track_caller]
    fn create(context: &Context, channel: Option<&CompletionChannel>, cqe: i32) -> Result<Self> {
        slow!("ibv_create_cq cqe={cqe}");
        let reports_to = channel.map_or(std::ptr::null_mut(), CompletionChannel::raw);
        // SAFETY: device and channel are open, and kept so; the channel is of this device.
        let raw = unsafe { ibv_create_cq(context.raw(), cqe, std::ptr::null_mut(), reports_to, 0) };
        let raw = null("ibv_create_cq", raw)?;
        let (context, _channel) = (context.share(), channel.map(CompletionChannel::share));
        // Room for all that the device can hold: then taking them allocates nothing, however late the program comes.
        // SAFETY: the CQ is alive.
        let polled = RefCell::new(VecDeque::with_capacity(unsafe { (*raw).cqe }.max(0) as usize));
        // SAFETY: ibv_wc is plain integers, for which zero is a value.
        let batch = RefCell::new(unsafe { std::mem::zeroed() });
        let inner = Rc::new(Inner { raw, context, _channel, routes: RefCell::default(), polled, batch });
        // SAFETY: the CQ is alive and ours. Inner is not moved or freed before it has destroyed the CQ.
        unsafe { (*raw).cq_context = Rc::as_ptr(&inner).cast_mut().cast() };
        Ok(Self(inner))
    }

    /// The owner of a CQ that a channel names.
    ///
    /// # Safety
    /// The CQ must have been made here, and must not be destroyed.
    pub(crate) unsafe fn from_raw(raw: *mut ibv_cq) -> Option<Self> {
        // SAFETY: `create` stored this pointer. Inner destroys the CQ when it is dropped, or takes the pointer away: so
        // Inner lives, and its count may be raised for the new handle.
        unsafe {
            let inner = (*raw).cq_context.cast_const().cast::<Inner>();
            if inner.is_null() {
                return None;
            }
            Rc::increment_strong_count(inner);
            Some(Self(Rc::from_raw(inner)))
        }
    }

    /// `ibv_req_notify_cq`: arms the CQ: the *next* completion puts one event into the channel. Completions that are
    /// already there need not, so poll once more after arming, before you sleep.
    ///
    /// # Errors
    /// `Error::Call` if the device refuses.
    #[track_caller]
    pub fn req_notify(&self) -> Result<()> {
        fast!("ibv_req_notify_cq");
        // SAFETY: the CQ is alive. 0: any completion counts, not only solicited ones.
        positive_errno("ibv_req_notify_cq", unsafe { ibv_req_notify_cq(self.raw(), 0) })
    }

    /// The same, but it only counts a completion that is an error, or whose sender asked for it
    /// ([`SendWr::solicited`](crate::SendWr::solicited)).
    ///
    /// # Errors
    /// `Error::Call` if the device refuses.
    #[track_caller]
    pub fn req_notify_solicited(&self) -> Result<()> {
        fast!("ibv_req_notify_cq solicited_only");
        // SAFETY: the CQ is alive.
        positive_errno("ibv_req_notify_cq", unsafe { ibv_req_notify_cq(self.raw(), 1) })
    }

    /// `ibv_poll_cq`: all completions that are there, perhaps none, oldest first. Never waits.
    ///
    /// # Errors
    /// `Error::Call` if the CQ is broken. A failed completion isn't an error here; check its status.
    #[track_caller]
    pub fn poll(&self) -> Result<Vec<WorkCompletion>> {
        self.poll_up_to(usize::MAX)
    }

    /// The same, but not more than `max`; the others stay for the next call.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    #[track_caller]
    pub fn poll_up_to(&self, max: usize) -> Result<Vec<WorkCompletion>> {
        self.fetch()?;
        let mut polled = self.0.polled.borrow_mut();
        let count = polled.len().min(max);
        Ok(polled.drain(..count).collect())
    }

    /// The oldest one alone, if there is any. Never waits, and allocates nothing: for programs in a hurry.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    #[track_caller]
    pub fn poll_one(&self) -> Result<Option<WorkCompletion>> {
        // Those that have been taken from the device and not given out come first.
        let waiting = self.0.polled.borrow_mut().pop_front();
        if waiting.is_none() {
            self.fetch()?;
        }
        Ok(waiting.or_else(|| self.0.polled.borrow_mut().pop_front()))
    }

    /// Takes what the device has reported.
    #[track_caller]
    fn fetch(&self) -> Result<()> {
        let mut batch = self.0.batch.borrow_mut();
        loop {
            // SAFETY: the CQ is alive, and `batch` has room for BATCH completions.
            let count = unsafe { ibv_poll_cq(self.raw(), BATCH as i32, batch.as_mut_ptr()) };
            // Negative if it fails, and no errno: ibv_poll_cq(3) gives no cause.
            let count = usize::try_from(count).map_err(|_| Error::Call { call: "ibv_poll_cq", errno: libc::EIO })?;
            for wc in &batch[..count] {
                let wc = WorkCompletion::new(wc);
                data!("WC: {wc}");
                // The device is done with this request's memory.
                self.0.routes.borrow().complete(wc.qp_num, wc.wr_id);
                self.0.polled.borrow_mut().push_back(wc);
            }
            if count < BATCH {
                return Ok(());
            }
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

    /// The QPs that report here: each adds itself, and takes itself away.
    pub(crate) fn routes(&self) -> RefMut<'_, Routes> {
        self.0.routes.borrow_mut()
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
            // The CQ is still there without an owner, so none of its events may lead to what we free now.
            // SAFETY: the CQ is not destroyed.
            unsafe { (*self.raw).cq_context = std::ptr::null_mut() };
            narrate::failure(&error.to_string());
        }
    }
}

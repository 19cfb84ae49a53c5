//! `ibv_cq`, the completion queue: where the device reports work requests that are done (man 3 ibv_create_cq,
//! ibv_poll_cq, ibv_req_notify_cq).
//!
//! Hidden: each completion is shown to the queue of its QP, which then lets go of the request's memory (ledger.rs). Drop
//! destroys the CQ when its last QP is gone.

use std::cell::{RefCell, RefMut};
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rdma_sys::{ibv_cq, ibv_create_cq, ibv_destroy_cq, ibv_poll_cq, ibv_req_notify_cq, ibv_wc};

use crate::cm::event_channel::EventChannel;
use crate::comp_channel::{CompletionChannel, Woken};
use crate::context::Context;
use crate::deadline::{is_readable, Deadline};
use crate::error::{null, positive_errno, Error, Kind, Result};
use crate::route::Routes;
use crate::wc::WorkCompletion;
use crate::{data, fast, info, narrate, slow};

/// How many completions one `ibv_poll_cq` may return.
const BATCH: usize = 16;

/// Between two polls of an empty CQ. A program in a hurry would not pause at all; this one leaves the processor to others.
const PAUSE: Duration = Duration::from_micros(100);

/// How often a wait that finds nothing asks whether the QPs can still take receives: a system call for each.
const LOOK: Duration = Duration::from_millis(100);

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

impl CompletionQueue {
    /// `ibv_create_cq`: room for at least `cqe` completions, reporting to `channel`. Its completion vector (which
    /// interrupt reports) is 0, the first.
    ///
    /// # Errors
    /// `Error::Call`: EINVAL for less than 1 completion, or more than the device's `max_cqe`; ENOMEM without the memory.
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
        // SAFETY: `create_on` stored this pointer. Inner destroys the CQ when it is dropped, or takes the pointer away: so
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
    /// already there do not, so poll once more after arming, before you sleep.
    ///
    /// # Errors
    /// `Error::Call` if the device refuses.
    pub fn req_notify(&self) -> Result<()> {
        fast!("ibv_req_notify_cq");
        // SAFETY: the CQ is alive. 0: any completion counts, not only solicited ones.
        positive_errno("ibv_req_notify_cq", unsafe { ibv_req_notify_cq(self.raw(), 0) })
    }

    /// The same, but only a completion counts that is an error, or whose sender asked for it
    /// ([`SendWr::solicited`](crate::SendWr::solicited)).
    ///
    /// # Errors
    /// `Error::Call` if the device refuses.
    pub fn req_notify_solicited(&self) -> Result<()> {
        fast!("ibv_req_notify_cq solicited_only");
        // SAFETY: the CQ is alive.
        positive_errno("ibv_req_notify_cq", unsafe { ibv_req_notify_cq(self.raw(), 1) })
    }

    /// `ibv_poll_cq`: all completions that are there, perhaps none, oldest first. Never waits.
    ///
    /// # Errors
    /// `Error::Call` if the CQ is broken. A completion that failed is none: look at its status.
    pub fn poll(&self) -> Result<Vec<WorkCompletion>> {
        self.poll_up_to(usize::MAX)
    }

    /// The same, but not more than `max`; the others stay for the next call.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
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
    pub fn poll_one(&self) -> Result<Option<WorkCompletion>> {
        // Those that have been taken from the device and not given out come first.
        let waiting = self.0.polled.borrow_mut().pop_front();
        if waiting.is_none() {
            self.fetch()?;
        }
        Ok(waiting.or_else(|| self.0.polled.borrow_mut().pop_front()))
    }

    /// Takes what the device has.
    fn fetch(&self) -> Result<()> {
        let mut batch = self.0.batch.borrow_mut();
        loop {
            // SAFETY: the CQ is alive, and `batch` has room for BATCH completions.
            let count = unsafe { ibv_poll_cq(self.raw(), BATCH as i32, batch.as_mut_ptr()) };
            // Negative if it fails, and no errno: ibv_poll_cq(3) gives no cause.
            let count = usize::try_from(count).map_err(|_| Error::Call { call: "ibv_poll_cq", errno: libc::EIO })?;
            for wc in &batch[..count] {
                let wc = WorkCompletion::new(wc);
                info!("WC: {wc}");
                // The device is done with this request's memory.
                self.0.routes.borrow().complete(wc.qp_num, wc.wr_id);
                self.0.polled.borrow_mut().push_back(wc);
            }
            if count < BATCH {
                return Ok(());
            }
        }
    }

    /// Polls until work request `wr_id` is done. Completions of others are kept for later; but an error of the same QP,
    /// the cause of what follows, is returned at once. `awaited` is for the error if the deadline passes.
    ///
    /// # Errors
    /// `Error::Completion` if it failed, or what it depends on; `Error::Deadline` if it does not come;
    /// `Kind::NeverCompletes` if it cannot come.
    pub fn wait_for(&self, wr_id: u64, awaited: &str) -> Result<WorkCompletion> {
        match self.wait(wr_id, None, awaited)? {
            Woken::Completion(wc) => Ok(wc),
            // Nobody looks for one.
            Woken::CmEvent => Err(Error::content("a CM event ended a wait for a completion alone", "Report this")),
        }
    }

    /// As [`wait_for`](Self::wait_for), but a CM event on `other` ends the wait as well: the peer's goodbye, for example,
    /// after which no completion will come. It is left there, to be taken.
    ///
    /// # Errors
    /// As [`wait_for`](Self::wait_for).
    pub fn wait_for_or_cm_event(
        &self,
        wr_id: u64,
        other: &EventChannel,
        awaited: &str,
    ) -> Result<Woken<WorkCompletion>> {
        self.wait(wr_id, Some(other), awaited)
    }

    /// Polls for work request `wr_id` once, as [`wait_for`](Self::wait_for) does again and again. None: not done yet.
    ///
    /// # Errors
    /// `Error::Completion` if it failed, or what it depends on.
    pub fn poll_for(&self, wr_id: u64) -> Result<Option<WorkCompletion>> {
        self.fetch()?;
        self.take(wr_id, &self.posted_to(wr_id)).map(WorkCompletion::into_success).transpose()
    }

    fn wait(&self, wr_id: u64, other: Option<&EventChannel>, awaited: &str) -> Result<Woken<WorkCompletion>> {
        data!("ibv_poll_cq until wr_id={wr_id}, {awaited}");
        let deadline = Deadline::answer(format!("the completion of work request {wr_id} ({awaited})"));
        self.fetch()?;
        let qp_nums = self.posted_to(wr_id);
        if qp_nums.is_empty() {
            let next = "Was it unsignaled, polled before, forgotten in RESET, or posted to a queue with another CQ?";
            return Err(never_completes(wr_id, awaited, next));
        }
        let (mut looked, mut have_left) = (Instant::now(), false);
        loop {
            // Looked for before the poll: a completion that was there before the event is then found.
            let cm_event = other.is_some_and(is_readable);
            self.fetch()?;
            if let Some(wc) = self.take(wr_id, &qp_nums) {
                return wc.into_success().map(Woken::Completion);
            }
            if cm_event {
                return Ok(Woken::CmEvent);
            }
            if looked.elapsed() >= LOOK {
                // Twice in a row: a receive that a QP had taken by then has been flushed meanwhile.
                let had_left = std::mem::replace(&mut have_left, self.routes().have_left_their_srq(&qp_nums)?);
                if had_left && have_left {
                    let next =
                        "Each QP of the SRQ is in ERR or RESET: connect another one, or wait for no more receives";
                    return Err(never_completes(wr_id, awaited, next));
                }
                looked = Instant::now();
            }
            deadline.left()?;
            std::thread::sleep(PAUSE);
        }
    }

    /// The QPs that may report this request: one, or, if it is a receive of an SRQ, all that share it. None: nobody will.
    fn posted_to(&self, wr_id: u64) -> Vec<u32> {
        let polled = self.0.polled.borrow();
        if let Some(wc) = polled.iter().find(|wc| wc.wr_id == wr_id) {
            return vec![wc.qp_num];
        }
        self.0.routes.borrow().posted_to(wr_id)
    }

    /// The completion of `wr_id`, or an error before it that is its cause: one of its own QP, and no echo.
    fn take(&self, wr_id: u64, qp_nums: &[u32]) -> Option<WorkCompletion> {
        let mut polled = self.0.polled.borrow_mut();
        let cause = |wc: &WorkCompletion| qp_nums == [wc.qp_num] && !wc.is_success() && !wc.is_flush();
        let position = polled.iter().position(|wc| wc.wr_id == wr_id || cause(wc))?;
        polled.remove(position)
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

fn never_completes(wr_id: u64, awaited: &str, next: &str) -> Error {
    let what = format!("no completion of work request {wr_id} will come here ({awaited})");
    Error::of(Kind::NeverCompletes, what, next)
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
            // Still there, and nobody's: an event of its must not lead to what is freed now.
            // SAFETY: the CQ is not destroyed.
            unsafe { (*self.raw).cq_context = std::ptr::null_mut() };
            narrate::failure(&error.to_string());
        }
    }
}

//! Waiting for one completion among others (man 3 ibv_poll_cq).
//!
//! Hidden: a loop that polls, its deadline, and completions of others, which are kept for later. Each wait knows first that what
//! it waits for can come.

use std::time::{Duration, Instant};

use crate::cm::event_channel::EventChannel;
use crate::comp_channel::Woken;
use crate::cq::CompletionQueue;
use crate::data;
use crate::deadline::{is_readable, Deadline};
use crate::error::{Error, Kind, Result};
use crate::wc::WorkCompletion;

/// Between two polls of an empty CQ. A program in a hurry would not pause at all; this one leaves the processor to others.
const PAUSE: Duration = Duration::from_micros(100);

/// How often a wait that finds nothing asks whether the QPs can still take receives: a system call for each.
const LOOK: Duration = Duration::from_millis(100);

impl CompletionQueue {
    /// Polls until work request `wr_id` is done. Completions of others are kept for later; but an error of the same QP,
    /// the cause of what follows, is returned at once. `awaited` is for the error if the deadline passes.
    ///
    /// # Errors
    /// `Error::Completion` if it failed, or what it depends on; `Error::Deadline` if it does not come;
    /// `Kind::NeverCompletes` if it cannot come.
    #[track_caller]
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
    #[track_caller]
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
    #[track_caller]
    pub fn poll_for(&self, wr_id: u64) -> Result<Option<WorkCompletion>> {
        self.fetch()?;
        self.take(wr_id, &self.posted_to(wr_id)).map(WorkCompletion::into_success).transpose()
    }

    #[track_caller]
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

    /// The QPs that may report this request: one, or, if it is a receive of an SRQ, all that share it. Empty if none will.
    fn posted_to(&self, wr_id: u64) -> Vec<u32> {
        let polled = self.0.polled.borrow();
        if let Some(wc) = polled.iter().find(|wc| wc.wr_id == wr_id) {
            return vec![wc.qp_num];
        }
        self.routes().posted_to(wr_id)
    }

    /// The completion of `wr_id`, or an earlier error that caused its failure: one of the same QP, and not a flush.
    fn take(&self, wr_id: u64, qp_nums: &[u32]) -> Option<WorkCompletion> {
        let mut polled = self.0.polled.borrow_mut();
        let cause = |wc: &WorkCompletion| qp_nums == [wc.qp_num] && !wc.is_success() && !wc.is_flush();
        let position = polled.iter().position(|wc| wc.wr_id == wr_id || cause(wc))?;
        polled.remove(position)
    }
}

fn never_completes(wr_id: u64, awaited: &str, next: &str) -> Error {
    let what = format!("no completion of work request {wr_id} will come here ({awaited})");
    Error::of(Kind::NeverCompletes, what, next)
}

//! The events in a completion channel: sleep until a completion queue has something (man 3 ibv_get_cq_event).
//!
//! Every event must be acknowledged, or `ibv_destroy_cq` waits for ever; so
//! [`get_cq_event`](CompletionChannel::get_cq_event) acks at once, and nothing else is possible.

use std::os::fd::AsFd;

use rdma_sys::{ibv_ack_cq_events, ibv_get_cq_event};

use crate::cm::event_channel::EventChannel;
use crate::comp_channel::{CompletionChannel, Woken};
use crate::cq::CompletionQueue;
use crate::deadline::Deadline;
use crate::error::{last_errno, Error, Result};
use crate::fast;

impl CompletionChannel {
    /// `ibv_get_cq_event` and `ibv_ack_cq_events`: sleeps until an armed CQ reports, and tells which. `awaited` is for
    /// the error if the deadline passes.
    ///
    /// # Errors
    /// `Error::Deadline` if none reports.
    #[track_caller]
    pub fn get_cq_event(&self, awaited: &str) -> Result<CompletionQueue> {
        fast!("ibv_get_cq_event: waiting for {awaited}");
        let deadline = Deadline::answer(awaited.to_owned());
        loop {
            deadline.wait_readable(&[self.as_fd()])?;
            if let Some(cq) = self.try_get_cq_event()? {
                return Ok(cq);
            }
        }
    }

    /// As [`get_cq_event`](Self::get_cq_event), but a CM event on `other` ends the sleep as well. It is left there, to be
    /// taken.
    ///
    /// # Errors
    /// `Error::Deadline` if neither comes.
    #[track_caller]
    pub fn get_cq_event_or_cm_event(&self, other: &EventChannel, awaited: &str) -> Result<Woken<CompletionQueue>> {
        fast!("ibv_get_cq_event: waiting for {awaited}, or a CM event");
        let deadline = Deadline::answer(awaited.to_owned());
        loop {
            let ready = deadline.wait_readable(&[self.as_fd(), other.as_fd()])?;
            match self.try_get_cq_event()? {
                Some(cq) => return Ok(Woken::Completion(cq)),
                None if ready == 1 => return Ok(Woken::CmEvent),
                None => continue,
            }
        }
    }

    /// `ibv_get_cq_event` and `ibv_ack_cq_events`, without waiting: for a program that waits for many descriptors in a
    /// poll(2) of its own.
    ///
    /// # Errors
    /// `Error::Call` if the channel cannot be read. No event isn't an error.
    pub fn try_get_cq_event(&self) -> Result<Option<CompletionQueue>> {
        let (mut cq, mut context) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the channel is open; on success `cq` is the CQ that reported.
        if unsafe { ibv_get_cq_event(self.raw(), &mut cq, &mut context) } == 0 {
            // SAFETY: that CQ is alive: destroying it waits for the ack of this very event.
            unsafe { ibv_ack_cq_events(cq, 1) };
            // SAFETY: it is on our channel, and so made by CompletionQueue, which is destroyed with its last handle.
            return Ok(unsafe { CompletionQueue::from_raw(cq) });
        }
        match last_errno("ibv_get_cq_event") {
            Error::Call { errno: libc::EAGAIN | libc::EINTR, .. } => Ok(None),
            error => Err(error),
        }
    }
}

//! `ibv_comp_channel`: sleep until a completion queue has something (man 3 ibv_create_comp_channel,
//! ibv_get_cq_event).
//!
//! A channel is a file descriptor. Armed with [`CompletionQueue::req_notify`](crate::CompletionQueue::req_notify), the CQ
//! puts one event into it when the next completion arrives. Every event must be acknowledged, or `ibv_destroy_cq` waits
//! for ever; so [`get_cq_event`](CompletionChannel::get_cq_event) acks at once, and nothing else is possible.

use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use rdma_sys::{
    ibv_ack_cq_events, ibv_comp_channel, ibv_create_comp_channel, ibv_destroy_comp_channel, ibv_get_cq_event,
};

use crate::cm::event_channel::EventChannel;
use crate::context::Context;
use crate::cq::CompletionQueue;
use crate::deadline::Deadline;
use crate::error::{last_errno, minus_one, null, positive_errno, Error, Result};
use crate::{fast, narrate, slow};

/// A completion channel.
pub struct CompletionChannel(Rc<Inner>);

struct Inner {
    raw: *mut ibv_comp_channel,
    context: Context,
}

/// What ended a wait for two things at once.
#[derive(Debug, PartialEq, Eq)]
pub enum Woken<T> {
    /// A completion: the one that was awaited, or the CQ that reported it.
    Completion(T),
    /// A CM event, which still lies in its channel. Completions that came before it have been looked for.
    CmEvent,
}

impl CompletionChannel {
    /// `ibv_create_comp_channel`.
    ///
    /// # Errors
    /// `Error::Call` if the process may have no more descriptors (EMFILE).
    pub fn create(context: &Context) -> Result<Self> {
        slow!("ibv_create_comp_channel");
        // SAFETY: the device is open, and kept so.
        let raw = null("ibv_create_comp_channel", unsafe { ibv_create_comp_channel(context.raw()) })?;
        let channel = Self(Rc::new(Inner { raw, context: context.share() }));
        // SAFETY: the descriptor belongs to the channel, which is open.
        minus_one("fcntl", unsafe { libc::fcntl(channel.fd(), libc::F_SETFL, libc::O_NONBLOCK) })?;
        Ok(channel)
    }

    /// `ibv_get_cq_event` and `ibv_ack_cq_events`: sleeps until an armed CQ reports, and tells which. `awaited` is for
    /// the error if the deadline passes.
    ///
    /// # Errors
    /// `Error::Deadline` if none reports.
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
    /// `Error::Call` if the channel cannot be read. None is no error.
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

    pub(crate) fn raw(&self) -> *mut ibv_comp_channel {
        self.0.raw
    }

    pub(crate) fn context(&self) -> &Context {
        &self.0.context
    }

    /// Another handle on the same channel, for its CQs.
    pub(crate) fn share(&self) -> Self {
        Self(Rc::clone(&self.0))
    }

    fn fd(&self) -> i32 {
        // SAFETY: the channel stays valid until Inner is dropped.
        unsafe { (*self.raw()).fd }
    }
}

impl AsFd for CompletionChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the channel, which is borrowed as long as the result.
        unsafe { BorrowedFd::borrow_raw(self.fd()) }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        slow!("ibv_destroy_comp_channel");
        // SAFETY: from ibv_create_comp_channel; every CQ on it shares Inner, so none is left.
        let result = unsafe { ibv_destroy_comp_channel(self.raw) };
        if let Err(error) = positive_errno("ibv_destroy_comp_channel", result) {
            narrate::failure(&error.to_string());
        }
    }
}

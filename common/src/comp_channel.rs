//! `ibv_comp_channel`: sleep until a completion queue has something (man 3 ibv_create_comp_channel,
//! ibv_get_cq_event).
//!
//! A channel is a file descriptor. Armed with [`CompletionQueue::req_notify`](crate::CompletionQueue::req_notify), the CQ
//! puts one event into it when the next completion arrives. Every event must be acknowledged, or `ibv_destroy_cq` waits
//! for ever; so [`get_cq_event`](CompletionChannel::get_cq_event) acks at once, and nothing else is possible.

use std::rc::Rc;

use rdma_sys::{
    ibv_ack_cq_events, ibv_comp_channel, ibv_create_comp_channel, ibv_destroy_comp_channel, ibv_get_cq_event,
};

use crate::cm::event_channel::EventChannel;
use crate::cm::id::CmId;
use crate::deadline::Deadline;
use crate::error::{last_errno, minus_one, null, positive_errno, Error, Result};
use crate::{fast, narrate, slow};

/// A completion channel.
pub struct CompletionChannel(Rc<Inner>);

struct Inner {
    raw: *mut ibv_comp_channel,
    _id: CmId,
}

impl CompletionChannel {
    /// `ibv_create_comp_channel(id->verbs)`.
    pub fn create(id: &CmId) -> Result<Self> {
        slow!("ibv_create_comp_channel");
        let verbs = id.verbs()?;
        // SAFETY: the device is open as long as the id, which is kept.
        let raw = null("ibv_create_comp_channel", unsafe { ibv_create_comp_channel(verbs) })?;
        let channel = Self(Rc::new(Inner { raw, _id: id.share() }));
        // SAFETY: the descriptor belongs to the channel, which is open.
        minus_one("fcntl", unsafe { libc::fcntl(channel.fd(), libc::F_SETFL, libc::O_NONBLOCK) })?;
        Ok(channel)
    }

    /// `ibv_get_cq_event` and `ibv_ack_cq_events`: sleeps until an armed CQ reports. `awaited` is for the error if the
    /// deadline passes.
    pub fn get_cq_event(&self, awaited: &str) -> Result<()> {
        fast!("ibv_get_cq_event: waiting for {awaited}");
        let deadline = Deadline::answer(awaited);
        loop {
            deadline.wait_readable(&[self.fd()])?;
            if self.take_event()? {
                return Ok(());
            }
        }
    }

    /// As [`get_cq_event`](Self::get_cq_event), but a CM event on `other` ends the sleep as well. It is left there, to be
    /// taken. True if a completion, false if a CM event woke us.
    pub fn get_cq_event_or_cm_event(&self, other: &EventChannel, awaited: &str) -> Result<bool> {
        fast!("ibv_get_cq_event: waiting for {awaited}, or a CM event");
        let deadline = Deadline::answer(awaited);
        loop {
            match deadline.wait_readable(&[self.fd(), other.fd()])? {
                0 if self.take_event()? => return Ok(true),
                0 => continue,
                _ => return Ok(false),
            }
        }
    }

    /// Takes and acks one event. False if there was none after all.
    fn take_event(&self) -> Result<bool> {
        let (mut cq, mut context) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the channel is open; on success `cq` is the CQ that reported.
        if unsafe { ibv_get_cq_event(self.raw(), &mut cq, &mut context) } == 0 {
            // SAFETY: that CQ is alive: destroying it waits for the ack of this very event.
            unsafe { ibv_ack_cq_events(cq, 1) };
            return Ok(true);
        }
        match last_errno("ibv_get_cq_event") {
            Error::Call { errno: libc::EAGAIN | libc::EINTR, .. } => Ok(false),
            error => Err(error),
        }
    }

    pub(crate) fn raw(&self) -> *mut ibv_comp_channel {
        self.0.raw
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

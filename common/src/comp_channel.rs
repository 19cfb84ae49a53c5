//! `ibv_comp_channel`: where completion queues say that they have something (man 3 ibv_create_comp_channel).
//!
//! A channel is a file descriptor. Armed with [`CompletionQueue::req_notify`](crate::CompletionQueue::req_notify), the CQ
//! puts one event into it when the next completion arrives; cq/event.rs takes it out. Drop closes the channel after its last
//! CQ.

use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use rdma_sys::{ibv_comp_channel, ibv_create_comp_channel, ibv_destroy_comp_channel};

use crate::context::Context;
use crate::error::{minus_one, null, positive_errno, Result};
use crate::{narrate, slow};

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
    /// A CM event, which is still in its channel. We've already looked for completions that came before it.
    CmEvent,
}

impl Context {
    /// `ibv_create_comp_channel`.
    ///
    /// # Errors
    /// `Error::Call` if the process may have no more descriptors (EMFILE).
    #[track_caller]
    pub fn create_comp_channel(&self) -> Result<CompletionChannel> {
        slow!("ibv_create_comp_channel");
        // SAFETY: the device is open, and kept so.
        let raw = null("ibv_create_comp_channel", unsafe { ibv_create_comp_channel(self.raw()) })?;
        let channel = CompletionChannel(Rc::new(Inner { raw, context: self.share() }));
        // SAFETY: the descriptor belongs to the channel, which is open.
        minus_one("fcntl", unsafe { libc::fcntl(channel.fd(), libc::F_SETFL, libc::O_NONBLOCK) })?;
        Ok(channel)
    }
}

impl CompletionChannel {
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

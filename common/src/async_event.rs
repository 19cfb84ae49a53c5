//! `ibv_async_event`: what happens to a device, a port or a queue without anybody asking (man 3 ibv_get_async_event).
//!
//! A completion says how *our* request ended. That a QP broke because of what the *peer* asked for, that an SRQ runs low or
//! that the cable is out, comes as an event on the device's own descriptor. Every event must be acknowledged, or the object
//! it names cannot be destroyed; so it is copied, and acknowledged at once.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::addr_of;

use rdma_sys::{ibv_ack_async_event, ibv_async_event, ibv_get_async_event};

use crate::context::Context;
use crate::deadline::Deadline;
use crate::error::{last_errno, minus_one, Error, Result};
use crate::{fast, info};

/// An event, copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsyncEvent {
    /// `ibv_event_type`, a number: one that this program does not know is harmless.
    pub event: u32,
    /// The QP that it happened to, if it happened to one.
    pub qp_num: Option<u32>,
}

impl AsyncEvent {
    /// The C name, or the number.
    pub fn name(&self) -> String {
        match NAMES.get(self.event as usize) {
            Some(name) => format!("IBV_EVENT_{name}"),
            None => format!("async event number {}", self.event),
        }
    }
}

/// `ibv_event_type` in order, without its prefix.
const NAMES: [&str; 20] = [
    "CQ_ERR",
    "QP_FATAL",
    "QP_REQ_ERR",
    "QP_ACCESS_ERR",
    "COMM_EST",
    "SQ_DRAINED",
    "PATH_MIG",
    "PATH_MIG_ERR",
    "DEVICE_FATAL",
    "PORT_ACTIVE",
    "PORT_ERR",
    "LID_CHANGE",
    "PKEY_CHANGE",
    "SM_CHANGE",
    "SRQ_ERR",
    "SRQ_LIMIT_REACHED",
    "QP_LAST_WQE_REACHED",
    "CLIENT_REREGISTER",
    "GID_CHANGE",
    "WQ_FATAL",
];

/// Those of them that name a QP: 1 to 7, and 16.
fn is_about_a_qp(event: u32) -> bool {
    matches!(event, 1..=7 | 16)
}

impl Context {
    /// `ibv_get_async_event` and `ibv_ack_async_event`: the next event of this device.
    pub fn get_async_event(&self, awaited: &str) -> Result<AsyncEvent> {
        fast!("ibv_get_async_event: waiting for {awaited}");
        let deadline = Deadline::answer(awaited.to_owned());
        loop {
            if let Some(event) = self.try_get_async_event()? {
                return Ok(event);
            }
            deadline.wait_readable(&[self.as_fd()])?;
        }
    }

    /// The same, without waiting.
    pub fn try_get_async_event(&self) -> Result<Option<AsyncEvent>> {
        // SAFETY: the descriptor belongs to the device, which is open. A lent one may not have been used like this before.
        minus_one("fcntl", unsafe { libc::fcntl(self.as_fd().as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) })?;
        let mut raw = MaybeUninit::<ibv_async_event>::zeroed();
        // SAFETY: the device is open; on success the event is written.
        if unsafe { ibv_get_async_event(self.raw(), raw.as_mut_ptr()) } != 0 {
            return match last_errno("ibv_get_async_event") {
                Error::Call { errno: libc::EAGAIN | libc::EINTR, .. } => Ok(None),
                error => Err(error),
            };
        }
        // SAFETY: the type is read as a plain number, for the Rust enum must not hold one that it does not list. A QP that
        // an event names is alive until the ack.
        let event = unsafe {
            let event = addr_of!((*raw.as_ptr()).event_type).cast::<u32>().read();
            let qp_num = is_about_a_qp(event).then(|| (*(*raw.as_ptr()).element.qp).qp_num);
            ibv_ack_async_event(raw.as_mut_ptr());
            AsyncEvent { event, qp_num }
        };
        info!("async event: {} qp_num={:?}", event.name(), event.qp_num);
        Ok(Some(event))
    }
}

/// The descriptor of the device's asynchronous events.
impl AsFd for Context {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the device, which is borrowed as long as the result.
        unsafe { BorrowedFd::borrow_raw((*self.raw()).async_fd) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdma_sys::ibv_event_type::*;

    #[test]
    fn names_stand_at_their_numbers() {
        for (event, name) in [
            (IBV_EVENT_QP_ACCESS_ERR, "IBV_EVENT_QP_ACCESS_ERR"),
            (IBV_EVENT_SRQ_LIMIT_REACHED, "IBV_EVENT_SRQ_LIMIT_REACHED"),
            (IBV_EVENT_WQ_FATAL, "IBV_EVENT_WQ_FATAL"),
        ] {
            assert_eq!(AsyncEvent { event: event as u32, qp_num: None }.name(), name);
        }
        assert_eq!(AsyncEvent { event: 4711, qp_num: None }.name(), "async event number 4711");
    }
}

//! `ibv_async_event`: what happens to a device, a port or a queue on its own (man 3 ibv_get_async_event).
//!
//! A completion says how *our* request ended. If a QP breaks because of what the *peer* asked for, if an SRQ runs low, or
//! if the cable is out, an event comes on the device's own descriptor. Every event must be acknowledged, or the object
//! it names cannot be destroyed. So we copy it, and acknowledge it at once.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::addr_of;

use rdma_sys::{ibv_ack_async_event, ibv_async_event, ibv_get_async_event};

use crate::c_enum::c_enum;
use crate::context::Context;
use crate::deadline::Deadline;
use crate::error::{last_errno, minus_one, Error, Result};
use crate::{fast, info};

c_enum! {
    /// `ibv_event_type`.
    AsyncEventType = ibv_event_type else "async event number" {
        IBV_EVENT_CQ_ERR IBV_EVENT_QP_FATAL IBV_EVENT_QP_REQ_ERR IBV_EVENT_QP_ACCESS_ERR IBV_EVENT_COMM_EST
        IBV_EVENT_SQ_DRAINED IBV_EVENT_PATH_MIG IBV_EVENT_PATH_MIG_ERR IBV_EVENT_DEVICE_FATAL IBV_EVENT_PORT_ACTIVE
        IBV_EVENT_PORT_ERR IBV_EVENT_LID_CHANGE IBV_EVENT_PKEY_CHANGE IBV_EVENT_SM_CHANGE IBV_EVENT_SRQ_ERR
        IBV_EVENT_SRQ_LIMIT_REACHED IBV_EVENT_QP_LAST_WQE_REACHED IBV_EVENT_CLIENT_REREGISTER IBV_EVENT_GID_CHANGE
        IBV_EVENT_WQ_FATAL
    }
}

impl AsyncEventType {
    /// Those that name a QP: 1 to 7, and 16.
    fn is_about_a_qp(self) -> bool {
        matches!(self.0, 1..=7 | 16)
    }
}

/// An event, copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsyncEvent {
    /// What happened.
    pub event: AsyncEventType,
    /// The QP that it happened to, if it happened to one.
    pub qp_num: Option<u32>,
}

impl Context {
    /// `ibv_get_async_event` and `ibv_ack_async_event`: the next event of this device.
    ///
    /// # Errors
    /// `Error::Deadline` if none comes; `Error::Call` as [`try_get_async_event`](Self::try_get_async_event).
    #[track_caller]
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
    ///
    /// # Errors
    /// `Error::Call` if the device's descriptor cannot be read.
    #[track_caller]
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
            let event = AsyncEventType(addr_of!((*raw.as_ptr()).event_type).cast::<u32>().read());
            let qp_num = event.is_about_a_qp().then(|| (*(*raw.as_ptr()).element.qp).qp_num);
            ibv_ack_async_event(raw.as_mut_ptr());
            AsyncEvent { event, qp_num }
        };
        info!("async event: {} qp_num={:?}", event.event, event.qp_num);
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

    #[test]
    fn names_stand_at_their_numbers() {
        assert!((0..20).all(|number| AsyncEventType(number).to_string().starts_with("IBV_EVENT_")));
        assert_eq!(AsyncEventType(15).to_string(), "IBV_EVENT_SRQ_LIMIT_REACHED");
        assert_eq!(AsyncEventType(4711).to_string(), "async event number 4711");
    }
}

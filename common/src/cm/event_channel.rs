//! `rdma_event_channel`: where the connection manager reports what happened (man 3 rdma_create_event_channel,
//! rdma_get_cm_event).
//!
//! A channel is a file descriptor. This file hides that it's non-blocking, and that a poll(2) with a deadline precedes each
//! `rdma_get_cm_event`, which would otherwise wait for ever. Drop closes the channel when its last id is gone.

use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use rdma_sys::{
    rdma_cm_event, rdma_create_event_channel, rdma_destroy_event_channel, rdma_event_channel, rdma_get_cm_event,
    rdma_migrate_id,
};

use super::event::{short_name, CmEvent};
use super::id::CmId;
use super::port_space::PortSpace;
use super::{CmEventType, RDMA_CM_EVENT_CONNECT_REQUEST, RDMA_CM_EVENT_TIMEWAIT_EXIT};
use crate::deadline::Deadline;
use crate::error::{last_errno, minus_one, null, Error, Kind, Result};
use crate::slow;

/// An event channel.
pub struct EventChannel(Rc<Inner>);

struct Inner {
    raw: *mut rdma_event_channel,
    /// How many ids report here.
    ids: Cell<usize>,
}

impl EventChannel {
    /// `rdma_create_event_channel`: opens the connection manager. ENODEV means that there is no RDMA device, that its
    /// provider in user space is missing, or that the module rdma_ucm is not loaded.
    ///
    /// # Errors
    /// `Error::Call`, ENODEV or ENOENT: as above.
    #[track_caller]
    pub fn create() -> Result<Self> {
        slow!("rdma_create_event_channel");
        // SAFETY: the call takes no argument.
        let raw = null("rdma_create_event_channel", unsafe { rdma_create_event_channel() })?;
        let channel = Self(Rc::new(Inner { raw, ids: Cell::new(0) }));
        // SAFETY: the descriptor belongs to the channel, which is open.
        minus_one("fcntl", unsafe { libc::fcntl(channel.fd(), libc::F_SETFL, libc::O_NONBLOCK) })?;
        Ok(channel)
    }

    /// `rdma_create_id`: a new id, whose events come through this channel.
    ///
    /// # Errors
    /// `Error::Call` if the kernel has no room for it.
    #[track_caller]
    pub fn create_id(&self) -> Result<CmId> {
        CmId::create(self, PortSpace::Tcp)
    }

    /// The same for connections, or for datagrams.
    ///
    /// # Errors
    /// As [`create_id`](Self::create_id).
    #[track_caller]
    pub fn create_id_of(&self, space: PortSpace) -> Result<CmId> {
        CmId::create(self, space)
    }

    /// `rdma_get_cm_event`: the next event, whatever it is. Waits as long as a server waits for a client.
    ///
    /// # Errors
    /// `Error::Deadline` if none comes.
    #[track_caller]
    pub fn get_cm_event(&self) -> Result<CmEvent> {
        slow!("rdma_get_cm_event: waiting for any event");
        self.next(&Deadline::knock("a CM event"))
    }

    /// `rdma_get_cm_event`: the next event, which must be `wanted`. Another event is an error that names both.
    ///
    /// # Errors
    /// `Error::Event` for another event, `Error::Deadline` if none comes, `Kind::Misuse` if several ids report here.
    #[track_caller]
    pub fn wait_for(&self, wanted: CmEventType) -> Result<CmEvent> {
        self.wait_for_one_of(&[wanted])
    }

    /// As [`wait_for`](Self::wait_for), for the first of several: DISCONNECTED in place of ESTABLISHED, for example, if
    /// the peer's ReadyToUse is lost and its goodbye is not.
    ///
    /// The events of several ids must not be taken for each other's: with more than one id on this channel it is an error
    /// to wait here. Give each id a channel of its own ([`CmId::migrate_id`]), or take all events with
    /// [`get_cm_event`](Self::get_cm_event) and look at [`CmEvent::id`].
    ///
    /// # Errors
    /// `Error::Event` for another event, `Error::Deadline` if none comes, `Kind::Misuse` if several ids report here.
    #[track_caller]
    pub fn wait_for_one_of(&self, wanted: &[CmEventType]) -> Result<CmEvent> {
        let names: Vec<String> = wanted.iter().map(|event| short_name(*event)).collect();
        slow!("rdma_get_cm_event: waiting for {}", names.join(" or "));
        if self.0.ids.get() > 1 {
            let what = format!("{} ids report to this channel: the next event may be another id's", self.0.ids.get());
            return Err(Error::of(Kind::Misuse, what, "Call migrate_id, or take each event with get_cm_event"));
        }
        let deadline = match wanted {
            [RDMA_CM_EVENT_CONNECT_REQUEST] => Deadline::knock("a client's connect request"),
            _ => Deadline::answer(wanted.iter().map(CmEventType::to_string).collect::<Vec<_>>().join(" or ")),
        };
        loop {
            let event = self.next(&deadline)?;
            match event.event() {
                got if wanted.contains(&got) => return Ok(event),
                // The kernel's late note that an old connection is quite forgotten: never an answer.
                RDMA_CM_EVENT_TIMEWAIT_EXIT => continue,
                got => return Err(event.into_error(wanted.first().copied().unwrap_or(got))),
            }
        }
    }

    /// `rdma_get_cm_event`, without waiting: for a program that waits for many descriptors in a poll(2) of its own.
    ///
    /// # Errors
    /// `Error::Call` if the channel cannot be read. No event isn't an error.
    #[track_caller]
    pub fn try_get_cm_event(&self) -> Result<Option<CmEvent>> {
        let mut event: *mut rdma_cm_event = std::ptr::null_mut();
        // SAFETY: the channel is open; on success `event` points to an event that is ours until it is acked.
        if unsafe { rdma_get_cm_event(self.raw(), &mut event) } == 0 {
            return Ok(Some(CmEvent::new(event, self)));
        }
        match last_errno("rdma_get_cm_event") {
            Error::Call { errno: libc::EAGAIN | libc::EINTR, .. } => Ok(None),
            error => Err(error),
        }
    }

    #[track_caller]
    fn next(&self, deadline: &Deadline) -> Result<CmEvent> {
        loop {
            deadline.wait_readable(&[self.as_fd()])?;
            if let Some(event) = self.try_get_cm_event()? {
                return Ok(event);
            }
        }
    }

    /// Moves `id`, with its pending events, to this channel; called by [`CmId::migrate_id`].
    pub(super) fn adopt(&self, id: *mut rdma_sys::rdma_cm_id) -> Result<()> {
        // SAFETY: the id is alive, this channel is open, and the caller has checked that no event of it is un-acked.
        minus_one("rdma_migrate_id", unsafe { rdma_migrate_id(id, self.raw()) })
    }

    pub(super) fn raw(&self) -> *mut rdma_event_channel {
        self.0.raw
    }

    /// Another handle on the same channel, for the objects that keep it open.
    pub(super) fn share(&self) -> Self {
        Self(Rc::clone(&self.0))
    }

    /// True if both are handles on one channel.
    pub(super) fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// One id more (+1) or less (-1) reports here.
    pub(super) fn count_ids(&self, change: isize) {
        self.0.ids.set(self.0.ids.get().saturating_add_signed(change));
    }

    fn fd(&self) -> i32 {
        // SAFETY: the channel stays valid until Inner is dropped.
        unsafe { (*self.raw()).fd }
    }
}

impl AsFd for EventChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the channel, which is borrowed as long as the result.
        unsafe { BorrowedFd::borrow_raw(self.fd()) }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        slow!("rdma_destroy_event_channel");
        // SAFETY: created by rdma_create_event_channel; every id keeps a share of Inner, so none is left.
        unsafe { rdma_destroy_event_channel(self.raw) };
    }
}

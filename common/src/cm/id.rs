//! `rdma_cm_id`: one end of a connection, or a listener, like a socket in TCP (man 3 rdma_create_id).
//!
//! Calls wrapped here: rdma_create_id, rdma_bind_addr, rdma_listen, rdma_resolve_addr, rdma_resolve_route,
//! rdma_migrate_id, rdma_destroy_id; in connection.rs rdma_connect, rdma_accept, rdma_reject and rdma_disconnect.
//! None of them waits: each starts something and returns, and an event tells how it went.
//!
//! Hidden: sockaddr, errno, and `id->context`, which holds a pointer back to `Inner`, so that an event finds the owner
//! of its id. Drop destroys the id last, after its QP, CQ and PD: destroying it may close the device that they live on.

use std::cell::{Cell, RefCell};
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::rc::Rc;

use rdma_sys::*;

use super::event_channel::EventChannel;
use super::port_space::PortSpace;
use crate::address;
use crate::deadline::resolve_timeout;
use crate::error::{minus_one, Error, Kind, Result};
use crate::slow;

/// A communication identifier. A clone is another handle on the same id, for the objects that keep it alive: its PD, CQ, QP and events.
#[derive(Clone)]
pub struct CmId(Rc<Inner>);

struct Inner {
    raw: *mut rdma_cm_id,
    /// Where this id's events arrive; the channel must outlive the id.
    channel: RefCell<EventChannel>,
    /// Events of this id that are taken and not acknowledged.
    unacked: Cell<u32>,
}

impl CmId {
    #[track_caller]
    pub(super) fn create(channel: &EventChannel, space: PortSpace) -> Result<Self> {
        slow!("rdma_create_id {}", space.name());
        let mut raw = std::ptr::null_mut();
        // SAFETY: the channel is open; `raw` is written on success.
        let result = unsafe { rdma_create_id(channel.raw(), &mut raw, std::ptr::null_mut(), space.to_c()) };
        minus_one("rdma_create_id", result)?;
        // SAFETY: the id is new, and nobody else owns it.
        Ok(unsafe { Self::adopt(raw, channel) })
    }

    /// Takes ownership of an id.
    ///
    /// # Safety
    /// The id must be alive, on `channel`, and owned by nobody else.
    pub(super) unsafe fn adopt(raw: *mut rdma_cm_id, channel: &EventChannel) -> Self {
        channel.count_ids(1);
        let inner = Rc::new(Inner { raw, channel: RefCell::new(channel.share()), unacked: Cell::new(0) });
        // SAFETY: the id is alive and ours. Inner is not moved or freed before it has destroyed the id.
        unsafe { (*raw).context = Rc::as_ptr(&inner).cast_mut().cast() };
        Self(inner)
    }

    /// The owner of an id that an event names.
    ///
    /// # Safety
    /// The id must have gone through [`adopt`](Self::adopt), and must not be destroyed.
    pub(super) unsafe fn from_context(raw: *mut rdma_cm_id) -> Self {
        // SAFETY: `adopt` stored this pointer. Inner destroys the id when it is dropped, and the id is not destroyed:
        // so Inner lives, and its count may be raised for the new handle.
        unsafe {
            let inner = (*raw).context.cast_const().cast::<Inner>();
            Rc::increment_strong_count(inner);
            Self(Rc::from_raw(inner))
        }
    }

    /// Counts an event of this id as taken (+1) or acknowledged (-1).
    pub(super) fn count_unacked(&self, change: i32) {
        self.0.unacked.set(self.0.unacked.get().saturating_add_signed(change));
    }

    /// True if an event of this id is taken and not acknowledged.
    pub(crate) fn has_unacked(&self) -> bool {
        self.0.unacked.get() > 0
    }

    pub(crate) fn raw(&self) -> *mut rdma_cm_id {
        self.0.raw
    }

    /// True if the id is for datagrams.
    pub(super) fn is_datagrams(&self) -> bool {
        // SAFETY: the id is alive.
        unsafe { (*self.raw()).ps == PortSpace::Udp.to_c() }
    }

    /// `id->verbs`, for [`CmId::verbs`]; kept open by librdmacm as long as the id.
    pub(crate) fn device(&self) -> Result<*mut ibv_context> {
        // SAFETY: the id is alive.
        let verbs = unsafe { (*self.raw()).verbs };
        if verbs.is_null() {
            let next =
                "A client's id has one when ADDR_RESOLVED is taken, a server's is the one that CONNECT_REQUEST brings";
            return Err(Error::of(Kind::NoDevice, "this id has no device yet (id->verbs is NULL)", next));
        }
        Ok(verbs)
    }

    /// `rdma_set_option` with `RDMA_OPTION_ID_ACK_TIMEOUT`: how long the device waits for an ACK before it sends again:
    /// 4.096 µs × 2^`exponent`, 0 to 31. Before `resolve_route` on the client, where it goes into the REQ, and before
    /// `accept` on the server. Without it the kernel chooses, and not every kernel the same.
    ///
    /// # Errors
    /// `Error::Call`, ENOSYS from a kernel that does not know the option.
    #[track_caller]
    pub fn set_ack_timeout(&self, exponent: u8) -> Result<()> {
        // From <rdma/rdma_cma.h>, which rdma-sys leaves out, as those below.
        const RDMA_OPTION_ID_ACK_TIMEOUT: i32 = 3;
        slow!("rdma_set_option RDMA_OPTION_ID_ACK_TIMEOUT={exponent}");
        self.set_option(RDMA_OPTION_ID_ACK_TIMEOUT, exponent)
    }

    /// `rdma_set_option` with `RDMA_OPTION_ID_TOS`: the byte "type of service" (IPv6: traffic class) in the IP header of all that
    /// the connection sends, in both directions. Its upper six bits are the DSCP (RFC 2474), its lower two ECN (RFC 3168); switches
    /// and NICs mostly take the DSCP's upper three, so `tos >> 5`, for the priority, 0 to 7. Before `resolve_route` on the client,
    /// where it goes into the REQ. Without it the kernel's default is sent, 0 unless an administrator has changed it.
    ///
    /// # Errors
    /// `Error::Call` (man 3 rdma_set_option).
    #[track_caller]
    pub fn set_tos(&self, tos: u8) -> Result<()> {
        const RDMA_OPTION_ID_TOS: i32 = 0;
        slow!("rdma_set_option RDMA_OPTION_ID_TOS={tos}");
        self.set_option(RDMA_OPTION_ID_TOS, tos)
    }

    /// An option of one byte.
    #[track_caller]
    fn set_option(&self, option: i32, mut byte: u8) -> Result<()> {
        const RDMA_OPTION_ID: i32 = 0;
        let value = (&mut byte as *mut u8).cast();
        // SAFETY: the id is alive; the call copies the one byte.
        minus_one("rdma_set_option", unsafe { rdma_set_option(self.raw(), RDMA_OPTION_ID, option, value, 1) })
    }

    /// `rdma_bind_addr`: chooses the local address and port; port 0 lets the kernel choose.
    ///
    /// # Errors
    /// `Error::Call`: EADDRINUSE if a listener has the port, EADDRNOTAVAIL if the address is not this machine's, ENODEV if no
    /// RDMA device has it, EINVAL if the id is bound.
    #[track_caller]
    pub fn bind_addr(&self, address: SocketAddr) -> Result<()> {
        slow!("rdma_bind_addr {address}");
        let mut address = address::to_c(address);
        // SAFETY: the id is alive; the call copies the address.
        minus_one("rdma_bind_addr", unsafe { rdma_bind_addr(self.raw(), address::as_c(&mut address)) })
    }

    /// `rdma_listen`: from now on clients may knock. `backlog` is how many may wait to be looked at; the kernel rejects
    /// the next (as in listen(2)). It returns at once: the knock is an event.
    ///
    /// # Errors
    /// `Error::Call`: EADDRINUSE if another id listens there, EINVAL if this one does, or connects.
    #[track_caller]
    pub fn listen(&self, backlog: i32) -> Result<()> {
        slow!("rdma_listen backlog={backlog}");
        // SAFETY: the id is alive.
        minus_one("rdma_listen", unsafe { rdma_listen(self.raw(), backlog) })
    }

    /// `rdma_resolve_addr`: which local device leads to `address`? Answered by ADDR_RESOLVED or ADDR_ERROR.
    ///
    /// # Errors
    /// `Error::Call`: ENETUNREACH or EHOSTUNREACH without a route, ENODEV if it leads over no RDMA device, EINVAL if the id
    /// has resolved before or listens. Later ones come as the event.
    #[track_caller]
    pub fn resolve_addr(&self, address: SocketAddr) -> Result<()> {
        slow!("rdma_resolve_addr {address} timeout={} ms", resolve_timeout());
        let (mut to, from) = (address::to_c(address), std::ptr::null_mut());
        // SAFETY: the id is alive; the call copies the address; no source address is asked for.
        let result = unsafe { rdma_resolve_addr(self.raw(), from, address::as_c(&mut to), resolve_timeout()) };
        minus_one("rdma_resolve_addr", result)
    }

    /// `rdma_resolve_route`: which path leads there? Answered by ROUTE_RESOLVED or ROUTE_ERROR. On RoCE the routing
    /// table knows; on InfiniBand this asks the subnet manager.
    ///
    /// # Errors
    /// `Kind::NoDevice`; `Error::Call`, EINVAL, if the address is not resolved. Later ones come as the event.
    #[track_caller]
    pub fn resolve_route(&self) -> Result<()> {
        slow!("rdma_resolve_route timeout={} ms", resolve_timeout());
        // librdmacm looks into the device without asking whether there is one: so this and the next calls ask first.
        self.device()?;
        // SAFETY: the id is alive, and has a device.
        minus_one("rdma_resolve_route", unsafe { rdma_resolve_route(self.raw(), resolve_timeout()) })
    }

    /// `rdma_migrate_id`: from now on this id's events come through `channel`. The library would wait for ever for the
    /// ack of an event of this id that you still hold; here that is an error.
    ///
    /// # Errors
    /// `Kind::Misuse` for such an event; `Error::Call` if the kernel refuses.
    #[track_caller]
    pub fn migrate_id(&self, channel: &EventChannel) -> Result<()> {
        if self.has_unacked() {
            let what = "rdma_migrate_id would wait for ever: an event of this id is not acknowledged";
            return Err(Error::of(Kind::Misuse, what, "Call ack() on the event first"));
        }
        slow!("rdma_migrate_id");
        // Nothing to do; and the kernel, asked to, would move pending events to where they are, for ever (Linux 6.1,
        // `ucma_migrate_id` in drivers/infiniband/core/ucma.c).
        if self.0.channel.borrow().is(channel) {
            return Ok(());
        }
        channel.adopt(self.raw())?;
        channel.count_ids(1);
        self.0.channel.replace(channel.share()).count_ids(-1);
        Ok(())
    }

    /// `rdma_get_peer_addr`: the peer's address and port.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        // SAFETY: the id is alive, and librdmacm keeps a whole sockaddr_storage there.
        address::from_c(unsafe { &(*self.raw()).route.addr.dst_addr_union.dst_storage })
    }

    /// The peer's address and port, for people.
    pub fn peer_name(&self) -> String {
        self.peer_addr().map_or_else(|| "an unknown address".into(), |address| address.to_string())
    }

    /// `rdma_get_local_addr`: this side's address and port.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        // SAFETY: the id is alive, and librdmacm keeps a whole sockaddr_storage there.
        address::from_c(unsafe { &(*self.raw()).route.addr.src_addr_union.src_storage })
    }
}

/// Two handles are equal if they are on the same id: an event's id can be looked up among those that a program keeps.
impl PartialEq for CmId {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for CmId {}

impl Hash for CmId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Rc::as_ptr(&self.0).hash(state);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        slow!("rdma_destroy_id");
        // SAFETY: the id is ours. Every event, PD, CQ and QP of it shares Inner, so none is left, and no un-acked event
        // can make this call wait. It fails only if the kernel does not know the id, and then no event will name it.
        // While one of the id's own messages is under way it may wait for the kernel to be done with it: seconds, rarely more.
        unsafe { rdma_destroy_id(self.raw) };
        self.channel.get_mut().count_ids(-1);
    }
}

//! `ibv_ah`, the address handle: where a datagram goes (man 3 ibv_create_ah, ibv_init_ah_from_wc).
//!
//! A connected QP has one peer. A QP for datagrams (UD) has none: each request names an address handle, which is the way to a
//! machine; a QP there; and the Q_Key that this QP asks for. There are two ways to an address: the connection manager's answer
//! has one ([`CmEvent::ud_param`](crate::CmEvent::ud_param)), and so has each datagram that came ([`Context::init_ah_from_wc`]).
//!
//! Hidden: the handle's life. A request that is posted keeps its handle until it is done; Drop destroys it after the last one.

use std::fmt;
use std::net::Ipv6Addr;
use std::rc::Rc;

use rdma_sys::{ibv_ah, ibv_ah_attr, ibv_create_ah, ibv_destroy_ah, ibv_grh, ibv_init_ah_from_wc};

use crate::cm::event::CmEvent;
use crate::context::Context;
use crate::error::{minus_one, null, positive_errno, Error, Kind, Result};
use crate::pd::ProtectionDomain;
use crate::wc::WorkCompletion;
use crate::{narrate, slow};

/// Bytes in front of each datagram in its receive: the Global Route Header, or what takes its place.
pub const GRH_LEN: usize = 40;

/// `ibv_ah_attr`: the way to a machine.
#[derive(Clone, Copy)]
pub struct AhAttr(ibv_ah_attr);

impl AhAttr {
    /// The machine's GID, or a group's.
    pub fn dgid(&self) -> Ipv6Addr {
        // SAFETY: 16 bytes are a GID in every form.
        unsafe { self.0.grh.dgid.raw }.into()
    }
}

impl fmt::Display for AhAttr {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let grh = &self.0.grh;
        write!(f, "dgid={} sgid_index={} hop_limit={}", self.dgid(), grh.sgid_index, grh.hop_limit)
    }
}

impl Context {
    /// `ibv_init_ah_from_wc`: the way back to the sender of a datagram. `grh` is the [`GRH_LEN`] bytes in front of it, `port` the
    /// port that it came by.
    ///
    /// # Errors
    /// `Kind::OutOfRange` for fewer bytes; `Error::Call`, EPROTONOSUPPORT, if there is no IP header.
    #[track_caller]
    pub fn init_ah_from_wc(&self, port: u8, wc: &WorkCompletion, grh: &[u8]) -> Result<AhAttr> {
        slow!("ibv_init_ah_from_wc");
        let short =
            || Error::of(Kind::OutOfRange, "these are not the 40 bytes in front of a datagram", "Read 0..GRH_LEN");
        let bytes = grh.get(..GRH_LEN).ok_or_else(short)?;
        // SAFETY: plain data, for which zero is a value.
        let (mut header, mut attr): (ibv_grh, ibv_ah_attr) = unsafe { std::mem::zeroed() };
        // SAFETY: an ibv_grh is 40 bytes, and `grh` has that many.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&mut header as *mut ibv_grh).cast(), GRH_LEN) };
        // SAFETY: the device is open; the call reads completion and header, and writes the attributes.
        let result = unsafe { ibv_init_ah_from_wc(self.raw(), port, &mut wc.to_c(), &mut header, &mut attr) };
        minus_one("ibv_init_ah_from_wc", result)?;
        Ok(AhAttr(attr))
    }
}

/// `event->param.ud`: where datagrams are to be sent.
#[derive(Clone, Copy)]
pub struct UdParam {
    /// The way there, for [`ProtectionDomain::create_ah`].
    pub ah_attr: AhAttr,
    /// The QP there.
    pub qp_num: u32,
    /// The key that it asks for.
    pub qkey: u32,
}

impl CmEvent {
    /// `event->param.ud`, in ESTABLISHED and MULTICAST_JOIN of an id for datagrams.
    ///
    /// # Errors
    /// `Kind::Misuse` if the id is for connections.
    pub fn ud_param(&self) -> Result<UdParam> {
        let param = self
            .ud()
            .ok_or_else(|| Error::of(Kind::Misuse, "this id is for connections", "Create it for PortSpace::Udp"))?;
        Ok(UdParam { ah_attr: AhAttr(param.ah_attr), qp_num: param.qp_num, qkey: param.qkey })
    }
}

/// An address handle.
pub struct AddressHandle(Rc<Inner>);

/// What a posted work request keeps.
pub(crate) struct Inner {
    raw: *mut ibv_ah,
    pd: ProtectionDomain,
}

impl ProtectionDomain {
    /// `ibv_create_ah`. On Ethernet the kernel looks up the machine's MAC address now, and may have to ask for it.
    ///
    /// # Errors
    /// `Error::Call`: EINVAL for a GID that is not the port's, ETIMEDOUT or EHOSTUNREACH if the machine does not answer.
    #[track_caller]
    pub fn create_ah(&self, to: &AhAttr) -> Result<AddressHandle> {
        slow!("ibv_create_ah {to}");
        // SAFETY: the PD is alive, and kept; the call copies the attributes.
        let raw = null("ibv_create_ah", unsafe { ibv_create_ah(self.raw(), &mut to.0.clone()) })?;
        Ok(AddressHandle(Rc::new(Inner { raw, pd: self.share() })))
    }
}

impl AddressHandle {
    pub(crate) fn raw(&self) -> *mut ibv_ah {
        self.0.raw
    }

    pub(crate) fn context(&self) -> &Context {
        self.0.pd.context()
    }

    /// A share of the handle, for a posted work request.
    pub(crate) fn keep(&self) -> Rc<Inner> {
        Rc::clone(&self.0)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        slow!("ibv_destroy_ah");
        // SAFETY: from ibv_create_ah. Posted work requests share Inner, so none is under way.
        if let Err(error) = positive_errno("ibv_destroy_ah", unsafe { ibv_destroy_ah(self.raw) }) {
            narrate::failure(&error.to_string());
        }
    }
}

/// Where a datagram goes: to a QP of a machine, or to [`Destination::GROUP`].
pub struct Destination {
    /// The way to the machine, or to the group's members.
    pub ah: AddressHandle,
    /// The QP there.
    pub qp_num: u32,
    /// The key that the QP asks for: a datagram with another one is dropped there.
    pub qkey: u32,
}

impl Destination {
    /// The number that all QPs of a multicast group share.
    pub const GROUP: u32 = 0xff_ffff;
}

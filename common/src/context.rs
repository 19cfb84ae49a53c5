//! `ibv_context`: an RDMA device, opened. Everything else on a device begins here (man 3 ibv_open_device,
//! ibv_query_device, ibv_query_port, ibv_query_gid).
//!
//! There are two ways to one. An id that knows its device lends its own, `id->verbs`: what is used with that id must be
//! made from it. And a device can be opened by its name, without any connection manager. Drop closes a device that was
//! opened; one that is lent stays with librdmacm, which closes it after the last id on a device that has been removed. So
//! a lent context keeps its id.

use std::ffi::{CStr, CString};
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;

use rdma_sys::*;

use crate::c_enum::c_enum;
use crate::cm::id::CmId;
use crate::error::{null, positive_errno, Error, Kind, Result};
use crate::mtu::Mtu;
use crate::{narrate, slow};

/// An open device.
pub struct Context(Rc<Inner>);

struct Inner {
    raw: *mut ibv_context,
    /// Whose device it is. None: ours, opened by name.
    lender: Option<CmId>,
}

/// `ibv_device_attr`, the part that programs here need: what one device can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceAttr {
    /// Queue pairs.
    pub max_qp: i32,
    /// Requests in each queue of a QP.
    pub max_qp_wr: i32,
    /// Scatter/gather elements in a request.
    pub max_sge: i32,
    /// Completions in a CQ.
    pub max_cqe: i32,
    /// READs and atomics that a QP answers at a time: the most for `responder_resources`.
    pub max_qp_rd_atom: i32,
    /// READs and atomics that a QP has under way at a time: the most for `initiator_depth`.
    pub max_qp_init_rd_atom: i32,
}

c_enum! {
    /// `ibv_port_state`: packets pass in ACTIVE.
    PortState = ibv_port_state else "port state" {
        IBV_PORT_NOP IBV_PORT_DOWN IBV_PORT_INIT IBV_PORT_ARMED IBV_PORT_ACTIVE IBV_PORT_ACTIVE_DEFER
    }
}

/// `ibv_port_attr`, the part that a connection without the connection manager needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortAttr {
    /// Whether it is up.
    pub state: PortState,
    /// The most payload in a packet: 256, 512, 1024, 2048 or 4096 bytes.
    pub active_mtu: Mtu,
    /// The port's address inside an InfiniBand subnet. 0 on Ethernet, where the GID says it all.
    pub lid: u16,
    /// How many GIDs the port has room for.
    pub gid_tbl_len: i32,
}

impl CmId {
    /// `id->verbs`: the device, known once the id is bound to an address of one, has resolved the peer's, or came with a
    /// connect request. A listener on all addresses (`::`) has none.
    ///
    /// # Errors
    /// `Kind::NoDevice` if the id has none yet.
    pub fn verbs(&self) -> Result<Context> {
        Ok(Context(Rc::new(Inner { raw: self.device()?, lender: Some(self.clone()) })))
    }
}

impl Context {
    /// `ibv_open_device`: the device with this name, for example `rxe0` (`rdma link` lists them).
    ///
    /// # Errors
    /// `Kind::NoDevice` if none has this name; `Error::Call`, EACCES, if it may not be opened.
    #[track_caller]
    pub fn open(name: &str) -> Result<Self> {
        slow!("ibv_open_device {name}");
        let unknown =
            || Error::of(Kind::NoDevice, format!("there is no RDMA device {name:?}"), "`rdma link` lists the devices");
        let name = CString::new(name).map_err(|_| unknown())?;
        // SAFETY: the list is NULL or ends with NULL, and lives until it is freed; a device may be opened until then.
        let raw = unsafe {
            let list = null("ibv_get_device_list", ibv_get_device_list(std::ptr::null_mut()))?;
            let devices = (0..).map(|at| *list.add(at)).take_while(|device| !device.is_null());
            let mut named = devices.filter(|device| CStr::from_ptr(ibv_get_device_name(*device)) == name.as_c_str());
            let opened = named.next().map(|device| null("ibv_open_device", ibv_open_device(device)));
            ibv_free_device_list(list);
            opened.ok_or_else(unknown)??
        };
        Ok(Self(Rc::new(Inner { raw, lender: None })))
    }

    /// The device's name.
    pub fn name(&self) -> String {
        // SAFETY: the device is open; its name lives as long.
        unsafe { CStr::from_ptr(ibv_get_device_name((*self.raw()).device)) }.to_string_lossy().into_owned()
    }

    /// `ibv_query_device`.
    ///
    /// # Errors
    /// `Error::Call` if the device does not answer.
    #[track_caller]
    pub fn query_device(&self) -> Result<DeviceAttr> {
        slow!("ibv_query_device");
        // SAFETY: plain data, for which zero is a value; the device is open, and the struct is written.
        let (result, attr) = unsafe {
            let mut attr: ibv_device_attr = std::mem::zeroed();
            (ibv_query_device(self.raw(), &mut attr), attr)
        };
        positive_errno("ibv_query_device", result)?;
        Ok(DeviceAttr {
            max_qp: attr.max_qp,
            max_qp_wr: attr.max_qp_wr,
            max_sge: attr.max_sge,
            max_cqe: attr.max_cqe,
            max_qp_rd_atom: attr.max_qp_rd_atom,
            max_qp_init_rd_atom: attr.max_qp_init_rd_atom,
        })
    }

    /// `ibv_query_port`. The first port is number 1.
    ///
    /// # Errors
    /// `Error::Call`, EINVAL, if there is no such port.
    #[track_caller]
    pub fn query_port(&self, port: u8) -> Result<PortAttr> {
        slow!("ibv_query_port port={port}");
        // SAFETY: plain data, for which zero is a value; the device is open, and the struct is written.
        let (result, attr) = unsafe {
            let mut attr: ibv_port_attr = std::mem::zeroed();
            (___ibv_query_port(self.raw(), port, &mut attr), attr)
        };
        positive_errno("ibv_query_port", result)?;
        let (state, active_mtu) = (PortState(attr.state), Mtu(attr.active_mtu));
        Ok(PortAttr { state, active_mtu, lid: attr.lid, gid_tbl_len: attr.gid_tbl_len })
    }

    /// One of the counters of a port, `hw_counters` in sysfs, by the name that its driver gave it; since the device was made.
    /// None if it has no such counter. A device in user space has none at all.
    pub fn hw_counter(&self, port: u8, name: &str) -> Option<u64> {
        let file = format!("/sys/class/infiniband/{}/ports/{port}/hw_counters/{name}", self.name());
        std::fs::read_to_string(file).ok()?.trim().parse().ok()
    }

    /// `ibv_query_gid`: an address of the port. On Ethernet each of the netdev's IP addresses is one, an IPv4 address
    /// mapped into IPv6; all zeroes is an empty place.
    ///
    /// # Errors
    /// `Error::Call` if there is no such port, or the index is outside its table.
    #[track_caller]
    pub fn query_gid(&self, port: u8, index: i32) -> Result<Ipv6Addr> {
        slow!("ibv_query_gid port={port} index={index}");
        let mut gid = ibv_gid { raw: [0; 16] };
        // SAFETY: the device is open, and the GID is written.
        let result = unsafe { ibv_query_gid(self.raw(), port, index, &mut gid) };
        match result {
            // SAFETY: 16 bytes are a GID in every form.
            0 => Ok(unsafe { gid.raw }.into()),
            _ => Err(crate::error::last_errno("ibv_query_gid")),
        }
    }

    /// The GID for an IP address of the port's netdev, and its place in the port's table. Often the same address
    /// is there twice: for RoCEv1, which has no IP header, and for RoCEv2. Only sysfs says which is which. If both programs
    /// run on one machine, they may meet on a loopback address, which has no GID. If the port has a single GID, this returns that one.
    ///
    /// # Errors
    /// `Kind::NoAddress` if the port has none for this address.
    #[track_caller]
    pub fn find_gid(&self, port: u8, ip: IpAddr) -> Result<(u8, Ipv6Addr)> {
        let wanted = match ip {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let types = format!("/sys/class/infiniband/{}/ports/{port}/gid_attrs/types", self.name());
        let mut others = Vec::new();
        for index in 0..=u8::MAX {
            // An empty place cannot be read.
            let kind = std::fs::read_to_string(format!("{types}/{index}")).unwrap_or_default();
            if kind.trim_end() == "RoCE v2" {
                let gid = self.query_gid(port, index.into())?;
                if gid == wanted {
                    return Ok((index, gid));
                }
                others.push((index, gid));
            }
        }
        if let ([only], true) = (&others[..], ip.is_loopback()) {
            return Ok(*only);
        }
        let what = format!("the device {} has no RoCEv2 GID for the address {ip}", self.name());
        Err(Error::of(Kind::NoAddress, what, "`rdma link` tells the device's netdev: use an address of that one"))
    }

    pub(crate) fn raw(&self) -> *mut ibv_context {
        self.0.raw
    }

    /// Another handle on the same device, for all that lives on it.
    pub(crate) fn share(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.lender.is_some() {
            return;
        }
        slow!("ibv_close_device");
        // SAFETY: from ibv_open_device; everything on it shares Inner, so nothing is left.
        if unsafe { ibv_close_device(self.raw) } != 0 {
            narrate::failure("ibv_close_device failed");
        }
    }
}

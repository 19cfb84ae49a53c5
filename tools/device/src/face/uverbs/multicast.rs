//! Multicast groups: which queue pairs take the datagrams that are sent to one. The node joins a group for the first of them, and
//! leaves it after the last.

use super::{Answer, Command, Done};
use crate::abi::AttachMcast;
use crate::node::{errno, Nic};
use nic::cm::address_in;
use nic::qp::Service;
use rustix::io::Errno;
use std::net::IpAddr;

pub fn attach(nic: &mut Nic, command: &mut Command) -> Answer {
    let (group, qp) = asked(nic, command)?;
    if nic.groups.attach(group, qp).map_err(errno)? {
        if let Err(error) = nic.port.join(group) {
            let _ = nic.groups.detach(group, qp);
            return Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL));
        }
    }
    Ok(Done::default())
}

pub fn detach(nic: &mut Nic, command: &mut Command) -> Answer {
    let (group, qp) = asked(nic, command)?;
    if nic.groups.detach(group, qp).map_err(errno)? {
        nic.port.leave(group);
    }
    Ok(Done::default())
}

/// Which group it is about, and which queue pair: one for datagrams.
fn asked(nic: &Nic, command: &Command) -> Result<(IpAddr, u32), Errno> {
    let AttachMcast { gid, qp_handle, .. } = command.input();
    let service = nic.qps.get(command.file, qp_handle)?.qp.settings().service;
    (service == Service::Ud).then_some((address_in(gid), qp_handle)).ok_or(Errno::INVAL)
}

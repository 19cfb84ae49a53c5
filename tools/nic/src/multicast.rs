//! Multicast groups: which queue pairs of this device take the datagrams that are sent to a group (specification, volume 1, chapter 10).
//!
//! A group is an IP address. A datagram to it goes to [`Destination::GROUP`] instead of a queue pair; whoever has joined, on any
//! machine, gets a copy. The network makes the copies for machines, the device those for queue pairs.

use crate::datagram::Route;
use crate::errno::Errno;
use crate::packet::Packet;
use crate::work::Destination;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// All groups that a queue pair of this device has joined.
#[derive(Debug, Default)]
pub struct Groups(BTreeMap<IpAddr, Vec<u32>>);

impl Groups {
    /// So many queue pairs can be in a group: as with rdma_rxe (Linux 6.12).
    pub const MEMBERS: usize = 56;

    /// Makes a queue pair for datagrams a member (`ibv_attach_mcast`); who is one already stays it. True if it is the first one:
    /// the machine has to join the group now, too.
    ///
    /// # Errors
    /// `EINVAL`: this is no group's address. `ENOMEM`: it has [`Groups::MEMBERS`] already.
    pub fn attach(&mut self, group: IpAddr, qp: u32) -> Result<bool, Errno> {
        if !group.is_multicast() {
            return Err(Errno::EINVAL);
        }
        let members = self.0.entry(group).or_default();
        let is_first = members.is_empty();
        match members.contains(&qp) {
            true => {}
            false if members.len() < Self::MEMBERS => members.push(qp),
            false => return Err(Errno::ENOMEM),
        }
        Ok(is_first)
    }

    /// Ends a membership (`ibv_detach_mcast`). True if it was the last one: the machine leaves the group.
    ///
    /// # Errors
    /// `EINVAL`: it was no member.
    pub fn detach(&mut self, group: IpAddr, qp: u32) -> Result<bool, Errno> {
        let members = self.0.get_mut(&group).ok_or(Errno::EINVAL)?;
        let at = members.iter().position(|member| *member == qp).ok_or(Errno::EINVAL)?;
        members.remove(at);
        let was_last = members.is_empty();
        if was_last {
            self.0.remove(&group);
        }
        Ok(was_last)
    }

    /// The groups that a queue pair has joined: as long as there are any, it cannot be destroyed.
    pub fn of(&self, qp: u32) -> Vec<IpAddr> {
        self.0.iter().filter(|(_, members)| members.contains(&qp)).map(|(group, _)| *group).collect()
    }

    /// Who gets a packet that has come to a group: all members, but not the one that has sent it. `own` is this device's address.
    pub fn receivers(&self, route: Route, packet: &Packet, own: IpAddr) -> Vec<u32> {
        let members = self.0.get(&route.to).filter(|_| packet.dest_qp == Destination::GROUP);
        let is_sender = |qp: u32| route.from == own && packet.deth.src_qp == qp;
        members.into_iter().flatten().copied().filter(|qp| !is_sender(*qp)).collect()
    }
}

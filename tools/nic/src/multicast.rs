//! Multicast groups: which queue pairs of this device take the datagrams that are sent to a group (specification, volume 1, chapter 10).
//!
//! A group is an IP address. A datagram for it names [`Destination::GROUP`] instead of a queue pair, and whoever has joined the
//! group gets a copy, on any machine. The network makes the copies for the machines, and the device those for its queue pairs.

use crate::datagram::Route;
use crate::errno::Errno;
use crate::packet::Packet;
use crate::work::Destination;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// All the groups that queue pairs of this device have joined.
#[derive(Debug, Default)]
pub struct Groups(BTreeMap<IpAddr, Vec<u32>>);

impl Groups {
    /// How many queue pairs can be in a group, as with rdma_rxe (Linux 6.12).
    pub const MEMBERS: usize = 56;

    /// Makes a datagram queue pair a member (`ibv_attach_mcast`); a member stays one. True if it's the first, because then the
    /// machine has to join the group as well.
    ///
    /// # Errors
    /// `EINVAL`: this isn't a group's address. `ENOMEM`: the group has [`Groups::MEMBERS`] already.
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

    /// Ends a membership (`ibv_detach_mcast`). True if it was the last one, because then the machine leaves the group.
    ///
    /// # Errors
    /// `EINVAL`: it wasn't a member.
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

    /// The groups that a queue pair has joined. As long as there are any, it can't be destroyed.
    pub fn of(&self, qp: u32) -> Vec<IpAddr> {
        self.0.iter().filter(|(_, members)| members.contains(&qp)).map(|(group, _)| *group).collect()
    }

    /// Who gets a packet that was sent to a group: every member except its sender. `own` is this device's address.
    pub fn receivers(&self, route: Route, packet: &Packet, own: IpAddr) -> Vec<u32> {
        let members = self.0.get(&route.to).filter(|_| packet.dest_qp == Destination::GROUP);
        let is_sender = |qp: u32| route.from == own && packet.deth.src_qp == qp;
        members.into_iter().flatten().copied().filter(|qp| !is_sender(*qp)).collect()
    }
}

//! Multicast groups (rdma_join_multicast(3)). On Ethernet nobody is asked: the event says at once where to send to, and librdmacm
//! attaches the queue pair to the group's GID, which is what lets its messages in.

use super::abi::{self, UdParam};
use super::events::{Event, MULTICAST_JOIN};
use super::id::State;
use super::{answer, command, Done, Ids, Then};
use crate::abi::AhAttr;
use crate::machine::Asker;
use bytemuck::{bytes_of, Zeroable};
use nic::cm::UDP_QKEY;
use rustix::io::Errno;
use std::net::SocketAddr;

/// The number of the queue pair that every member is.
const MULTICAST_QP: u32 = 0xff_ffff;
/// What Linux says of IPv6 here, RoCE version 2 and all: an errno that no program has a name for.
const ENOTSUPP: i32 = 524;

/// An id's membership. It has a number of its own, and the program's name for it.
#[derive(Debug)]
pub(super) struct Group {
    pub id: u32,
    /// Events that the program has fetched.
    pub reported: u32,
}

impl Ids {
    /// rdma_join_multicast(3).
    pub(super) fn join(&mut self, asker: &Asker) -> Result<Done, Errno> {
        let command: abi::JoinIpMcast = command(asker)?;
        let address = command.addr.read().ok_or(Errno::INVAL)?;
        let id = self.id_with_device(asker.file, command.id)?;
        let is_early = matches!(id.state, State::Bound | State::HasAddress);
        if !is_early || !id.is_datagrams() || address.ip().is_unspecified() {
            return Err(Errno::INVAL);
        }
        let SocketAddr::V4(address) = address else { return Err(Errno::from_raw_os_error(ENOTSUPP)) };
        let ah_attr = AhAttr::to((*address.ip()).into(), id.options.tos);
        let param = UdParam { qp_num: MULTICAST_QP, qkey: UDP_QKEY, ah_attr, ..UdParam::zeroed() };
        let number = self.number();
        self.groups.insert(number, Group { id: command.id, reported: 0 });
        let mut response =
            abi::EventResp { uid: command.uid, id: number, event: MULTICAST_JOIN, ..abi::EventResp::zeroed() };
        response.param.copy_from_slice(bytes_of(&param));
        self.post(Event { about: command.id, response });
        answer(command.response, &number, Then::Joined(number))
    }

    /// rdma_leave_multicast(3): the answer is how many events were fetched.
    pub(super) fn leave(&mut self, asker: &Asker) -> Result<Done, Errno> {
        let command: abi::DestroyId = command(asker)?;
        let group = self.groups.get(&command.id).ok_or(Errno::NOENT)?;
        let (id, reported) = (group.id, group.reported);
        self.id(asker.file, id)?;
        self.take_events_of(command.id, id);
        answer(command.response, &reported, Then::Left(command.id))
    }

    pub(super) fn forget_group(&mut self, number: u32) {
        if let Some(group) = self.groups.remove(&number) {
            self.take_events_of(number, group.id);
        }
    }

    fn take_events_of(&mut self, group: u32, id: u32) {
        let Some(file) = self.ids.get(&id).map(|id| id.file) else { return };
        self.take_out(file, |event| event.response.event == MULTICAST_JOIN && event.response.id == group);
    }
}

//! Ids: their states, their making and their end (rdma_create_id(3), rdma_destroy_id(3)), and their moves from one channel to
//! another (rdma_migrate_id(3)).

use super::abi::{self, port_space, qp_type};
use super::events::{self, Event};
use super::options::Options;
use super::{answer, command, Done, Ids, Net, Then};
use crate::machine::{Asker, FileId};
use bytemuck::Zeroable;
use nic::cm::Space;
use rustix::io::Errno;
use std::net::SocketAddr;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Idle,
    Bound,
    HasAddress,
    HasRoute,
    Listen,
    Connect,
    Disconnect,
    /// Destroyed, but the program has not heard of that yet.
    Gone,
}

#[derive(Debug, Default)]
pub(super) struct Id {
    pub file: FileId,
    /// 0 if the program has not said yet that it takes it: until then it gets no events.
    pub uid: u64,
    pub port_space: u16,
    pub qp_type: u8,
    pub state: State,
    pub own: Option<SocketAddr>,
    pub peer: Option<SocketAddr>,
    /// Bound to the device's address, not only to a port.
    pub has_device: bool,
    /// It has come with a REQ: its port is the listener's.
    pub is_guest: bool,
    /// Its connection's number; also after the end.
    pub connection: Option<u32>,
    pub options: Options,
    /// Events that the program has fetched.
    pub reported: u32,
}

impl Id {
    /// Where its service is looked for.
    pub(super) fn space(&self) -> Result<Space, Errno> {
        match self.port_space {
            port_space::TCP => Ok(Space::Tcp),
            port_space::UDP => Ok(Space::Udp),
            port_space::IB if self.qp_type == qp_type::RC => Ok(Space::Ib),
            _ => Err(Errno::OPNOTSUPP),
        }
    }

    pub(super) fn is_datagrams(&self) -> bool {
        self.qp_type == qp_type::UD
    }
}

impl Ids {
    /// An id of the asker's.
    pub(super) fn id(&mut self, file: FileId, number: u32) -> Result<&mut Id, Errno> {
        let id = self.ids.get_mut(&number).filter(|id| id.state != State::Gone).ok_or(Errno::NOENT)?;
        if id.file == file {
            Ok(id)
        } else {
            Err(Errno::INVAL)
        }
    }

    /// One that is bound to the device.
    pub(super) fn id_with_device(&mut self, file: FileId, number: u32) -> Result<&mut Id, Errno> {
        self.id(file, number).and_then(|id| if id.has_device { Ok(id) } else { Err(Errno::INVAL) })
    }

    /// A number that nothing else here has. The connection manager knows an id by it, and nobody by 0.
    pub(super) fn number(&mut self) -> u32 {
        loop {
            self.last_number = self.last_number.wrapping_add(1);
            let number = self.last_number;
            if number != 0 && !self.ids.contains_key(&number) && !self.groups.contains_key(&number) {
                return number;
            }
        }
    }

    /// rdma_create_id(3).
    pub(super) fn create(&mut self, asker: &Asker) -> Result<Done, Errno> {
        let command: abi::CreateId = command(asker)?;
        let qp_type = match command.ps {
            port_space::TCP => qp_type::RC,
            port_space::UDP | port_space::IPOIB => qp_type::UD,
            port_space::IB => command.qp_type,
            _ => return Err(Errno::INVAL),
        };
        let number = self.number();
        let (file, uid, port_space) = (asker.file, command.uid, command.ps);
        self.ids.insert(number, Id { file, uid, port_space, qp_type, ..Id::default() });
        answer(command.response, &number, Then::Created(number))
    }

    /// rdma_destroy_id(3): the answer is how many events were fetched, so that the library can wait for as many to be
    /// acknowledged.
    pub(super) fn destroy(&mut self, net: &mut Net, asker: &Asker) -> Result<Done, Errno> {
        let command: abi::DestroyId = command(asker)?;
        if !self.ids.get(&command.id).is_some_and(|id| id.state == State::Gone && id.file == asker.file) {
            self.id(asker.file, command.id)?;
            self.end(net, command.id);
        }
        let reported = self.ids.get(&command.id).map_or(0, |id| id.reported);
        answer(command.response, &reported, Then::Destroyed(command.id))
    }

    /// Ends what an id has to do with others. Its events are dropped, and who has knocked meanwhile is turned away.
    pub(super) fn end(&mut self, net: &mut Net, number: u32) {
        let Some(id) = self.ids.get_mut(&number) else { return };
        id.state = State::Gone;
        let (file, connection) = (id.file, id.connection.take().unwrap_or_default());
        net.cm.close(number.into(), connection, net.now, net.out);
        self.groups.retain(|_, group| group.id != number);
        for event in self.take_out(file, |event| event.about == number) {
            if event.response.event == events::CONNECT_REQUEST {
                self.end(net, event.response.id);
                self.ids.remove(&event.response.id);
            }
        }
    }

    /// rdma_migrate_id(3): to the file that the command was written to, from one that a descriptor names. Events that wait come
    /// along, and with them the ids of those who have knocked.
    pub(super) fn migrate(
        &mut self,
        asker: &Asker,
        file_of: impl FnOnce(u32) -> Option<FileId>,
    ) -> Result<Done, Errno> {
        let command: abi::MigrateId = command(asker)?;
        let from = file_of(command.fd).ok_or(Errno::NOENT)?;
        let id = self.id(from, command.id)?;
        id.file = asker.file;
        let reported = id.reported;
        for event in self.take_out(from, |event| event.about == command.id && from != asker.file) {
            if event.response.event == events::CONNECT_REQUEST {
                self.ids.entry(event.response.id).and_modify(|guest| guest.file = asker.file);
            }
            self.post(event);
        }
        answer(command.response, &reported, Then::Nothing)
    }

    /// Puts an event without a message behind it in its id's queue.
    pub(super) fn post_plain(&mut self, number: u32, event: u32, status: i32) {
        let Some(id) = self.ids.get(&number) else { return };
        let response = abi::EventResp { uid: id.uid, id: number, event, status, ..abi::EventResp::zeroed() };
        self.post(Event { about: number, response });
    }
}

//! Connections: the commands of `/dev/infiniband/rdma_cm`, which librdmacm writes (rdma_cm(7); `rdma/rdma_user_cm.h`).
//!
//! An id is the kernel's part of a `rdma_cm_id`. It has a number, its program's name for it (`uid`), and the open file that its
//! events go to. The messages to other devices are those of [`nic::cm`] (specification, volume 1, chapter 12). Which call is
//! refused in which state, and with which errno, is as in Linux (`drivers/infiniband/core/cma.c` and `ucma.c`):
//!
//! ```text
//!       bind          resolve_addr              resolve_route              connect          DREQ, or our own is answered
//! Idle ──────▶ Bound ──────────────▶ HasAddress ──────────────▶ HasRoute ──────────▶ Connect ───────────────────▶ Disconnect
//!                │ listen                                                               ▲
//!                └────────▶ Listen ─ ─ ─ ─ a REQ or a SIDR_REQ, with which a new id begins
//! ```
//!
//! An id that was rejected stays in Connect: only its event tells of that.
//!
//! The node's loop carries a command out ([`Ids::command`]), sends the messages that result, and only then answers
//! ([`Ids::answer`]): so a message is out before the program goes on. Events of the connection manager it hands in
//! ([`Ids::deliver`], and then [`Ids::settle`]). Now and then it looks after those who wait ([`Ids::tick`]).
//!
//! Nothing of a command is trusted: it is copied before it is read, and what it names is looked up.

pub mod abi;
mod address;
mod connect;
mod events;
mod group;
mod id;
mod incoming;
mod options;
mod qp;
#[cfg(test)]
mod tests;

use crate::face::failed;
use crate::machine::{Asker, Call, FileId, Machine};
use crate::node::tap::Tap;
use crate::node::{errno, Net};
use abi::{command, Header};
use bytemuck::{bytes_of, Pod};
use events::{File, Waiting};
use group::Group;
use id::Id;
use nic::cm::{Cm, CmEffect};
use nic::fact::Fact;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem::size_of;
use std::net::IpAddr;
use std::sync::Arc;

/// All ids of a node.
#[derive(Debug)]
pub struct Ids {
    /// The device's.
    address: IpAddr,
    /// Where events are told.
    tap: Arc<Tap>,
    ids: BTreeMap<u32, Id>,
    groups: BTreeMap<u32, Group>,
    files: BTreeMap<FileId, File>,
    /// Files whose queue has changed since [`Ids::settle`].
    touched: Vec<FileId>,
    /// Calls that wait on a channel which another thread has closed.
    lost: VecDeque<Waiting>,
    /// Files of which a program has closed a descriptor; None if nobody asks.
    closing: Option<BTreeSet<FileId>>,
    last_number: u32,
}

/// What is left to be done when a command was carried out.
#[derive(Debug)]
pub enum Done {
    /// To say so.
    All,
    /// The same; an id listens now.
    Listens,
    /// To write the answer, and then to do what is only right once the program knows of it.
    Answer { to: u64, bytes: Vec<u8>, then: Then },
    /// To wait for an event.
    Fetch { to: u64, room: usize },
}

/// What a program learns from an answer. A call that was interrupted on its way back has not told it: it is made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Nothing,
    Created(u32),
    Destroyed(u32),
    Joined(u32),
    Left(u32),
}

/// A command's name, what it asks for, and its result.
pub fn told(asker: &Asker, done: &Result<Done, Errno>) -> Fact {
    let number = asker.read::<Header>(0).map_or(0, |header| header.cmd);
    let call = Fact::new("call").with("call", command::name(number).unwrap_or("a command that is not here"));
    let call = match number {
        command::BIND_IP => address::asks(call, command(asker)),
        command::CONNECT => connect::asks(call, command::<abi::Connect>(asker).map(|command| command.conn_param)),
        command::ACCEPT => connect::asks(call, command::<abi::Accept>(asker).map(|command| command.conn_param)),
        _ => call,
    };
    match done {
        Ok(Done::Answer { then: Then::Created(id), .. }) => call.with("made", "id").with("handle", id),
        Ok(Done::Fetch { .. }) => call.with("result", "an event, or a wait for one"),
        Ok(_) => call.with("result", 0),
        Err(errno) => failed(call, *errno),
    }
}

/// A command behind its header.
fn command<T: Pod>(asker: &Asker) -> Result<T, Errno> {
    asker.read(size_of::<Header>())
}

fn answer(to: u64, value: &impl Pod, then: Then) -> Result<Done, Errno> {
    Ok(Done::Answer { to, bytes: bytes_of(value).to_vec(), then })
}

/// How much room a command's answer needs; what newer versions have added to it need not fit.
fn room(command: u32) -> usize {
    match command {
        command::CREATE_ID | command::DESTROY_ID | command::JOIN_IP_MCAST | command::LEAVE_MCAST => size_of::<u32>(),
        command::QUERY_ROUTE => size_of::<abi::QueryRouteResp>() - 8,
        command::INIT_QP_ATTR => size_of::<crate::abi::QpAttr>(),
        command::GET_EVENT => size_of::<abi::EventResp>() - 12,
        _ => 0,
    }
}

impl Ids {
    pub fn new(address: IpAddr, tap: Arc<Tap>, is_strict: bool) -> Ids {
        let (ids, groups, files) = Default::default();
        let closing = is_strict.then(BTreeSet::new);
        Ids { address, tap, ids, groups, files, touched: Vec::new(), lost: VecDeque::new(), closing, last_number: 0 }
    }

    /// Carries out a command. `file_of` knows which open rdma_cm one of the process's descriptors is.
    ///
    /// # Errors
    /// Those of Linux: EINVAL for a header or a state that does not fit, or another file's id; ENOENT for an id that is none;
    /// EFAULT for memory that is not the program's; ENOSPC for too little room for the answer; ENOSYS for a command that is
    /// refused; and what the call's manual page says.
    pub fn command(
        &mut self,
        net: &mut Net,
        asker: &Asker,
        file_of: impl FnOnce(u32) -> Option<FileId>,
    ) -> Result<Done, Errno> {
        if asker.length < size_of::<Header>() {
            return Err(Errno::INVAL);
        }
        let header: Header = asker.read(0)?;
        if command::name(header.cmd).is_none() || usize::from(header.input) + size_of::<Header>() > asker.length {
            return Err(Errno::INVAL);
        }
        if usize::from(header.out) < room(header.cmd) {
            return Err(Errno::NOSPC);
        }
        let mut done = match header.cmd {
            command::CREATE_ID => self.create(asker)?,
            command::DESTROY_ID => self.destroy(net, asker)?,
            command::BIND_IP => self.bind_ip(net, asker)?,
            command::RESOLVE_IP => self.resolve_ip(net, asker)?,
            command::RESOLVE_ROUTE => self.resolve_route(asker)?,
            command::QUERY_ROUTE => self.query_route(asker)?,
            command::CONNECT => self.connect(net, asker, header.input)?,
            command::LISTEN => self.listen(net, asker)?,
            command::ACCEPT => self.accept(net, asker, header.input)?,
            command::REJECT => self.reject(net, asker)?,
            command::DISCONNECT => self.disconnect(net, asker)?,
            command::INIT_QP_ATTR => self.init_qp_attr(net, asker)?,
            command::GET_EVENT => {
                Done::Fetch { to: command::<abi::GetEvent>(asker)?.response, room: header.out.into() }
            }
            command::SET_OPTION => self.set_option(asker)?,
            command::NOTIFY => self.notify(net, asker)?,
            command::JOIN_IP_MCAST => self.join(asker)?,
            command::LEAVE_MCAST => self.leave(asker)?,
            command::MIGRATE_ID => self.migrate(asker, file_of)?,
            _ => return Err(Errno::NOSYS),
        };
        if let Done::Answer { bytes, .. } = &mut done {
            bytes.truncate(header.out.into());
        }
        Ok(done)
    }

    /// Tells the caller the result of its command, but not before its channels are as readable as they should be.
    pub fn answer(&mut self, cm: &mut Cm, machine: &mut Machine, call: Call, asker: Asker, done: Result<Done, Errno>) {
        self.settle(cm, machine);
        let length = asker.length as i64;
        match done {
            Ok(Done::Fetch { to, room }) => self.fetch(call, asker, to, room),
            Ok(Done::Answer { to, bytes, then }) => {
                let written = asker.process.write(to, &bytes).map(|()| length);
                let is_heard = call.answer(written);
                self.then(then, is_heard && written.is_ok());
            }
            Ok(Done::All | Done::Listens) => drop(call.answer(Ok(length))),
            Err(errno) => drop(call.answer(Err(errno))),
        }
        self.settle(cm, machine);
    }

    fn then(&mut self, then: Then, is_heard: bool) {
        match (then, is_heard) {
            (Then::Created(id), false) | (Then::Destroyed(id), true) => drop(self.ids.remove(&id)),
            (Then::Joined(group), false) | (Then::Left(group), true) => self.forget_group(group),
            _ => {}
        }
    }

    /// A program closes a descriptor of an event channel's file: rdma_destroy_event_channel(3) does. A program that ends does not.
    pub fn closes(&mut self, file: FileId) {
        if let Some(closing) = &mut self.closing {
            closing.insert(file);
        }
    }

    /// The last descriptor of a file is gone: its program has ended, was killed, or has closed it. The peers hear of it.
    pub fn closed(&mut self, net: &mut Net, file: FileId) {
        let left = self.ids.values().filter(|id| id.file == file && id.state != id::State::Gone).count();
        if left > 0 {
            net.out.push(CmEffect::Say(Fact::new("left").with("objects", format_args!("{left} id"))));
        }
        if self.closing.as_mut().is_some_and(|closing| !closing.remove(&file)) {
            net.out.push(CmEffect::Say(Fact::new("left").with("objects", "1 event channel")));
        }
        self.forget_file(file);
        self.end_all(net, file);
    }

    fn end_all(&mut self, net: &mut Net, file: FileId) {
        let numbers: Vec<u32> = self.ids.iter().filter(|(_, id)| id.file == file).map(|(number, _)| *number).collect();
        for number in numbers {
            self.end(net, number);
            self.ids.remove(&number);
        }
    }
}

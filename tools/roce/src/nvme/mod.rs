//! NVMe over RDMA: what the messages of such a connection say, as far as a recording tells.
//!
//! A host connects once for each of its queues, and the private data of the ConnectRequest says which one it is. On that connection each
//! SEND of the host is a command, with or without data behind it, and each SEND of the controller is a completion. The data of other
//! commands moves by WRITE and READ, which the controller does with the key from the command. So to name a packet you must have seen what
//! came before: [`Queues`] remembers that. The module begins with a connection of which it has seen the ConnectRequest, and leaves all
//! others alone.

pub mod headers;
pub mod names;

use crate::cm::{Kind, Message};
use crate::field::{Field, Header};
use crate::opcode::Operation;
use crate::packet::Packet;
use crate::track::{Membership, Side};
use headers::{accept_data, blocks, command, completion, connect, dwords, fabrics, keyed_sgl, no_sgl, offset_sgl};
use headers::{property_get, property_set, reject_data, request_data};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::fmt::{self, Display, Formatter};

/// Where controllers listen, unless somebody tells them otherwise.
pub const PORT: u16 = 4420;
/// Bytes of a command; behind them in the capsule is its data, if any.
const COMMAND: usize = 64;
const SGL_AT: usize = 24;
const REST_AT: usize = 40;
const FABRICS: u8 = 0x7f;
/// How many commands of a queue are remembered, the latest ones. They stay after their completion, because it may come once more. Linux has
/// at most 128 under way.
const MOST: usize = 1024;

/// What a packet is to NVMe.
#[derive(Clone, Copy, Debug)]
pub enum Capsule<'a> {
    /// The private data of a message of the connection manager.
    Private(Kind, &'a [u8]),
    /// A command: its bytes, with what is behind them in this packet.
    Command(Command, &'a [u8]),
    /// The answer to a command, if that was seen.
    Completion(Option<Command>, &'a [u8]),
    /// A WRITE that brings a command's data to the host, or a READ Request that fetches it there.
    Data(Command),
}

/// A command, in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    pub id: u16,
    opcode: u8,
    /// The type of a Fabrics command, else nothing of interest.
    kind: u8,
    is_admin: bool,
    /// The key of its data, if that is in the host's memory.
    key: Option<u32>,
}

impl Command {
    /// Reads the first packet of a capsule; None if it's cut.
    fn read(bytes: &[u8], is_admin: bool) -> Option<Command> {
        let bytes = bytes.get(..COMMAND)?;
        let opcode = command::COMMAND_OPCODE.read(bytes)? as u8;
        let mut read = Command {
            id: command::COMMAND_ID.read(bytes)? as u16,
            opcode,
            kind: fabrics::COMMAND_TYPE.read(bytes)? as u8,
            is_admin,
            key: None,
        };
        let length = || keyed_sgl::LENGTH.read(&bytes[SGL_AT..]).filter(|length| *length > 0);
        if read.sgl().name == keyed_sgl::HEADER.name && bytes[REST_AT - 1] >> 4 == 4 && length().is_some() {
            read.key = keyed_sgl::KEY.read(&bytes[SGL_AT..]).map(|key| key as u32);
        }
        Some(read)
    }

    /// What it's called.
    pub fn name(self) -> &'static str {
        let name = match (self.opcode, self.is_admin) {
            (FABRICS, _) => names::fabrics(self.kind),
            (opcode, true) => names::admin(opcode),
            (opcode, false) => names::io(opcode),
        };
        name.unwrap_or("unknown command")
    }

    /// How the command's bytes from `SGL_AT` on are laid out, if they say where data is at all.
    fn sgl(self) -> &'static Header {
        match (self.opcode, self.kind) {
            (FABRICS, 0 | 4) => &no_sgl::HEADER,
            _ => &keyed_sgl::HEADER,
        }
    }

    /// How the command's last bytes are laid out.
    fn rest(self) -> &'static Header {
        match (self.opcode, self.kind, self.is_admin) {
            (FABRICS, 0, _) => &property_set::HEADER,
            (FABRICS, 1, _) => &connect::HEADER,
            (FABRICS, 4, _) => &property_get::HEADER,
            (1 | 2 | 5 | 8 | 0xc, _, false) => &blocks::HEADER,
            _ => &dwords::HEADER,
        }
    }

    /// Its headers, with where they begin.
    fn headers(self, bytes: &[u8]) -> [(usize, &'static Header); 3] {
        let first = if self.opcode == FABRICS { &fabrics::HEADER } else { &command::HEADER };
        let is_here = bytes.get(REST_AT - 1).is_some_and(|kind| *kind == 1);
        let sgl = match self.sgl() {
            sgl if sgl.name == keyed_sgl::HEADER.name && is_here => &offset_sgl::HEADER,
            sgl => sgl,
        };
        [(0, first), (SGL_AT, sgl), (REST_AT, self.rest())]
    }
}

impl Capsule<'_> {
    /// The same in another copy of its packet.
    pub fn within<'b>(&self, packet: &Packet<'b>) -> Capsule<'b> {
        match *self {
            Capsule::Private(kind, _) => {
                Capsule::Private(kind, packet.cm().map_or(&[], |message| message.private_data()))
            }
            Capsule::Command(command, _) => Capsule::Command(command, packet.payload()),
            Capsule::Completion(command, _) => Capsule::Completion(command, packet.payload()),
            Capsule::Data(command) => Capsule::Data(command),
        }
    }

    /// Its headers, with where in the payload or in the private data they begin.
    pub fn headers(&self) -> Vec<(usize, &'static Header)> {
        match self {
            Capsule::Private(Kind::ConnectRequest, _) => vec![(0, &request_data::HEADER)],
            Capsule::Private(Kind::ConnectReply, _) => vec![(0, &accept_data::HEADER)],
            Capsule::Private(Kind::ConnectReject, _) => vec![(0, &reject_data::HEADER)],
            Capsule::Command(command, bytes) => command.headers(bytes).to_vec(),
            Capsule::Completion(..) => vec![(0, &completion::HEADER)],
            Capsule::Private(..) | Capsule::Data(_) => Vec::new(),
        }
    }

    /// A field's value, by its name.
    pub fn field(&self, name: &str) -> Option<u64> {
        let (Capsule::Private(_, bytes) | Capsule::Command(_, bytes) | Capsule::Completion(_, bytes)) = self else {
            return None;
        };
        let mut fields = self.headers().into_iter().flat_map(|(at, header)| header.fields.iter().map(move |f| (at, f)));
        fields.find(|(_, field)| field.name == name).and_then(|(at, field)| field.read(bytes.get(at..)?))
    }
}

/// In a few words, as lanes have them.
impl Display for Capsule<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Capsule::Private(Kind::ConnectReject, data) => {
                write!(f, "NVMe: {}", names::rejection(read(reject_data::STATUS, data)))
            }
            Capsule::Private(Kind::ConnectReply, data) => {
                write!(f, "NVMe: {} receives", read(accept_data::CRQSIZE, data))
            }
            Capsule::Private(_, data) => match read(request_data::QUEUE_ID, data) {
                0 => f.write_str("NVMe admin queue"),
                queue => write!(f, "NVMe I/O queue {queue}"),
            },
            Capsule::Command(command, bytes) => command.write(bytes, f),
            Capsule::Completion(command, bytes) => {
                let name = command.map_or("command", Command::name);
                let status = names::status(read(completion::STATUS, bytes));
                write!(f, "NVMe {name} {:#x}: {status}", read(completion::COMMAND_ID, bytes))
            }
            Capsule::Data(command) => write!(f, "data of NVMe {} {:#x}", command.name(), command.id),
        }
    }
}

impl Command {
    fn write(self, bytes: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
        let rest = &bytes[REST_AT..];
        write!(f, "NVMe {} {:#x}", self.name(), self.id)?;
        match self.rest().name {
            name if name == blocks::HEADER.name => {
                write!(f, "  slba {}  nlb {}", read(blocks::START, rest), read(blocks::COUNT, rest) + 1)?;
            }
            name if name == connect::HEADER.name => write!(f, "  queue {}", read(connect::QUEUE_ID, rest))?,
            name if name == property_get::HEADER.name => {
                write!(f, "  {}", names::property(read(property_get::OFFSET, rest)))?;
            }
            name if name == property_set::HEADER.name => {
                let value = read(property_set::VALUE, rest);
                write!(f, "  {} = {value:#x}", names::property(read(property_set::OFFSET, rest)))?;
            }
            _ => {}
        }
        match self.key {
            Some(key) => write!(f, "  key {key:#x}"),
            None if bytes.len() > COMMAND => f.write_str("  data in capsule"),
            None => Ok(()),
        }
    }
}

/// A field that was looked for before, or 0.
fn read(field: Field, bytes: &[u8]) -> u64 {
    field.read(bytes).unwrap_or_default()
}

/// The queues of a recording: for each connection that is one, what was seen of it.
#[derive(Debug, Default)]
pub struct Queues(FxHashMap<usize, Queue>);

#[derive(Debug, Default)]
struct Queue {
    is_admin: bool,
    /// The latest one first, because their numbers and keys are used again.
    commands: VecDeque<Command>,
}

impl Queues {
    /// What the next packet is; None if it isn't NVMe's, or only acknowledges.
    #[inline]
    pub fn see<'a>(&mut self, packet: &Packet<'a>, seen: Option<Membership>) -> Option<Capsule<'a>> {
        match packet.cm() {
            Some(message) => self.message(&message, seen?),
            None if self.0.is_empty() => None,
            None => self.0.get_mut(&seen?.connection)?.see(packet, seen?.from),
        }
    }

    fn message<'a>(&mut self, message: &Message<'a>, seen: Membership) -> Option<Capsule<'a>> {
        let data = message.private_data();
        if message.kind == Kind::ConnectRequest {
            message.service().filter(|service| service.port() == Some(PORT))?;
            let is_admin = request_data::QUEUE_ID.read(data)? == 0;
            self.0.insert(seen.connection, Queue { is_admin, ..Queue::default() });
        }
        self.0.get(&seen.connection)?;
        let has_data = matches!(message.kind, Kind::ConnectRequest | Kind::ConnectReply | Kind::ConnectReject);
        // A connection manager that refuses by itself says nothing of NVMe.
        let is_ours = message.kind != Kind::ConnectReject || read(reject_data::STATUS, data) > 0;
        (has_data && is_ours).then_some(Capsule::Private(message.kind, data))
    }
}

impl Queue {
    fn see<'a>(&mut self, packet: &Packet<'a>, from: Side) -> Option<Capsule<'a>> {
        let payload = packet.payload();
        match (packet.opcode.operation, from) {
            (Operation::Send, Side::Client) if packet.opcode.is_first() => {
                let command = Command::read(payload, self.is_admin)?;
                self.commands.truncate(MOST - 1);
                self.commands.push_front(command);
                Some(Capsule::Command(command, payload))
            }
            (Operation::Send, Side::Server) if payload.len() == completion::HEADER.length => {
                let id = completion::COMMAND_ID.read(payload)? as u16;
                Some(Capsule::Completion(self.latest(|command| command.id == id), payload))
            }
            (Operation::Write | Operation::ReadRequest, Side::Server) => {
                let key = packet.remote()?.r_key;
                self.latest(|command| command.key == Some(key)).map(Capsule::Data)
            }
            _ => None,
        }
    }

    fn latest(&self, fits: impl Fn(&Command) -> bool) -> Option<Command> {
        self.commands.iter().copied().find(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command, with these bytes at these places.
    fn command(opcode: u8, bytes: &[(usize, u8)]) -> [u8; COMMAND] {
        let mut command = [0; COMMAND];
        (command[0], command[2]) = (opcode, 7);
        bytes.iter().for_each(|(at, byte)| command[*at] = *byte);
        command
    }

    fn told(bytes: &[u8], is_admin: bool) -> String {
        Command::read(bytes, is_admin).map_or(String::new(), |command| Capsule::Command(command, bytes).to_string())
    }

    #[test]
    fn what_a_command_is_called_depends_on_its_queue() {
        let keyed = [(32, 0), (33, 2), (35, 0xc1), (36, 0x23), (39, 0x4f), (40, 100), (48, 3)];
        assert_eq!(told(&command(2, &keyed), false), "NVMe Read 0x7  slba 100  nlb 4  key 0x23c1");
        assert_eq!(told(&command(2, &keyed), true), "NVMe Get Log Page 0x7  key 0x23c1");
        assert_eq!(told(&command(0x7f, &[(4, 4), (44, 0x1c)]), true), "NVMe Property Get 0x7  Controller Status");
        assert_eq!(told(&command(0xff, &[]), true), "NVMe unknown command 0x7");
        let with_data = [&command(1, &[(32, 8), (39, 1), (40, 9)])[..], &[0; 8]].concat();
        assert_eq!(told(&with_data, false), "NVMe Write 0x7  slba 9  nlb 1  data in capsule");
        assert_eq!(told(&with_data[..63], false), "");
    }

    #[test]
    fn a_number_that_is_used_again_means_the_latest_command() {
        let mut queue = Queue::default();
        let of = |opcode| Command::read(&command(opcode, &[]), false).unwrap();
        for opcode in [1, 2] {
            queue.commands.push_front(of(opcode));
        }
        assert_eq!(queue.latest(|command| command.id == 7), Some(of(2)));
    }
}

//! Whose packet is it? Packets sorted into connections, with sequence numbers counted from the first of a direction.
//!
//! The connection manager's messages name both queue pairs of a connection and who the client is. Without them, as when
//! two programs agree by other means, the two directions are matched by the PSNs of the answers, and [who the client is](Roles) the
//! TCP connection of the two machines may tell. If it doesn't, the first to send a request counts as the client: that's a guess.
//!
//! Each direction of a connection numbers its *requests*, modulo 2^24, from a random start. Responses (ACKs, READ
//! data) carry the number of the request they answer, so they belong to the opposite direction's numbers. REQ and REP
//! announce where the *peer* shall start.

mod numbers;
mod requests;
mod roles;
mod side;

pub use requests::Request;
pub use roles::Roles;
pub use side::Side;

use crate::aeth::Syndrome;
use crate::cm::{self, req, Kind, Message};
use crate::opcode::{Operation, Part, Service};
use crate::packet::Packet;
use crate::tcp::Segment;
pub use numbers::span;
use numbers::{Numbers, WINDOW};
use requests::Requests;
use roles::Hints;
use rustc_hash::{FxHashMap, FxHashSet};
use std::net::IpAddr;

/// What is known of a connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The machines: the client's, the server's.
    pub ips: [IpAddr; 2],
    /// The queue pairs, as far as they are known.
    pub qps: [Option<u32>; 2],
    /// The kind of transport.
    pub service: Service,
    /// Transaction of the message that began it; None if the capture does not have it.
    pub request: Option<u64>,
    /// How it's known who the client is.
    pub roles: Roles,
    /// The path MTU in bytes, if the ConnectRequest says it, or a packet that isn't the last one of its message shows it.
    pub mtu: Option<u32>,
    numbers: [Numbers; 2],
    requests: [Requests; 2],
}

impl Connection {
    /// Whether no more is known of it than of this earlier state of it.
    pub fn is_as(&self, earlier: &Connection) -> bool {
        (self.qps, self.mtu) == (earlier.qps, earlier.mtu)
    }
}

/// To which connection a packet belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Its number, from 0, in the order in which they began.
    pub connection: usize,
    /// Who sent the packet.
    pub from: Side,
    /// The PSN, counted from the first request of its direction; None for datagrams.
    pub psn: Option<i64>,
    /// Sent before: a request or answer not newer than one before it, a CM message of a known kind and transaction.
    pub again: bool,
    /// How many requests' packets the capture lacks between the newest one and this one, or the one that this one answers.
    pub skipped: i64,
    /// The request that it's part of, or that it answers; None for datagrams, or if that one is not in the capture.
    pub request: Option<Request>,
}

/// By machine and number: the connection, and whose number it is. The standard library's hash would
/// take as long as all the decoding.
type Map = FxHashMap<(IpAddr, u32), (usize, Side)>;

/// So many connections without a beginning wait for their other direction.
const MOST_HALF: usize = 256;

/// What a capture says so far about connections.
#[derive(Debug, Default)]
pub struct Tracker {
    connections: Vec<Connection>,
    /// By machine and communication ID: the connection, and whose ID it is.
    ids: Map,
    /// By machine and queue pair: the connection, and whose queue pair it is.
    owners: Map,
    /// CM messages: their senders, kinds and transactions.
    messages: FxHashSet<(IpAddr, Kind, u64)>,
    /// Connections without a beginning of which one queue pair is not known.
    half: Vec<usize>,
    /// Datagrams whose receiver is asked for, and whose sender's queue pair is not known: many may share the receiver's.
    asked: Vec<usize>,
    hints: Hints,
}

impl Tracker {
    /// Takes note of a TCP packet: who opened that connection is the client of what follows.
    pub fn tcp(&mut self, segment: &Segment) {
        self.hints.tcp(segment);
    }

    /// Somebody knows by other means who the client of two machines is.
    pub fn name(&mut self, client: IpAddr, server: IpAddr) {
        self.hints.tell(client, server, Roles::Named);
    }

    /// The connections so far.
    pub fn connections(&self) -> &[Connection] {
        &self.connections
    }

    /// Takes note of a packet. None if it belongs to no connection that the capture has.
    pub fn see(&mut self, packet: &Packet) -> Option<Membership> {
        match packet.cm() {
            Some(message) => self.cm(packet, &message),
            None if packet.opcode.operation == Operation::Unknown => None,
            // Queue pair 1 is the connection manager's, also if its message is cut.
            None if packet.bth.dest_qp == 1 && packet.opcode.service == Service::Ud => None,
            None if packet.opcode.operation == Operation::Congestion => self.notification(packet),
            None if packet.opcode.is_response() => self.response(packet),
            None => self.request(packet),
        }
    }

    fn cm(&mut self, packet: &Packet, message: &Message) -> Option<Membership> {
        let (src, dst) = (packet.datagram.src, packet.datagram.dst);
        let local = message.local_id().map(|id| (src, id));
        let own = local.and_then(|id| self.ids.get(&id)).copied();
        let known = if message.kind.begins() {
            // A REQ with a known ID is a repetition, or the ID is used again.
            own.filter(|(index, _)| self.connections[*index].request == Some(message.transaction_id))
        } else {
            let peer = message.remote_id().and_then(|id| self.ids.get(&(dst, id)));
            peer.map(|(index, side)| (*index, side.other())).or(own)
        };
        let (connection, from) = match known {
            Some(known) => known,
            None if message.kind.begins() => {
                let service = if message.kind == Kind::ServiceRequest { Service::Ud } else { Service::Rc };
                let connection = self.add([src, dst], service, Some(message.transaction_id), Roles::Asked);
                if service == Service::Ud {
                    keep(&mut self.asked, connection);
                }
                (connection, Side::Client)
            }
            None => return None,
        };
        if let Some(local) = local.filter(|_| own != Some((connection, from))) {
            self.ids.insert(local, (connection, from));
        }
        // Whoever sends it says where the peer's requests shall begin. A repetition says nothing new.
        let Connection { numbers, mtu, .. } = &mut self.connections[connection];
        let numbers = &mut numbers[from.other() as usize];
        numbers.first = numbers.first.or(message.starting_psn());
        if message.kind == Kind::ConnectRequest && mtu.is_none() {
            *mtu = req::PATH_MTU.read(message.body).and_then(|code| cm::mtu_bytes(code as u8));
        }
        if let Some(qp) = message.local_qpn().filter(|qp| *qp != 0) {
            if self.connections[connection].qps[from as usize] != Some(qp) {
                self.own(connection, from, (src, qp));
            }
        }
        let again = !self.messages.insert((src, message.kind, message.transaction_id));
        Some(Membership { connection, from, psn: None, again, skipped: 0, request: None })
    }

    fn request(&mut self, packet: &Packet) -> Option<Membership> {
        let (src, service) = (packet.datagram.src, packet.opcode.service);
        let receiver = (packet.datagram.dst, packet.bth.dest_qp);
        let sender = packet.src_qp().map(|qp| (src, qp));
        let owner = self.owners.get(&receiver).copied();
        let known = match sender {
            None => owner,
            // One queue pair may send datagrams to many, and many to one.
            Some(sender) => {
                let other = self.owners.get(&sender).map(|(index, side)| (*index, side.other()));
                let fits = |&(index, to): &(usize, Side)| {
                    let Connection { ips, qps, .. } = &self.connections[index];
                    [(to, receiver), (to.other(), sender)].into_iter().all(|(side, (ip, qp))| {
                        ips[side as usize] == ip && qps[side as usize].map_or(true, |known| known == qp)
                    })
                };
                let asked = self.asked.iter().rev().flat_map(|&index| Side::BOTH.map(|to| (index, to)));
                owner.into_iter().chain(other).chain(asked).find(fits)
            }
        };
        let (connection, to) = known.unwrap_or_else(|| self.responder(src, receiver, service));
        let from = to.other();
        if let Some(sender) = sender.filter(|sender| self.owners.get(sender) != Some(&(connection, from))) {
            self.complete(connection, from, sender);
            if from == Side::Client {
                self.asked.retain(|asked| *asked != connection);
            }
        }
        if !service.is_connected() {
            return Some(Membership { connection, from, psn: None, again: false, skipped: 0, request: None });
        }
        let Connection { numbers, requests, mtu, .. } = &mut self.connections[connection];
        measure(packet, mtu);
        let numbers = &mut numbers[from as usize];
        numbers.first.get_or_insert(packet.bth.psn);
        let psn = numbers.count(packet.bth.psn)?;
        let [least, most] = numbers.next(*mtu);
        let again = psn < least;
        if !again {
            let is_read = packet.opcode.operation == Operation::ReadRequest;
            (numbers.newest, numbers.read) = (Some(psn), packet.dma_length().filter(|_| is_read));
        }
        let request = requests[from as usize].see(psn, packet.opcode, again);
        Some(Membership { connection, from, psn: Some(psn), again, skipped: (psn - most).max(0), request })
    }

    fn response(&mut self, packet: &Packet) -> Option<Membership> {
        let requester = (packet.datagram.dst, packet.bth.dest_qp);
        let known = self.owners.get(&requester).copied();
        let (connection, to) = known.or_else(|| self.requester(packet.datagram.src, requester, packet.bth.psn))?;
        let Connection { numbers, requests, mtu, .. } = &mut self.connections[connection];
        measure(packet, mtu);
        let numbers = &mut numbers[to as usize];
        let psn = numbers.count(packet.bth.psn)?;
        let [_, next] = numbers.next(*mtu);
        // A refusal answers nothing: the answer comes later, with the same number.
        let refuses = packet.aeth().is_some_and(|aeth| !matches!(aeth.verdict(), Syndrome::Ack { .. }));
        let again = !refuses && Some(psn) <= numbers.answered;
        numbers.answered = numbers.answered.max(Some(psn).filter(|_| !refuses));
        let request = requests[to as usize].at(psn);
        Some(Membership {
            connection,
            from: to.other(),
            psn: Some(psn),
            again,
            skipped: (psn + 1 - next).max(0),
            request,
        })
    }

    /// A congestion notification names its receiver's queue pair.
    fn notification(&self, packet: &Packet) -> Option<Membership> {
        let &(connection, to) = self.owners.get(&(packet.datagram.dst, packet.bth.dest_qp))?;
        Some(Membership { connection, from: to.other(), psn: None, again: false, skipped: 0, request: None })
    }

    fn add(&mut self, ips: [IpAddr; 2], service: Service, request: Option<u64>, roles: Roles) -> usize {
        let (qps, mtu, numbers, requests) = Default::default();
        self.connections.push(Connection { ips, qps, service, request, roles, mtu, numbers, requests });
        self.connections.len() - 1
    }

    /// A queue pair may be used again by a later connection: the latest owner counts.
    fn own(&mut self, index: usize, side: Side, endpoint: (IpAddr, u32)) {
        self.connections[index].qps[side as usize] = Some(endpoint.1);
        self.owners.insert(endpoint, (index, side));
    }

    /// Without the CM's messages: whose request a response answers, by the nearest PSN.
    fn requester(&mut self, responder: IpAddr, at: (IpAddr, u32), psn: u32) -> Option<(usize, Side)> {
        let ends = self.half.iter().flat_map(|&index| Side::BOTH.map(|side| (index, side)));
        let away = |(index, side): (usize, Side)| {
            let Connection { ips, qps, numbers, .. } = &self.connections[index];
            let (numbers, ends) = (numbers[side as usize], [ips[side as usize], ips[side.other() as usize]]);
            let away = (numbers.count(psn)? - numbers.newest.unwrap_or(0)).abs();
            let fits = qps[side as usize].is_none() && ends == [at.0, responder] && away < WINDOW;
            fits.then_some((away, (index, side)))
        };
        let (_, (index, side)) = ends.filter_map(away).min_by_key(|(away, _)| *away)?;
        self.complete(index, side, at);
        Some((index, side))
    }

    /// Without the CM's messages: the other direction of a connection of which only one was seen, else a new one.
    fn responder(&mut self, from: IpAddr, at: (IpAddr, u32), service: Service) -> (usize, Side) {
        let open = |index: usize| {
            let Connection { ips, qps, service: known, .. } = &self.connections[index];
            let is_it = |side: &Side| {
                qps[*side as usize].is_none() && [ips[*side as usize], ips[side.other() as usize]] == [at.0, from]
            };
            Side::BOTH.into_iter().find(is_it).filter(|_| *known == service).map(|side| (index, side))
        };
        if let Some((index, side)) = self.half.iter().find_map(|index| open(*index)) {
            self.complete(index, side, at);
            return (index, side);
        }
        let (side, roles) = self.hints.side(at.0, from).unwrap_or((Side::Server, Roles::Guessed));
        let ips = if side == Side::Server { [from, at.0] } else { [at.0, from] };
        let index = self.add(ips, service, None, roles);
        keep(&mut self.half, index);
        self.own(index, side, at);
        (index, side)
    }

    /// Now both queue pairs are known.
    fn complete(&mut self, index: usize, side: Side, endpoint: (IpAddr, u32)) {
        self.own(index, side, endpoint);
        self.half.retain(|half| *half != index);
    }
}

/// Each packet of a message but its last one has as many bytes as the path takes.
fn measure(packet: &Packet, mtu: &mut Option<u32>) {
    if mtu.is_none() && matches!(packet.opcode.part, Part::First | Part::Middle) {
        *mtu = Some(packet.payload_length() as u32).filter(|bytes| *bytes > 0);
    }
}

/// To look through more takes long, and those are ends of connections that are hardly of one capture.
fn keep(half: &mut Vec<usize>, index: usize) {
    if half.len() == MOST_HALF {
        half.remove(0);
    }
    half.push(index);
}

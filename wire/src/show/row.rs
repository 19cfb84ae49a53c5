//! What a ladder says about one packet, whether in a terminal or in a picture.

use super::Error;
use crate::aeth::{milliseconds, Syndrome};
use crate::capture::{Reader, Record};
use crate::cm::{self, req, Kind, Message};
use crate::icrc::Icrc;
use crate::opcode::Operation;
use crate::packet::{Frame, Packet};
use crate::run::lab_comment;
use crate::track::{Seen, Side, Tracker};
use std::collections::BTreeMap;
use std::io::Read;
use std::net::IpAddr;

/// One packet, in words.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The frame's number in the capture.
    pub frame: u64,
    /// Milliseconds since the first frame; None where the capture does not tell.
    pub ms: Option<f64>,
    /// The machine that asked for the connection.
    pub client: IpAddr,
    /// The machine at the other end.
    pub server: IpAddr,
    /// The direction.
    pub from_client: bool,
    /// What is written on the arrow.
    pub label: String,
    /// What sort of packet it is, for its color.
    pub sort: Sort,
    /// Its number, counted from the first of its direction: `psn +1`. Datagrams have none worth telling.
    pub psn: Option<String>,
    /// Lengths, addresses, keys, states.
    pub details: Vec<String>,
    /// The comment stored with the packet.
    pub comment: Option<String>,
}

impl Row {
    /// The step of the lesson, as `Step 8: The client writes`, if [`annotate`](crate::annotate) has written the comment.
    pub fn step(&self) -> Option<&str> {
        let comment = self.comment.as_deref()?;
        let (step, _) = comment.split_once(" [").unwrap_or((comment, ""));
        step.starts_with("Step ").then_some(step)
    }

    /// What the lab did to the packet.
    pub fn lab(&self) -> Option<&str> {
        lab_comment(self.comment.as_deref()?)
    }

    /// Whether the lab did not deliver the packet.
    pub fn lost(&self) -> bool {
        self.lab().is_some_and(|words| words.starts_with("lab: dropped"))
    }

    /// What is said about the packet beside its name.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.psn.iter().chain(&self.details).map(String::as_str)
    }
}

/// Sorts of packets that are told apart by color.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Of the connection manager.
    Connection,
    /// Data for a posted receive.
    Send,
    /// Data for memory that the sender names.
    Write,
    /// A READ and its data.
    Read,
    /// An atomic operation, or a receiver that is not ready.
    Notable,
    /// All went well.
    Acknowledge,
    /// Refused, congested, or unknown.
    Trouble,
}

/// Turns packets into rows, in the order of the capture.
#[derive(Debug)]
pub struct Rows {
    clients: Clients,
    tracker: Tracker,
}

/// What one has to have seen all of a capture to know.
#[derive(Clone, Debug, Default)]
pub struct Clients {
    /// For each pair of machines, in order, the one that acts as client.
    by_pair: BTreeMap<(IpAddr, IpAddr), IpAddr>,
    /// When the first frame or line was recorded.
    start_ns: Option<u64>,
}

impl Rows {
    /// Begins a capture whose [`clients`] are known.
    pub fn new(clients: Clients) -> Rows {
        Rows { clients, tracker: Tracker::default() }
    }

    /// Takes note of the next frame; a row if it holds a RoCEv2 packet, else what it holds.
    pub fn next(&mut self, record: &Record) -> Result<Row, crate::Other> {
        self.clients.start_ns = self.clients.start_ns.or(record.time_ns);
        match Frame::decode(record.link, record.data) {
            Frame::Roce(packet) => Ok(self.row(record, &packet)),
            Frame::Other(other) => Err(other),
        }
    }

    fn row(&mut self, record: &Record, packet: &Packet) -> Row {
        let (src, dst) = (packet.datagram.src, packet.datagram.dst);
        // Live, nobody knows the clients beforehand.
        let asker = if packet.opcode.is_response() { dst } else { src };
        let client = *self.clients.by_pair.entry(pair(src, dst)).or_insert(asker);
        let from_client = client == src;
        let seen = self.tracker.see(packet);
        let since = |now: u64, start: u64| now.wrapping_sub(start) as i64 as f64 / 1e6;
        Row {
            frame: record.number,
            ms: record.time_ns.zip(self.clients.start_ns).map(|(now, start)| since(now, start)),
            client,
            server: if from_client { dst } else { src },
            from_client,
            label: short_name(packet),
            sort: sort(packet),
            psn: psn(packet, seen),
            details: details(packet, seen, from_client),
            comment: record.comment.map(String::from),
        }
    }
}

/// The rows of a whole capture. `open` begins to read it, and is called twice.
///
/// # Errors
/// The capture cannot be read to its end.
pub fn all<R: Read>(open: impl Fn() -> Result<Reader<R>, Error>) -> Result<Vec<Row>, Error> {
    let mut rows = Rows::new(clients(&mut open()?));
    let (mut reader, mut all) = (open()?, Vec::new());
    while let Some(record) = reader.next()? {
        all.extend(rows.next(&record).ok());
    }
    Ok(all)
}

/// Finds the machines that act as client towards another: those that sent a REQ; for a pair without one,
/// the machine that sent the first request. The key is the pair in order.
pub fn clients<R: Read>(reader: &mut Reader<R>) -> Clients {
    let (mut tracker, mut by_pair) = (Tracker::default(), BTreeMap::new());
    // A damaged file is reported when it is read for the second time.
    while let Ok(Some(record)) = reader.next() {
        let Frame::Roce(packet) = Frame::decode(record.link, record.data) else { continue };
        let (src, dst) = (packet.datagram.src, packet.datagram.dst);
        let from = match tracker.see(&packet) {
            Some(seen) => seen.from,
            None if packet.opcode.is_response() => Side::Server,
            None => Side::Client,
        };
        by_pair.entry(pair(src, dst)).or_insert(if from == Side::Client { src } else { dst });
    }
    // Of several requests the first one counts.
    for connection in tracker.connections().iter().rev().filter(|connection| connection.request.is_some()) {
        let [client, server] = connection.ips;
        by_pair.insert(pair(client, server), client);
    }
    Clients { by_pair, start_ns: reader.start_ns() }
}

fn pair(a: IpAddr, b: IpAddr) -> (IpAddr, IpAddr) {
    (a.min(b), a.max(b))
}

/// What one packet does, for somebody who has not seen those before it.
pub fn summary(packet: &Packet, from_client: bool) -> String {
    [vec![short_name(packet)], details(packet, None, from_client)].concat().join("  ")
}

/// The name in the lane: without the service where it is the usual one.
fn short_name(packet: &Packet) -> String {
    match packet.cm() {
        Some(message) => format!("{} ({})", message.kind.short(), message.kind.name()),
        None => match packet.aeth().map(|aeth| aeth.verdict()) {
            Some(Syndrome::Nak(_)) => "NAK".into(),
            Some(Syndrome::RnrNak { .. }) => "RNR NAK".into(),
            _ if packet.opcode.operation == Operation::Unknown => format!("Unknown opcode {:#04x}", packet.bth.opcode),
            _ => packet.name().trim_start_matches("RC ").into(),
        },
    }
}

fn sort(packet: &Packet) -> Sort {
    if packet.cm().is_some() {
        return Sort::Connection;
    }
    match packet.aeth().map(|aeth| aeth.verdict()) {
        Some(Syndrome::Nak(_)) => return Sort::Trouble,
        Some(Syndrome::RnrNak { .. }) => return Sort::Notable,
        _ => {}
    }
    match packet.opcode.operation {
        Operation::Send => Sort::Send,
        Operation::Write => Sort::Write,
        Operation::ReadRequest | Operation::ReadResponse => Sort::Read,
        Operation::CompareSwap | Operation::FetchAdd | Operation::AtomicAcknowledge => Sort::Notable,
        Operation::AtomicWrite | Operation::Flush => Sort::Write,
        Operation::Congestion | Operation::Unknown => Sort::Trouble,
        Operation::Acknowledge => Sort::Acknowledge,
    }
}

/// What stands to the right of the lane.
fn details(packet: &Packet, seen: Option<Seen>, from_client: bool) -> Vec<String> {
    let mut parts = Vec::new();
    parts.extend(seen.filter(|seen| seen.again).map(|_| "sent again".into()));
    match packet.cm() {
        Some(message) => cm_details(&message, from_client, &mut parts),
        None => data_details(packet, &mut parts),
    }

    match packet.icrc() {
        Icrc::Bad => parts.push("ICRC BAD".into()),
        Icrc::Cut => parts.push("cut by the snap length".into()),
        Icrc::Ok => {}
    }
    parts
}

fn psn(packet: &Packet, seen: Option<Seen>) -> Option<String> {
    match seen.and_then(|seen| seen.psn) {
        Some(psn) => Some(format!("psn {psn:+}")),
        None => packet.opcode.service.is_connected().then(|| format!("psn {} (absolute)", packet.bth.psn)),
    }
}

fn data_details(packet: &Packet, parts: &mut Vec<String>) {
    parts.extend(length(packet));
    if let Some(remote) = packet.remote() {
        parts.push(format!("va {:#x}  rkey {:#x}", remote.va, remote.r_key));
    }
    if let Some((swap_add, compare)) = packet.atomic_operands() {
        match packet.opcode.operation {
            Operation::FetchAdd => parts.push(format!("add {swap_add:#x}")),
            _ => parts.push(format!("if {compare:#x} then {swap_add:#x}")),
        }
    }
    if let Some(value) = packet.atomic_original() {
        parts.push(format!("was {value:#x}"));
    }
    if let Some(data) = packet.immediate() {
        parts.push(format!("imm {data:#010x}"));
    }
    if let Some(key) = packet.invalidated_key() {
        parts.push(format!("invalidates rkey {key:#x}"));
    }
    if let Some(aeth) = packet.aeth() {
        parts.push(match aeth.verdict() {
            Syndrome::Ack { credits: None } => format!("msn {}", aeth.msn),
            Syndrome::Ack { credits: Some(n) } => format!("msn {}  credits {n}", aeth.msn),
            Syndrome::RnrNak { timer_us } => {
                format!("msn {}  no receive posted: wait {} ms", aeth.msn, milliseconds(timer_us))
            }
            Syndrome::Nak(nak) => format!("msn {}  {nak}", aeth.msn),
            reserved => reserved.to_string(),
        });
    }
    if let Some(qp) = packet.src_qp() {
        parts.push(format!("from qp {qp:#x} to qp {:#x}", packet.bth.dest_qp));
    }
}

/// Bytes of this packet, and of the whole message where it is larger; for a READ Request the bytes asked for.
fn length(packet: &Packet) -> Option<String> {
    let here = packet.payload_length();
    match (packet.opcode.operation, packet.dma_length()) {
        (Operation::Send | Operation::ReadResponse, _) | (Operation::Write, None) => Some(format!("len {here}")),
        (Operation::Write, Some(total)) if total as usize != here => Some(format!("len {here} of {total}")),
        (Operation::Write | Operation::AtomicWrite | Operation::Flush | Operation::ReadRequest, Some(total)) => {
            Some(format!("len {total}"))
        }
        _ => None,
    }
}

/// What a CM message says, and which state it implies for the queue pairs (IBTA 12.9.7).
fn cm_details(message: &Message, from_client: bool, parts: &mut Vec<String>) {
    if let Some(service) = message.service() {
        parts.push(service.port().map_or_else(|| service.to_string(), |port| format!("port {port}")));
    }
    if let Some(qp) = message.local_qpn() {
        parts.push(if qp == 0 { "no qp".into() } else { format!("qp {qp:#x}") });
    }
    if let Some(reason) = message.reason() {
        parts.push(format!("reason {reason}: {}", cm::reject_reason(reason)));
    }
    if let Some(status) = message.sidr_status() {
        parts.push(format!("status {status}: {}", cm::sidr_status(status)));
    }
    if message.kind == Kind::ConnectRequest {
        let mtu = req::PATH_MTU.read(message.body).and_then(|code| cm::mtu_bytes(code as u8));
        parts.extend(mtu.map(|bytes| format!("mtu {bytes}")));
    }
    let side = if from_client { "client" } else { "server" };
    match message.kind {
        Kind::ConnectReply => parts.push(format!("{side} QP is in RTR or RTS")),
        Kind::ReadyToUse => parts.push("both QPs are in RTS".into()),
        Kind::DisconnectRequest => parts.push(format!("{side} QP leaves RTS")),
        _ => {}
    }
    // Private data is filled up with zeroes, so it may have been longer than what is not zero.
    let given = message.private_data().iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    if given > 0 {
        parts.push(format!("private data of {given} bytes or more"));
    }
}

//! A ladder for people: client left, server right, one line per packet. A comment that the file has for a packet,
//! such as the step of a lesson, stands above it.

use super::Error;
use crate::aeth::{milliseconds, Syndrome};
use crate::capture::{Reader, Record};
use crate::cm::{self, req, Kind, Message};
use crate::icrc::Icrc;
use crate::opcode::{Operation, Service};
use crate::packet::{Frame, Packet};
use crate::psn::{Relative, Spaces};
use owo_colors::{AnsiColors, OwoColorize};
use std::collections::{BTreeMap, HashSet};
use std::io::{Read, Write};
use std::net::IpAddr;

/// How to draw.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Colors by kind of packet.
    pub color: bool,
    /// Cut lines to this many columns; None leaves them whole.
    pub width: Option<usize>,
}

/// Columns of the lane between client and server.
const LANE: usize = 42;

/// Finds the machines that act as client towards another: those that sent a REQ; for a pair without one,
/// the machine that sent the first request. The key is the pair in order.
pub fn clients<R: Read>(reader: &mut Reader<R>) -> BTreeMap<(IpAddr, IpAddr), IpAddr> {
    let mut clients = BTreeMap::new();
    let mut asked = HashSet::new();
    // A damaged file is reported when it is read for the second time.
    while let Ok(Some(record)) = reader.next() {
        let Frame::Roce(packet) = Frame::decode(record.link, record.data) else { continue };
        let (src, dst) = (packet.datagram.src, packet.datagram.dst);
        let is_req = packet.cm().is_some_and(|message| message.kind == Kind::ConnectRequest);
        let is_first_req = is_req && asked.insert(pair(src, dst));
        if is_first_req {
            clients.insert(pair(src, dst), src);
        } else {
            let client = if packet.opcode.is_response() { dst } else { src };
            clients.entry(pair(src, dst)).or_insert(client);
        }
    }
    clients
}

fn pair(a: IpAddr, b: IpAddr) -> (IpAddr, IpAddr) {
    (a.min(b), a.max(b))
}

/// Draws the ladder of a whole capture.
pub fn write<R: Read>(
    reader: &mut Reader<R>,
    clients: &BTreeMap<(IpAddr, IpAddr), IpAddr>,
    style: Style,
    out: &mut impl Write,
) -> Result<(), Error> {
    let mut ladder = Ladder { style, clients, pair: None, start_ns: None, comment: None, spaces: Spaces::default() };
    let mut others: BTreeMap<&str, u64> = BTreeMap::new();
    let mut packets = 0u64;
    while let Some(record) = reader.next()? {
        ladder.start_ns = ladder.start_ns.or(record.time_ns);
        match Frame::decode(record.link, record.data) {
            Frame::Roce(packet) => {
                packets += 1;
                ladder.packet(&record, &packet, out)?;
            }
            Frame::Other(other) => *others.entry(other.name()).or_default() += 1,
        }
    }
    let others: Vec<String> = others.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let rest = if others.is_empty() { String::new() } else { format!("; not shown: {}", others.join(", ")) };
    writeln!(out, "{packets} RoCEv2 packets{rest}")?;
    out.flush()?;
    Ok(())
}

struct Ladder<'a> {
    style: Style,
    clients: &'a BTreeMap<(IpAddr, IpAddr), IpAddr>,
    /// The pair of machines the heading on the screen is for.
    pair: Option<(IpAddr, IpAddr)>,
    start_ns: Option<u64>,
    /// The last comment, which holds for the packets below it, too.
    comment: Option<String>,
    spaces: Spaces,
}

impl Ladder<'_> {
    fn packet(&mut self, record: &Record, packet: &Packet, out: &mut impl Write) -> Result<(), Error> {
        let (src, dst) = (packet.datagram.src, packet.datagram.dst);
        let pair = pair(src, dst);
        let client = self.clients.get(&pair).copied().unwrap_or(src);
        if self.pair != Some(pair) {
            self.pair = Some(pair);
            self.heading(client, if client == src { dst } else { src }, out)?;
        }
        if self.comment.as_deref() != record.comment {
            self.comment = record.comment.map(String::from);
            if let Some(comment) = record.comment {
                // Whoever wrote the file shall not control the terminal.
                let text: String = comment.chars().filter(|c| !c.is_control()).collect();
                self.line("", "", &text, None, out)?;
            }
        }
        let time = match (record.time_ns, self.start_ns) {
            (Some(now), Some(start)) => format!("{:.3}", now.wrapping_sub(start) as i64 as f64 / 1e6),
            _ => "-".into(),
        };
        let lane = arrow(short_name(packet), client == src);
        let details = details(packet, self.spaces.relative(packet), client == src);
        let start = format!("{:>6} {time:>10}  ", record.number);
        self.line(&start, &lane, &details, color(packet), out)
    }

    fn heading(&self, client: IpAddr, server: IpAddr, out: &mut impl Write) -> Result<(), Error> {
        let (client, server) = (format!("client {client}"), format!("server {server}"));
        let gap = LANE.saturating_sub(client.chars().count());
        let lane = format!("{client} {server:>width$}", width = gap.saturating_sub(1));
        self.line(" frame         ms  ", &lane, "", None, out)
    }

    fn line(
        &self,
        start: &str,
        lane: &str,
        details: &str,
        color: Option<AnsiColors>,
        out: &mut impl Write,
    ) -> Result<(), Error> {
        let used = start.chars().count() + lane.chars().count() + 2;
        let room = self.style.width.map_or(usize::MAX, |width| width.saturating_sub(used));
        let details: String = details.chars().take(room).collect();
        match color.filter(|_| self.style.color) {
            Some(color) => writeln!(out, "{start}{}  {details}", lane.color(color))?,
            None => writeln!(out, "{}", format!("{start}{lane}  {details}").trim_end())?,
        }
        Ok(())
    }
}

/// The name in the lane: without the service where it is the usual one.
fn short_name(packet: &Packet) -> String {
    match packet.cm() {
        Some(message) => format!("{} ({})", message.kind.short(), message.kind.name()),
        None => match packet.aeth().map(|aeth| aeth.verdict()) {
            Some(Syndrome::Nak(_)) => "NAK".into(),
            Some(Syndrome::RnrNak { .. }) => "RNR NAK".into(),
            _ => packet.name().trim_start_matches("RC ").into(),
        },
    }
}

fn arrow(name: String, to_server: bool) -> String {
    let fill = "─".repeat(LANE.saturating_sub(name.chars().count() + 6));
    match to_server {
        true => format!("── {name} {fill}─▶"),
        false => format!("◀─{fill} {name} ──"),
    }
}

fn color(packet: &Packet) -> Option<AnsiColors> {
    if packet.cm().is_some() {
        return Some(AnsiColors::Cyan);
    }
    match packet.aeth().map(|aeth| aeth.verdict()) {
        Some(Syndrome::Nak(_)) => return Some(AnsiColors::Red),
        Some(Syndrome::RnrNak { .. }) => return Some(AnsiColors::Yellow),
        _ => {}
    }
    match packet.opcode.operation {
        Operation::Send => Some(AnsiColors::Green),
        Operation::Write => Some(AnsiColors::Blue),
        Operation::ReadRequest | Operation::ReadResponse => Some(AnsiColors::Magenta),
        Operation::CompareSwap | Operation::FetchAdd | Operation::AtomicAcknowledge => Some(AnsiColors::Yellow),
        Operation::Congestion | Operation::Unknown => Some(AnsiColors::Red),
        Operation::Acknowledge => None,
    }
}

/// What stands to the right of the lane.
fn details(packet: &Packet, relative: Option<Relative>, from_client: bool) -> String {
    let mut parts = Vec::new();
    match packet.cm() {
        Some(message) => cm_details(&message, from_client, &mut parts),
        None => data_details(packet, relative, &mut parts),
    }
    match packet.icrc() {
        Icrc::Bad => parts.push("ICRC BAD".into()),
        Icrc::Cut => parts.push("cut by the snap length".into()),
        Icrc::Ok => {}
    }
    parts.join("  ")
}

fn data_details(packet: &Packet, relative: Option<Relative>, parts: &mut Vec<String>) {
    match (relative, packet.opcode.service) {
        (Some(Relative { psn, again }), _) => {
            parts.push(format!("psn {psn:+}"));
            parts.extend(again.then(|| "sent again".into()));
        }
        (None, Service::Rc | Service::Uc) => parts.push(format!("psn {} (absolute)", packet.bth.psn)),
        _ => {}
    }
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
        (Operation::Write | Operation::ReadRequest, Some(total)) => Some(format!("len {total}")),
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
    if message.kind == Kind::ConnectRequest {
        let mtu = req::PATH_MTU.read(message.body).and_then(|code| cm::mtu_bytes(code as u8));
        parts.extend(mtu.map(|bytes| format!("mtu {bytes}")));
    }
    let side = if from_client { "client" } else { "server" };
    match message.kind {
        Kind::ConnectReply => parts.push(format!("{side} QP is in RTR")),
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

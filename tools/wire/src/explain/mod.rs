//! What went wrong in a capture, in sentences. Each names the frames that show it, and says what the capture doesn't show.
//!
//! Packets are read and forgotten: memory grows with the connections, not with the file. Comments are not read: what a lab wrote
//! into a capture about its own faults is no evidence; only how many packets it dropped is noted beside what was found. What programs complain of is evidence, and a run file has it.

mod capture;
mod cause;
mod congestion;
mod connection;
mod ending;
mod finding;
mod flow;
mod names;
mod printed;
mod report;

pub use cause::{Blame, Cause};
pub use ending::RecordEnd;
pub use finding::Finding;
pub use report::{ConnectionReport, Died, Explanation, Printed};

use crate::reading;
use capture::{Known, Strays, Ways};
use congestion::Pauses;
use connection::Connection;
use ending::Ending;
use flow::Moment;
use names::Names;
use printed::{Complaints, Sides};
use roce::icrc::Icrc;
use roce::link::{self, tunnels};
use roce::opcode::{Operation, Service};
use roce::packet::{Frame, Packet};
use roce::track;
use roce::{Other, Others};
use run::capture::{Error, Events, Reader};
use run::file::{lab_comment, Event};
use run::sighting::Sighting;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::net::IpAddr;

/// Fragments between this many pairs of machines are told apart.
const MOST_FRAGMENTED: usize = 1024;

#[derive(Default)]
struct Explaining {
    told: Explanation,
    connections: Vec<Connection>,
    last: Option<Moment>,
    ways: Ways,
    strays: Strays,
    /// Packets whose operation code nobody uses: how many, and the first one's code and frame.
    unknown: (u64, u8, u64),
    others: Others,
    /// Of which connections answers are cut before they say what they are, and how many.
    cut_answers: BTreeMap<usize, u64>,
    /// Between which machines RoCEv2 packets came as IP fragments.
    fragmented: BTreeSet<[IpAddr; 2]>,
    /// The longest of their recorded parts.
    snap_length: usize,
    /// Packets that didn't arrive, as the run file itself says. That's no evidence; it's what the plot counts.
    dropped: u64,
    pauses: Pauses,
    cut: u64,
    complaints: Complaints,
    ending: Ending,
    /// One for each connection.
    sides: Vec<Sides>,
}

/// Explains a whole capture, or what can be read of it: the error is in the explanation.
///
/// # Errors
/// Nothing of it can be read.
pub fn explain<R: Read>(reader: &mut Reader<R>) -> Result<Explanation, Error> {
    let mut state = Explaining::default();
    loop {
        match reader.event() {
            Ok(None) => break,
            Ok(Some(event)) => state.event(&event),
            Err(error) if state.told.frames > 0 => {
                state.told.notes.push(format!("{error:#}"));
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(state.ended(reader.connections()))
}

/// Explains a capture that is in memory.
pub fn explained(events: &Events) -> Explanation {
    let mut state = Explaining::default();
    events.iter().for_each(|event| state.event(&event));
    state.told.notes.extend(events.to_end().err().map(|error| error.to_string()));
    state.ended(&events.connections())
}

impl Explaining {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Line(line) => {
                self.told.frames = line.number;
                self.complaints.hear(line);
                self.ending.hear(line);
            }
            Event::Packet(record) => {
                let place = Moment { frame: record.number, time_ns: record.time_ns };
                self.told.frames = record.number;
                self.dropped += u64::from(record.comment.and_then(lab_comment).is_some_and(is_drop));
                match &record.frame {
                    Frame::Roce(packet) => {
                        if packet.datagram.is_tunnelled {
                            self.told.inside.see(tunnels(record.link, record.data));
                        }
                        if packet.is_answer_cut() {
                            self.snap_length = self.snap_length.max(record.data.len());
                        }
                        self.packet(record, packet, place);
                    }
                    Frame::Other(other) => self.other(*other, record),
                }
            }
        }
    }

    /// A frame without RoCEv2.
    fn other(&mut self, other: Other, record: &Sighting) {
        self.others.see(other);
        if other == Other::RoceFragment && self.fragmented.len() < MOST_FRAGMENTED {
            self.fragmented.extend(link::ends(record.link, record.data));
        }
        let pause = roce::pause::Frame::decode(record.data);
        pause.iter().for_each(|pause| self.pauses.see(pause, record.number));
    }

    fn packet(&mut self, sighting: &Sighting, packet: &Packet, place: Moment) {
        self.told.packets += 1;
        self.last = Some(place);
        let icrc = packet.icrc();
        self.cut += u64::from(icrc == Icrc::Cut);
        if self.ways.is_twin(packet, icrc, place) {
            return;
        }
        // Queue pair 1 is the connection manager's, also if its message is cut.
        if packet.bth.dest_qp == 1 && packet.opcode.service == Service::Ud && packet.cm().is_none() {
            self.strays.messages += 1;
            return;
        }
        let seen = sighting.seen.filter(|_| packet.opcode.operation != Operation::Congestion);
        self.ways.remember(packet, place, seen);
        let Some((seen, ends)) = seen.zip(sighting.connection) else { return self.stray(sighting, packet, place) };
        while self.connections.len() <= seen.connection {
            let names = Names::of(ends);
            self.connections.push(Connection::new(place, names));
            self.sides.push(Sides { nodes: [None, None], first: place.frame });
        }
        let known = &mut self.sides[seen.connection].nodes[seen.from as usize];
        if known.is_none() {
            *known = sighting.node.map(str::to_owned);
        }
        if packet.is_answer_cut() {
            *self.cut_answers.entry(seen.connection).or_default() += 1;
        }
        let connection = &mut self.connections[seen.connection];
        connection.congestion.packet(packet.datagram.traffic_class());
        if packet.datagram.is_marked() {
            connection.congestion.mark(seen.from, place.frame);
        }
        connection.take(packet, seen, ends, icrc == Icrc::Bad, place);
    }

    /// A packet of no connection that the capture has.
    fn stray(&mut self, sighting: &Sighting, packet: &Packet, place: Moment) {
        match packet.opcode.operation {
            Operation::Congestion => {
                let known =
                    sighting.seen.and_then(|seen| Some((self.connections.get_mut(seen.connection)?, seen.from)));
                match known {
                    Some((connection, from)) => connection.congestion.notify(from.other(), place.frame),
                    None => self.strays.notifications += 1,
                }
            }
            Operation::Unknown => {
                let (_, code, frame) = self.unknown;
                let first = if self.unknown.0 == 0 { (packet.bth.opcode, place.frame) } else { (code, frame) };
                self.unknown = (self.unknown.0 + 1, first.0, first.1);
            }
            _ => self.strays.see(packet, place.frame),
        }
    }

    fn ended(mut self, ends: &[track::Connection]) -> Explanation {
        let mut told = std::mem::take(&mut self.told);
        for twin in self.ways.came_twice() {
            match twin.of {
                Some((at, side)) => self.connections[at].doubled(twin.name, side, twin.frames),
                None => self.strays.others += 1,
            }
        }
        told.notes.extend(self.ways.doubled());
        // Random bytes have no ICRC that fits, and no operation codes.
        let is_noise = self.unknown.0 > 0 && self.ways.all_bad();
        told.notes.extend(unknown(self.unknown, told.packets, is_noise));
        if is_noise {
            return told;
        }
        let odd = self.ways.odd(&self.connections, ends);
        let one_way = self.connections.iter().zip(ends).filter_map(|(connection, ends)| connection.one_way(ends));
        let one_way = one_way.collect();
        let sum = |count: fn(&Connection) -> u64| self.connections.iter().map(count).sum::<u64>();
        let answers = sum(Connection::answers) + self.strays.answers();
        let unread = sum(Connection::unread) + self.strays.unread();
        // Requests alone say little if all answers are cut.
        let is_blind = unread > 0 && unread == answers;
        told.judged = if is_blind { 0 } else { sum(Connection::packets) + self.strays.answers() - unread };
        let unrecorded = sum(Connection::unrecorded);
        let names: Vec<Names> = self.connections.iter().map(|connection| connection.names().clone()).collect();
        if let Some(end) = self.last {
            let known = Known { end, one_way, pauses: self.pauses, odd: odd.keys().copied().collect() };
            let all = self.connections.into_iter().zip(ends);
            told.connections.extend(all.map(|(connection, ends)| connection.ended(ends, &known)));
        }
        for (connection, count) in &self.cut_answers {
            told.connections[*connection].cut_answers = *count;
        }
        let is_hit = |ips: &[IpAddr; 2]| self.fragmented.contains(ips) || self.fragmented.contains(&[ips[1], ips[0]]);
        // Inside a tunnel we don't know between whom the fragments are, so any connection may lack them.
        let is_any = !self.fragmented.is_empty() && !ends.iter().any(|ends| is_hit(&ends.ips));
        for (connection, _) in told.connections.iter_mut().zip(ends).filter(|(_, ends)| is_any || is_hit(&ends.ips)) {
            connection.lacks_packets();
        }
        told.record = self.ending.record();
        told.notes.extend(self.ending.notes());
        if told.frames == 0 {
            let why = "nothing was recorded: what recorded it was ended before anything happened, or is still at work";
            told.notes.push(why.to_owned());
        }
        told.died = self.ending.tell(&self.sides, &names, &mut told.connections);
        told.printed = self.complaints.tell(&self.sides, ends, &names, &mut told.connections);
        let (refusals, strays) = self.strays.ended();
        told.connections.extend(refusals.into_iter().map(report::ConnectionReport::stray));
        told.notes.extend(odd.into_values());
        if self.cut > 0 {
            let which = if self.cut == 1 { "1 packet is".to_owned() } else { format!("{} packets are", self.cut) };
            told.notes.push(format!("{which} recorded without the end, so the ICRC cannot be checked"));
        }
        if unrecorded > 0 {
            told.notes.push(format!(
                "{unrecorded} packets were answered, or their data was not asked for again, and are not in the capture: the recorder \
                 missed them"
            ));
        }
        if self.dropped > 0 {
            told.notes.push(format!(
                "packets that the run's own record says were dropped: {}. The plot counts these; a finding counts how often an end \
                 noticed, and one NAK or one timer brings back all that's missing",
                self.dropped
            ));
        }
        told.notes.extend(strays);
        told.notes.extend(reading::cut_answers(unread, self.snap_length));
        told.notes.extend(reading::advice(&self.others));
        let others = reading::rest(&self.others);
        if !others.is_empty() {
            told.notes.push(format!("not RoCEv2: {others}"));
        }
        if !told.inside.is_empty() {
            told.notes.push(format!("{}", told.inside));
        }
        told
    }
}

fn is_drop(words: &str) -> bool {
    words.starts_with("lab: dropped")
}

/// Packets to UDP port 4791 that no RoCE sender makes.
fn unknown((count, code, frame): (u64, u8, u64), packets: u64, is_noise: bool) -> Option<String> {
    let so = match is_noise {
        true => "and no ICRC fits: something else than RoCE uses UDP port 4791 here",
        false => "reserved, or a vendor's own: what they do can't be judged",
    };
    (count > 0).then(|| {
        format!("{count} of {packets} packets have an operation code that RoCE doesn't define ({code:#04x} in frame {frame}), {so}")
    })
}

//! What went wrong in a capture, in sentences. Each names the frames that show it; what a capture does not tell is said, too.
//!
//! Packets are read and forgotten: memory grows with the connections, not with the file. Comments are not read: what a lab wrote
//! into a capture about its own faults is no evidence. What programs complain of is: a run file has that, too.

mod cause;
mod congestion;
mod connection;
mod finding;
mod flow;
mod printed;
mod report;

pub use cause::{Blame, Cause};
pub use finding::Finding;
pub use report::{Explanation, Printed, Told};

use crate::reading;
use congestion::Pauses;
use connection::Connection;
use flow::Place;
use printed::{Complaints, Sides};
use roce::icrc::Icrc;
use roce::link::{self, tunnels};
use roce::opcode::Operation;
use roce::packet::{Frame, Packet};
use roce::track::Tracker;
use roce::{Other, Others};
use run::capture::{Error, Reader};
use run::file::Event;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::net::IpAddr;

/// A sender of whose packets at least so many, and all, are damaged, does not compute the ICRC as others do.
const ALL_DAMAGED: u64 = 8;

/// Fragments between so many pairs of machines are told apart.
const MOST_FRAGMENTED: usize = 1024;

#[derive(Default)]
struct State {
    told: Explanation,
    tracker: Tracker,
    connections: Vec<Connection>,
    last: Option<Place>,
    /// For each sender: packets, and those that are damaged.
    senders: BTreeMap<IpAddr, (u64, u64)>,
    others: Others,
    /// Of which connections answers are cut before they say what they are, and how many.
    cut_answers: BTreeMap<usize, u64>,
    /// Between which machines RoCEv2 packets came as IP fragments.
    fragmented: BTreeSet<[IpAddr; 2]>,
    /// The longest of their recorded parts.
    snap_length: usize,
    pauses: Pauses,
    cut: u64,
    complaints: Complaints,
    /// One for each connection.
    sides: Vec<Sides>,
}

/// Explains a whole capture, or what can be read of it: the error stands in the explanation.
///
/// # Errors
/// Nothing of it can be read.
pub fn explain<R: Read>(reader: &mut Reader<R>) -> Result<Explanation, Error> {
    let mut state = State::default();
    loop {
        match reader.event() {
            Ok(None) => break,
            Ok(Some(Event::Line(line))) => {
                state.told.frames = line.number;
                state.complaints.hear(&line);
            }
            Ok(Some(Event::Packet(record))) => {
                let place = Place { frame: record.number, time_ns: record.time_ns };
                state.told.frames = record.number;
                match Frame::decode(record.link, record.data) {
                    Frame::Roce(packet) => {
                        if packet.datagram.is_tunnelled {
                            state.told.inside.see(tunnels(record.link, record.data));
                        }
                        if packet.is_answer_cut() {
                            state.snap_length = state.snap_length.max(record.data.len());
                        }
                        state.packet(&packet, place, record.node);
                    }
                    Frame::Other(other) => {
                        state.others.see(other);
                        if other == Other::RoceFragment && state.fragmented.len() < MOST_FRAGMENTED {
                            state.fragmented.extend(link::ends(record.link, record.data));
                        }
                        let pause = roce::pause::Frame::decode(record.data);
                        pause.iter().for_each(|pause| state.pauses.see(pause, record.number));
                    }
                }
            }
            Err(error) if state.told.frames > 0 => {
                state.told.notes.push(format!("{error:#}"));
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(state.ended())
}

impl State {
    fn packet(&mut self, packet: &Packet, place: Place, node: Option<&str>) {
        self.told.packets += 1;
        self.last = Some(place);
        let sender = self.senders.entry(packet.datagram.src).or_default();
        sender.0 += 1;
        let icrc = packet.icrc();
        self.cut += u64::from(icrc == Icrc::Cut);
        let is_damaged = icrc == Icrc::Bad;
        sender.1 += u64::from(is_damaged);
        let seen = self.tracker.see(packet);
        let Some(seen) = seen else {
            if packet.opcode.operation == Operation::Congestion {
                self.notification(packet, place);
            } else {
                self.told.strays += 1;
            }
            return;
        };
        while self.connections.len() <= seen.connection {
            self.connections.push(Connection::new(place));
            self.sides.push(Sides { nodes: [None, None], first: place.frame });
        }
        let known = &mut self.sides[seen.connection].nodes[seen.from as usize];
        if known.is_none() {
            *known = node.map(str::to_owned);
        }
        if packet.is_answer_cut() {
            *self.cut_answers.entry(seen.connection).or_default() += 1;
        }
        let connection = &mut self.connections[seen.connection];
        if is_damaged {
            connection.damaged(packet.name(), seen.from, place.frame);
        }
        connection.congestion.packet(packet.datagram.traffic_class());
        if packet.datagram.is_marked() {
            connection.congestion.mark(seen.from, place.frame);
        }
        connection.take(packet, seen, place);
    }

    /// A CNP names its receiver's queue pair.
    fn notification(&mut self, packet: &Packet, place: Place) {
        let owner = self.tracker.owner(packet.datagram.dst, packet.bth.dest_qp);
        match owner.and_then(|(at, side)| Some((self.connections.get_mut(at)?, side))) {
            Some((connection, side)) => connection.congestion.notify(side, place.frame),
            None => self.told.strays += 1,
        }
    }

    fn ended(self) -> Explanation {
        let mut told = self.told;
        let all_damaged =
            |(_, (packets, damaged)): &(&IpAddr, &(u64, u64))| packets == damaged && *damaged >= ALL_DAMAGED;
        let odd: Vec<IpAddr> = self.senders.iter().filter(all_damaged).map(|(sender, _)| *sender).collect();
        let all = self.connections.iter().zip(self.tracker.connections());
        let one_way: BTreeSet<_> = all.filter_map(|(connection, ends)| connection.one_way(ends)).collect();
        if let Some(end) = self.last {
            for (mut connection, ends) in self.connections.into_iter().zip(self.tracker.connections()) {
                if ends.ips.iter().any(|ip| odd.contains(ip)) {
                    connection.forget_damage();
                }
                told.connections.push(connection.ended(ends, end, &one_way, &self.pauses));
            }
        }
        for (connection, count) in &self.cut_answers {
            told.connections[*connection].cut_answers = *count;
        }
        let is_hit = |ips: &[IpAddr; 2]| self.fragmented.contains(ips) || self.fragmented.contains(&[ips[1], ips[0]]);
        let ends = self.tracker.connections();
        // Inside a tunnel we don't know between whom the fragments are, so any connection may lack them.
        let is_any = !self.fragmented.is_empty() && !ends.iter().any(|ends| is_hit(&ends.ips));
        for (connection, _) in told.connections.iter_mut().zip(ends).filter(|(_, ends)| is_any || is_hit(&ends.ips)) {
            connection.lacks_packets();
        }
        told.printed = self.complaints.tell(&self.sides, self.tracker.connections(), &mut told.connections);
        for sender in odd {
            let why = "its device computes another one, or the capture was rewritten";
            told.notes.push(format!("no ICRC of {sender}'s packets fits: {why}"));
        }
        if self.cut > 0 {
            told.notes
                .push(format!("{} packets are recorded without their end, so their ICRC cannot be checked", self.cut));
        }
        if told.strays > 0 {
            told.notes.push(format!("{} packets belong to no connection that can be told", told.strays));
        }
        told.notes.extend(reading::cut_answers(self.cut_answers.values().sum(), self.snap_length));
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

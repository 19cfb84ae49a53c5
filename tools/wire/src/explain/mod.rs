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

use congestion::Pauses;
use connection::Connection;
use flow::Place;
use printed::{Complaints, Sides};
use roce::icrc::Icrc;
use roce::opcode::Operation;
use roce::packet::{Frame, Packet};
use roce::track::Tracker;
use run::capture::{Error, Reader};
use run::file::Event;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::net::IpAddr;

/// A sender of whose packets at least so many, and all, are damaged, does not compute the ICRC as others do.
const ALL_DAMAGED: u64 = 8;

#[derive(Default)]
struct State {
    told: Explanation,
    tracker: Tracker,
    connections: Vec<Connection>,
    last: Option<Place>,
    /// For each sender: packets, and those that are damaged.
    senders: BTreeMap<IpAddr, (u64, u64)>,
    others: BTreeMap<&'static str, u64>,
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
                    Frame::Roce(packet) => state.packet(&packet, place, record.node),
                    Frame::Other(other) => {
                        *state.others.entry(other.name()).or_default() += 1;
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
        let others: Vec<String> = self
            .others
            .iter()
            .filter(|(name, _)| **name != "ARP")
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        if !others.is_empty() {
            told.notes.push(format!("not RoCEv2: {}", others.join(", ")));
        }
        told
    }
}

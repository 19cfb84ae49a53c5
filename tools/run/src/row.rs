//! What a ladder says about one packet, whether in a terminal or in a picture.

use super::look::Sort;
use super::{iwarp, words};
use crate::file::{lab_comment, Event};
use crate::sighting::{Record, Sighting};
use roce::iwarp::Brought;
use roce::link::{tunnels, Tunnels};
use roce::packet::{Frame, Packet};
use roce::track::{Roles, Side};
use std::collections::{BTreeMap, BTreeSet};
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
    /// Whether the capture tells who the client is; else it's a guess.
    pub is_known: bool,
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
    /// What the packet is inside of, if it's in a tunnel.
    pub inside: Option<Tunnels>,
    /// The comment stored with the packet.
    pub comment: Option<String>,
}

impl Row {
    /// From whom to whom.
    pub fn ends(&self) -> [IpAddr; 2] {
        if self.from_client {
            [self.client, self.server]
        } else {
            [self.server, self.client]
        }
    }

    /// The step of the lesson, as `Step 8: The client writes`, if `wire annotate` has written the comment.
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

/// Turns packets into rows, in the order of the capture. Who the client is, it learns as the packets come; whoever has all of them
/// [shows](Rows::see) them to it beforehand.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// For each pair of machines, in order, the one that acts as client: the one that sent a REQ, or opened a TCP connection; for a
    /// pair without either, the one that sent the first request.
    clients: BTreeMap<(IpAddr, IpAddr), IpAddr>,
    /// The pairs of which the capture tells it.
    known: BTreeSet<(IpAddr, IpAddr)>,
    /// When the first frame or line was recorded.
    start_ns: Option<u64>,
}

impl Rows {
    /// How many pairs of machines have exchanged packets.
    pub fn pairs(&self) -> usize {
        self.clients.len()
    }

    /// The two machines of a capture that doesn't tell who is the client.
    pub fn guessed(&self) -> Option<[IpAddr; 2]> {
        let mut pairs = self.clients.iter().filter(|(pair, _)| !self.known.contains(pair));
        let (&(one, other), &client) = pairs.next().filter(|_| self.clients.len() == 1)?;
        Some([client, if client == one { other } else { one }])
    }

    /// Takes note of an event.
    pub fn see(&mut self, event: &Event) {
        self.ms(event.time_ns());
        let Event::Packet(sighting) = event else { return };
        if let Some(brought) = sighting.iwarp() {
            self.know(iwarp::ends(brought));
        }
        if let Some(packet) = sighting.packet() {
            self.meet(sighting, packet);
        }
    }

    /// Takes note of the next frame; a row if it holds a RoCEv2 packet or is part of an iWARP connection, else what it holds.
    pub fn next(&mut self, sighting: &Sighting) -> Result<Row, roce::Other> {
        let ms = self.ms(sighting.time_ns);
        match (&sighting.frame, sighting.iwarp()) {
            (Frame::Roce(packet), _) => Ok(self.row(sighting, packet, ms)),
            (Frame::Other(_), Some(brought)) => {
                self.know(iwarp::ends(brought));
                Ok(segment(&sighting.record, brought, ms))
            }
            (Frame::Other(other), None) => Err(*other),
        }
    }

    /// Milliseconds since the first frame or line that it was asked about; None where the capture doesn't have times.
    pub fn ms(&mut self, now: Option<u64>) -> Option<f64> {
        self.start_ns = self.start_ns.or(now);
        now.zip(self.start_ns).map(|(now, start)| now.wrapping_sub(start) as i64 as f64 / 1e6)
    }

    /// The capture tells who the client is, and who the server. Of several requests the first one counts.
    fn know(&mut self, [client, server]: [IpAddr; 2]) {
        if self.known.insert(pair(client, server)) {
            self.clients.insert(pair(client, server), client);
        }
    }

    /// Who of the two machines is the client, as far as it's known by now.
    fn meet(&mut self, sighting: &Sighting, packet: &Packet) -> IpAddr {
        if let Some(connection) = sighting.connection.filter(|connection| connection.roles != Roles::Guessed) {
            self.know(connection.ips);
        }
        let (src, dst) = (packet.datagram.src, packet.datagram.dst);
        let from = match sighting.seen {
            Some(seen) => seen.from,
            None if packet.opcode.is_response() => Side::Server,
            None => Side::Client,
        };
        *self.clients.entry(pair(src, dst)).or_insert(if from == Side::Client { src } else { dst })
    }

    fn row(&mut self, sighting: &Sighting, packet: &Packet, ms: Option<f64>) -> Row {
        let Sighting { record, seen, .. } = *sighting;
        let (src, dst) = (packet.datagram.src, packet.datagram.dst);
        let client = self.meet(sighting, packet);
        let from_client = client == src;
        Row {
            frame: record.number,
            ms,
            client,
            server: if from_client { dst } else { src },
            is_known: self.known.contains(&pair(src, dst)),
            from_client,
            label: words::short_name(packet),
            sort: words::sort(packet),
            psn: words::psn(packet, seen),
            details: words::details(packet, seen, from_client)
                .into_iter()
                .chain(sighting.nvme().map(|it| it.to_string()))
                .collect(),
            inside: packet.datagram.is_tunnelled.then(|| tunnels(record.link, record.data)),
            comment: record.comment.map(String::from),
        }
    }
}

/// A TCP segment of an iWARP connection.
fn segment(record: &Record, brought: &Brought, ms: Option<f64>) -> Row {
    let [client, server] = iwarp::ends(brought);
    Row {
        frame: record.number,
        ms,
        client,
        server,
        is_known: true,
        from_client: brought.from_client,
        label: iwarp::label(brought),
        sort: iwarp::sort(brought),
        psn: Some(iwarp::number(brought)),
        details: iwarp::details(brought),
        inside: None,
        comment: record.comment.map(String::from),
    }
}

fn pair(a: IpAddr, b: IpAddr) -> (IpAddr, IpAddr) {
    (a.min(b), a.max(b))
}

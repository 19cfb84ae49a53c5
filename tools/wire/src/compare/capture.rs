//! A capture as a comparison sees it: its connections, and a count of the rest. Packets are read and forgotten.

use super::conversation::Conversation;
use super::iwarp::Messages;
use roce::cm::Kind;
use roce::icrc::Icrc;
use roce::opcode::Operation;
use roce::packet::{Frame, Packet};
use roce::track::Membership;
use roce::Others;
use run::capture::{Error, Reader};
use run::sighting::Sighting;
use std::collections::BTreeSet;
use std::io::Read;
use std::net::IpAddr;

/// A packet with its place in the file.
pub(super) struct Recorded<'a> {
    /// Counts every frame of the file from 1.
    pub number: u64,
    /// The step of the lesson: the first line of the comment. What the lab did is no part of it.
    pub step: Option<String>,
    pub packet: &'a Packet<'a>,
    pub seen: Membership,
}

/// The connections of a capture that are to be compared.
#[derive(Debug, Default)]
pub struct Capture {
    /// Frames of every kind.
    pub(super) frames: u64,
    /// RoCEv2 packets.
    pub(super) packets: u64,
    /// Frames that are not RoCEv2, by what they are.
    pub(super) others: Others,
    /// Frames of which the recording lacks the end.
    pub(super) cut: Vec<u64>,
    /// Frames whose ICRC does not fit, though nobody did that on purpose.
    pub(super) bad: Vec<u64>,
    /// Packets that this tool does not decode, and the first in words.
    pub(super) unknown: (Vec<u64>, Option<String>),
    /// Congestion notifications: they ask for a slower pace, and tell nothing else.
    pub(super) congestion: u64,
    /// Packets that belong to no connection whose beginning the capture has.
    pub(super) strays: Vec<u64>,
    /// The machines that sent packets.
    pub(super) senders: BTreeSet<IpAddr>,
    /// True if packets have comments with the steps of a lesson. Only bundled captures have.
    pub(super) commented: bool,
    /// The connections, in the order in which they began.
    pub(super) conversations: Vec<Conversation>,
    /// What iWARP it has.
    pub(super) iwarp: Messages,
}

impl Capture {
    /// Reads a whole file.
    pub fn read<R: Read>(reader: &mut Reader<R>) -> Result<Capture, Error> {
        let mut capture = Capture::default();
        while let Some(record) = &reader.next()? {
            capture.frames += 1;
            if let Some(brought) = record.iwarp() {
                capture.iwarp.see(record.number, brought);
            }
            match &record.frame {
                Frame::Roce(packet) if packet.opcode.operation == Operation::Congestion => capture.congestion += 1,
                Frame::Roce(packet) => {
                    let comment = record.comment.unwrap_or_default();
                    let step = comment.lines().next().and_then(|line| line.split("lab: ").next()).map(str::trim_end);
                    let step = step.filter(|step| !step.is_empty()).map(String::from);
                    capture.commented |= step.is_some();
                    match packet.icrc() {
                        Icrc::Bad if !comment.contains("lab: ") => capture.bad.push(record.number),
                        Icrc::Cut => capture.cut.push(record.number),
                        _ => {}
                    }
                    capture.packet(record, packet, step);
                }
                Frame::Other(other) => capture.others.see(*other),
            }
        }
        capture.conversations.iter_mut().for_each(Conversation::end);
        capture.leave_out_what_began_before();
        Ok(capture)
    }

    fn packet(&mut self, sighting: &Sighting, packet: &Packet, step: Option<String>) {
        let number = sighting.number;
        self.packets += 1;
        self.senders.insert(packet.datagram.src);
        let unknown = match (packet.cm().map(|message| message.kind), sighting.seen.zip(sighting.connection)) {
            (Some(Kind::Unknown(attribute)), _) => format!("a CM message with the attribute {attribute:#06x}"),
            (None, _) if packet.opcode.operation == Operation::Unknown => {
                format!("the operation code {:#04x}", packet.bth.opcode)
            }
            (_, Some((seen, connection))) => {
                if seen.connection == self.conversations.len() {
                    self.conversations.push(Conversation::default());
                }
                let recorded = Recorded { number, step, packet, seen };
                return self.conversations[seen.connection].take(&recorded, connection);
            }
            (_, None) => return self.strays.push(number),
        };
        self.unknown.0.push(number);
        self.unknown.1.get_or_insert(unknown);
    }

    /// Where there are connections with a beginning, those without one are the end of an earlier run.
    fn leave_out_what_began_before(&mut self) {
        if self.begins() {
            let (begun, older): (Vec<_>, Vec<_>) =
                std::mem::take(&mut self.conversations).into_iter().partition(Conversation::has_request);
            let streams = older.iter().flat_map(|conversation| &conversation.streams);
            self.strays.extend(streams.flat_map(|stream| &stream.requests).map(|request| request.frame));
            self.conversations = begun;
        }
    }

    /// True if it has the beginning of a connection.
    pub(super) fn begins(&self) -> bool {
        self.conversations.iter().any(Conversation::has_request)
    }
}

//! A capture in memory: its RoCEv2 packets, and a count of the rest.

use crate::capture::{Error, Reader};
use crate::icrc::Icrc;
use crate::link::LinkType;
use crate::opcode::{Operation, Part};
use crate::packet::{Frame, Packet};
use std::collections::BTreeMap;
use std::io::Read;

/// The packets of a capture that are to be compared.
#[derive(Debug, Default)]
pub struct Capture {
    /// Frames of every kind.
    pub(super) frames: u64,
    /// Frames that are not RoCEv2, by what they are.
    pub(super) others: BTreeMap<&'static str, u64>,
    /// Frames of which the recording lacks the end.
    pub(super) cut: Vec<u64>,
    /// Frames whose ICRC does not fit.
    pub(super) bad: Vec<u64>,
    /// Congestion notifications: they ask for a slower pace, and tell nothing else.
    pub(super) congestion: u64,
    kept: Vec<Kept>,
}

/// A recorded RoCEv2 packet.
#[derive(Debug)]
struct Kept {
    number: u64,
    link: LinkType,
    data: Vec<u8>,
    comment: Option<String>,
}

/// A packet with its place in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recorded<'a> {
    /// Counts every frame of the file from 1.
    pub number: u64,
    /// The comment stored with it: in a bundled capture, the step of the lesson.
    pub comment: Option<&'a str>,
    /// The packet.
    pub packet: Packet<'a>,
}

impl Capture {
    /// Reads a whole file.
    ///
    /// # Errors
    /// The file is no capture, is damaged or ends too early; the error names the byte.
    pub fn read<R: Read>(reader: &mut Reader<R>) -> Result<Capture, Error> {
        let mut capture = Capture::default();
        while let Some(record) = reader.next()? {
            capture.frames += 1;
            match Frame::decode(record.link, record.data) {
                Frame::Roce(packet) if packet.opcode.operation == Operation::Congestion => capture.congestion += 1,
                Frame::Roce(packet) => {
                    match packet.icrc() {
                        Icrc::Ok => {}
                        Icrc::Bad => capture.bad.push(record.number),
                        Icrc::Cut => capture.cut.push(record.number),
                    }
                    capture.kept.push(Kept {
                        number: record.number,
                        link: record.link,
                        data: record.data.to_vec(),
                        comment: record.comment.map(str::to_owned),
                    });
                }
                Frame::Other(other) => *capture.others.entry(other.name()).or_default() += 1,
            }
        }
        Ok(capture)
    }

    /// The RoCEv2 packets in the order of the file.
    pub(super) fn packets(&self) -> impl Iterator<Item = Recorded<'_>> {
        self.kept.iter().filter_map(|kept| match Frame::decode(kept.link, &kept.data) {
            Frame::Roce(packet) => Some(Recorded { number: kept.number, comment: kept.comment.as_deref(), packet }),
            Frame::Other(_) => None,
        })
    }

    /// The path MTU as the packets show it, for connections whose REQ was not recorded: the packets of a message of
    /// several are as long as the MTU allows, but for the last.
    pub(super) fn visible_mtu(&self) -> u32 {
        const LARGEST: u32 = 4096;
        let full = self.packets().filter(|p| matches!(p.packet.opcode.part, Part::First | Part::Middle));
        full.map(|p| p.packet.payload_length() as u32).max().unwrap_or(LARGEST).clamp(256, LARGEST)
    }
}

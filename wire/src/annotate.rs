//! Writing a capture again with a comment on each RoCE packet: the step of the story that it belongs to.
//!
//! Wireshark shows such a comment above the packet's layers and finds it with the filter `frame.comment`.

use crate::capture::Reader;
use crate::link::LinkType;
use crate::packet::Frame;
use crate::pcapng::{Section, Writer};
use crate::show::Error;
use crate::story::{Story, Unexpected};
use std::io::Read;

/// A capture with comments.
#[derive(Debug)]
pub struct Annotated {
    /// The pcapng file.
    pub file: Vec<u8>,
    /// For each step of the story, how many packets belong to it.
    pub packets: Vec<usize>,
    /// The RoCE packets that belong to no step; their comments say so.
    pub unexpected: Vec<Unexpected>,
    /// How many frames hold no RoCE packet. They keep the comment that they have.
    pub others: usize,
}

/// Comments every RoCE packet of a capture.
///
/// # Errors
/// The capture cannot be read to its end, or has frames of more than one link type.
pub fn annotate<R: Read>(reader: &mut Reader<R>, story: &Story, section: &Section) -> Result<Annotated, Error> {
    let mut follow = story.follow();
    let mut writer: Option<(LinkType, Writer<Vec<u8>>)> = None;
    let (mut packets, mut unexpected, mut others) = (vec![0; story.steps.len()], Vec::new(), 0);
    while let Some(record) = reader.next()? {
        let comment = match Frame::decode(record.link, record.data) {
            Frame::Roce(packet) => match follow.packet(record.number, &packet) {
                Ok(step) => {
                    packets[step.number - 1] += 1;
                    Some(step.comment())
                }
                Err(other) => {
                    let comment = format!("Not in the story {}: expected {}", story.short_name(), other.expected);
                    unexpected.push(other);
                    Some(comment)
                }
            },
            Frame::Other(_) => {
                others += 1;
                record.comment.map(String::from)
            }
        };
        let (link, writer) = match &mut writer {
            Some(writer) => writer,
            none => none.insert((record.link, Writer::new(Vec::new(), record.link, section)?)),
        };
        if *link != record.link {
            return Err(Error::Unfit(format!(
                "frame {} was recorded on another kind of interface than the frames before it; export the packets of one \
                 interface first",
                record.number
            )));
        }
        let time = record.time_ns.unwrap_or_default();
        writer.cut_packet(time, record.data, record.length, comment.as_deref())?;
    }
    let file = match writer {
        Some((_, writer)) => writer.into_inner()?,
        None => Writer::new(Vec::new(), LinkType::ETHERNET, section)?.into_inner()?,
    };
    Ok(Annotated { file, packets, unexpected, others })
}

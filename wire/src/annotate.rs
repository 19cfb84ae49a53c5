//! Writing a capture again with a comment on each RoCE packet: the step of the story that it belongs to.
//!
//! Wireshark shows such a comment above the packet's layers and finds it with the filter `frame.comment`.

use crate::capture::Reader;
use crate::link::LinkType;
use crate::packet::Frame;
use crate::pcapng::{Section, Writer};
use crate::run::{lab_comment, Event};
use crate::show::Error;
use crate::story::{Story, Unexpected};
use std::io::{self, Read, Write};

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

/// Comments every RoCE packet of a capture. Log lines are kept, and what the lab did to a packet stays in its comment.
///
/// # Errors
/// The capture cannot be read to its end.
pub fn annotate<R: Read>(reader: &mut Reader<R>, story: &Story, section: &Section) -> Result<Annotated, Error> {
    let mut follow = story.follow();
    let mut writer = Writer::without_interface(Vec::new(), section)?;
    let mut interfaces: Vec<(LinkType, Option<String>)> = Vec::new();
    let (mut packets, mut unexpected, mut others) = (vec![0; story.steps.len()], Vec::new(), 0);
    while let Some(event) = reader.event()? {
        let record = match event {
            Event::Packet(record) => record,
            Event::Line(line) => {
                // Who reads the first line shall know all nodes, as in the original.
                for (link, name) in reader.interfaces() {
                    interface(&mut writer, &mut interfaces, link, name.as_deref())?;
                }
                writer.line(&line)?;
                continue;
            }
        };
        let comment = match Frame::decode(record.link, record.data) {
            Frame::Roce(packet) => {
                let about = match follow.packet(record.number, &packet) {
                    Ok(step) => {
                        packets[step.number - 1] += 1;
                        step.comment()
                    }
                    Err(other) => {
                        let about = format!("Not in the story {}: expected {}", story.short_name(), other.expected);
                        unexpected.push(other);
                        about
                    }
                };
                let lab = record.comment.and_then(lab_comment);
                Some(lab.map_or_else(|| about.clone(), |lab| format!("{about} {lab}")))
            }
            Frame::Other(_) => {
                others += 1;
                record.comment.map(String::from)
            }
        };
        let (interface, time) =
            (interface(&mut writer, &mut interfaces, record.link, record.node)?, record.time_ns.unwrap_or_default());
        writer.cut_packet(interface, time, record.data, record.length, comment.as_deref())?;
    }
    if interfaces.is_empty() {
        writer.interface(LinkType::ETHERNET, None)?;
    }
    Ok(Annotated { file: writer.into_inner()?, packets, unexpected, others })
}

/// The number of an interface, which is described when it turns up.
fn interface<W: Write>(
    writer: &mut Writer<W>,
    known: &mut Vec<(LinkType, Option<String>)>,
    link: LinkType,
    name: Option<&str>,
) -> io::Result<u32> {
    match known.iter().position(|(known, named)| *known == link && named.as_deref() == name) {
        Some(found) => Ok(found as u32),
        None => {
            known.push((link, name.map(String::from)));
            writer.interface(link, name)
        }
    }
}

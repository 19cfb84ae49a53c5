//! Writing a capture again with a comment on each RoCE packet: the step of the story that it belongs to.
//!
//! Wireshark shows such a comment above the packet's layers and finds it with the filter `frame.comment`.

use run::capture::{Error, Reader};
use run::file::{lab_comment, Event};
use run::pcapng::{Section, Writer};
use run::story::{Story, Unexpected};
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
}

/// Comments every RoCE packet of a capture. Other frames, log lines, and what the lab did to a packet stay.
pub fn annotate<R: Read>(reader: &mut Reader<R>, story: &Story, section: &Section) -> Result<Annotated, Error> {
    let mut follow = story.follow();
    let mut writer = Writer::new(Vec::new(), section)?;
    let (mut packets, mut unexpected) = (vec![0; story.steps.len()], Vec::new());
    let mut are_described = false;
    while let Some(event) = reader.event()? {
        let sighting = match event {
            Event::Packet(sighting) => sighting,
            Event::Line(line) => {
                // Who reads the first line should know all nodes, as in the original.
                if !std::mem::replace(&mut are_described, true) {
                    describe(reader, &mut writer)?;
                }
                writer.line(&line)?;
                continue;
            }
        };
        let record = sighting.record;
        let comment = match sighting.packet() {
            Some(packet) => {
                let about = match follow.packet(&sighting, packet) {
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
                Some([Some(about.as_str()), lab].into_iter().flatten().collect::<Vec<_>>().join(" "))
            }
            None => record.comment.map(String::from),
        };
        let interface = writer.interface(record.link, record.node)?;
        let time_ns = record.time_ns.unwrap_or_default();
        writer.packet(interface, time_ns, record.data, record.length, comment.as_deref())?;
    }
    describe(reader, &mut writer)?;
    Ok(Annotated { file: writer.into_inner()?, packets, unexpected })
}

/// Describes the interfaces that the capture has described so far, and none of them twice.
fn describe<R: Read>(reader: &Reader<R>, writer: &mut Writer<Vec<u8>>) -> Result<(), Error> {
    for (link, name) in reader.interfaces() {
        writer.interface(link, name.as_deref())?;
    }
    Ok(())
}

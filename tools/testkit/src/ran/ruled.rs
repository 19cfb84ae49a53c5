//! A run with rules for the wire: what each packet's sender, number and comment are, and what the run file says of the rules.

use super::Check;
use roce::icrc::Icrc;
use roce::Frame;
use run::file::{Event, Line};

/// A packet of the run file.
#[derive(Debug, Clone)]
pub struct RuledPacket {
    pub number: u64,
    pub from: String,
    pub name: &'static str,
    pub psn: u32,
    pub icrc: Icrc,
    pub comment: String,
}

/// The run, its packets, and what is said about its rules.
pub struct Ruled<T> {
    pub check: Check<T>,
    pub packets: Vec<RuledPacket>,
    pub lines: Vec<Line>,
}

impl<T> Ruled<T> {
    pub fn of(check: Check<T>) -> Self {
        let (mut packets, mut lines) = (Vec::new(), Vec::new());
        check.each_event(|event| match event {
            Event::Line(line) if line.act == "rule" => lines.push(line.clone()),
            Event::Line(_) => {}
            Event::Packet(record) => {
                if let Frame::Roce(packet) = Frame::ethernet(record.data) {
                    let comment = record.comment.unwrap_or_default().to_owned();
                    let (from, name, psn) = (record.node.unwrap().to_owned(), packet.name(), packet.bth.psn);
                    packets.push(RuledPacket { number: record.number, from, name, psn, icrc: packet.icrc(), comment });
                }
            }
        });
        Self { check, packets, lines }
    }

    pub fn named(&self, from: &str, name: &str) -> Vec<&RuledPacket> {
        self.packets.iter().filter(|packet| packet.from == from && packet.name == name).collect()
    }

    /// The first packet of this name did not do its work and says so, and its sender sent it again. With the same PSN.
    #[track_caller]
    pub fn is_sent_again(&self, from: &str, name: &str, comment: &str) {
        let sent = self.named(from, name);
        assert!(sent.len() > 1 && sent[1..].iter().any(|again| again.psn == sent[0].psn), "{:?}", self.packets);
        assert_eq!(sent[0].comment, comment);
        assert!(sent[1].comment.is_empty());
    }

    /// What was done is said just behind the packet.
    #[track_caller]
    pub fn says(&self, places: &[(&RuledPacket, &str)]) {
        let said: Vec<(u64, &str)> = self.lines.iter().map(|line| (line.number, line.text.as_str())).collect();
        let expected: Vec<(u64, &str)> = places.iter().map(|(sent, text)| (sent.number + 1, *text)).collect();
        assert_eq!(said, expected);
    }
}

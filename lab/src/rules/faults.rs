//! Doing as the rules say: what is recorded of a frame, what goes on, and what is held back for a while.

use super::{Act, Rules, Verdict};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use wire::Frame;

/// How long a packet waits for the one that it is to be swapped with. It is less than the time after which a lesson sends it
/// again.
const SWAP_LIMIT: Duration = Duration::from_millis(200);
/// Bytes that delays may hold back. A real link holds no more, either.
const MAX_HELD: usize = 4 << 20;

/// The rules of a run at work.
#[derive(Debug, Default)]
pub struct Faults {
    rules: Rules,
    /// Frames that are held back, in the order of their time. The number tells frames of the same time apart.
    held: BTreeMap<(Instant, u64), Held>,
    held_bytes: usize,
    count: u64,
}

#[derive(Debug)]
struct Held {
    frame: Vec<u8>,
    name: &'static str,
    from: usize,
    to: Option<usize>,
    is_swapped: bool,
}

/// What becomes of a frame.
#[derive(Debug, PartialEq, Eq)]
pub struct Passage {
    /// The frame, as its receiver gets it.
    pub frame: Vec<u8>,
    /// How often it goes on to its receiver now. It is recorded as often, and once if it does not.
    pub copies: usize,
    /// What to record with it: with the last one, if it goes on several times.
    pub comment: Option<String>,
    /// What to say about it.
    pub line: Option<String>,
    /// A frame that goes on after it. It is recorded already.
    pub then: Option<Vec<u8>>,
    /// Whether its sender's cable is cut from now on.
    pub cuts: bool,
}

/// A frame that is no longer held back.
#[derive(Debug, PartialEq, Eq)]
pub struct Release {
    /// The node that has sent it.
    pub from: usize,
    /// The frame.
    pub frame: Vec<u8>,
    /// What to say about it.
    pub line: String,
}

impl Faults {
    /// Rules that have seen nothing yet.
    pub fn new(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// The rules, to ask which were never met.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Decides about a frame that node `from` has sent to node `to`; None for all.
    pub fn pass(&mut self, frame: Vec<u8>, from: usize, to: Option<usize>, now: Instant) -> Passage {
        let waiting = self.waiting(&frame, from, to);
        let verdict = self.rules.judge(&frame, from, to);
        let Some(Verdict { act, rule, name }) = verdict.filter(|verdict| waiting.is_none() || verdict.act != Act::Swap)
        else {
            let then = waiting.and_then(|key| self.let_go(key)).map(|held| held.frame);
            return Passage { frame, copies: 1, comment: None, line: None, then, cuts: false };
        };
        let deed = format!("{} by the rule: {rule}", done(act));
        let (line, comment) = (Some(format!("{name} {deed}")), Some(format!("lab: {deed}")));
        let mut passage = Passage { frame, copies: 0, comment, line, then: None, cuts: act == Act::Cut };
        let wait = match act {
            Act::Drop | Act::Cut => return passage,
            Act::Duplicate => return Passage { copies: 2, ..passage },
            Act::Corrupt => return Passage { frame: corrupted(passage.frame), copies: 1, ..passage },
            Act::Delay(time) => time,
            Act::Swap => SWAP_LIMIT,
        };
        if self.held_bytes + passage.frame.len() > MAX_HELD {
            passage.comment = Some("lab: dropped, because so much is held back already".to_owned());
            passage.line = None;
        } else {
            let held = Held { frame: passage.frame.clone(), name, from, to, is_swapped: act == Act::Swap };
            self.hold(held, now + wait);
        }
        passage
    }

    /// The frame that waits for this one, to go on after it.
    fn waiting(&self, frame: &[u8], from: usize, to: Option<usize>) -> Option<(Instant, u64)> {
        let fits = |held: &Held| held.is_swapped && (held.from, held.to) == (from, to);
        let (key, _) = self.held.iter().find(|(_, held)| fits(held))?;
        matches!(Frame::ethernet(frame), Frame::Roce(_)).then_some(*key)
    }

    /// When the next frame that is held back is to go on.
    pub fn due(&self) -> Option<Instant> {
        self.held.first_key_value().map(|((time, _), _)| *time)
    }

    /// The next frame whose time has come.
    pub fn release(&mut self, now: Instant) -> Option<Release> {
        let key = *self.held.first_key_value()?.0;
        let Held { frame, name, from, is_swapped, .. } = (key.0 <= now).then(|| self.let_go(key))??;
        let line = match is_swapped {
            true => {
                format!("{name} goes on alone: no packet to swap it with came within {} ms", SWAP_LIMIT.as_millis())
            }
            false => format!("{name} goes on"),
        };
        Some(Release { from, frame, line })
    }

    /// The nodes and names of the packets that are still held back.
    pub fn held(&self) -> impl Iterator<Item = (usize, &'static str)> + '_ {
        self.held.values().map(|held| (held.from, held.name))
    }

    fn hold(&mut self, held: Held, until: Instant) {
        self.held_bytes += held.frame.len();
        self.count += 1;
        self.held.insert((until, self.count), held);
    }

    fn let_go(&mut self, key: (Instant, u64)) -> Option<Held> {
        let held = self.held.remove(&key)?;
        self.held_bytes -= held.frame.len();
        Some(held)
    }
}

fn done(act: Act) -> String {
    match act {
        Act::Drop => "dropped".to_owned(),
        Act::Duplicate => "duplicated".to_owned(),
        Act::Delay(time) => format!("delayed {} ms", time.as_millis()),
        Act::Swap => "swapped with the next one".to_owned(),
        Act::Corrupt => "corrupted".to_owned(),
        Act::Cut => "dropped, and the cable cut,".to_owned(),
    }
}

/// The frame with all bits of its ICRC turned around, and else as it was. RoCEv2 packets are sent without a UDP checksum; one
/// that has it loses it here, or the receiver would drop it one layer too early.
fn corrupted(mut frame: Vec<u8>) -> Vec<u8> {
    let Frame::Roce(packet) = Frame::ethernet(&frame) else { return frame };
    let datagram = packet.datagram;
    let end = datagram.ip_offset + datagram.wire_length;
    let checksum = datagram.ip_offset + datagram.udp_offset + 6;
    frame[checksum..checksum + 2].fill(0);
    if let Some(icrc) = frame.get_mut(end - wire::icrc::LENGTH..end) {
        icrc.iter_mut().for_each(|byte| *byte = !*byte);
    }
    frame
}

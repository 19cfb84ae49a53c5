//! Doing as the rules say: what is recorded of a frame, what goes on, and what is held back for a while.

use super::{Act, Rules};
use crate::sighting::{Kept, Sighting};
use roce::Packet;
use std::time::Duration;

/// How long a packet waits for the one that it is to be swapped with. It is less than the time after which a lesson sends it
/// again.
const SWAP_LIMIT: Duration = Duration::from_millis(200);
/// Frames that delays may hold back. A real link holds no more, either.
const MAX_HELD: usize = 4096;

#[derive(Debug)]
pub(super) struct Held {
    frame: Kept,
    name: &'static str,
    from: usize,
    to: Option<usize>,
    is_swapped: bool,
}

/// What becomes of a frame.
#[derive(Debug, Default)]
pub struct Passage {
    /// The frame as its receiver gets it, if that is not as it was sent.
    pub damaged: Option<Vec<u8>>,
    /// How often it goes on to its receiver now. It is recorded as often, and once if it does not.
    pub copies: usize,
    /// Whether it waits, to go on later.
    pub waits: bool,
    /// What to record with it: with the last one, if it goes on several times.
    pub comment: Option<String>,
    /// What to say about it.
    pub line: Option<String>,
    /// A frame that goes on after it. It is recorded already, unless there is a switch.
    pub then: Option<Kept>,
    /// Whether its sender's cable is cut from now on.
    pub cuts: bool,
}

/// A frame that was held back and goes on now.
#[derive(Debug)]
pub struct Released {
    /// The node that has sent it.
    pub from: usize,
    /// The node that it is for; None for all.
    pub to: Option<usize>,
    /// It is recorded already, unless there is a switch.
    pub frame: Kept,
    /// What to say about it.
    pub line: String,
}

impl Rules {
    /// Decides about a frame that node `from` has sent to node `to`; None for all. Times are counted from the wire's begin.
    pub fn pass(&mut self, sighting: &Sighting, from: usize, to: Option<usize>, now: Duration) -> Passage {
        if self.is_empty() {
            return Passage { copies: 1, ..Passage::default() };
        }
        let waiting = self.waiting(sighting, from, to);
        let judged = self.judge(sighting, from, to);
        let Some((act, rule, name)) = judged.filter(|(act, ..)| waiting.is_none() || *act != Act::Swap) else {
            let then = waiting.and_then(|key| self.held.remove(&key)).map(|held| held.frame);
            return Passage { copies: 1, then, ..Passage::default() };
        };
        let deed = format!("{} by the rule: {}", done(act), self.rules[rule].text);
        let (line, comment) = (Some(format!("{name} {deed}")), Some(format!("lab: {deed}")));
        let passage = Passage { comment, line, cuts: act == Act::Cut, ..Passage::default() };
        let wait = match act {
            Act::Drop | Act::Cut => return passage,
            Act::Duplicate => return Passage { copies: 2, ..passage },
            Act::Corrupt => return Passage { damaged: Some(corrupted(sighting)), copies: 1, ..passage },
            Act::Delay(time) => time,
            Act::Swap => SWAP_LIMIT,
        };
        if self.held.len() == MAX_HELD {
            let comment = Some("lab: dropped, because so much is held back already".to_owned());
            return Passage { comment, line: None, ..passage };
        }
        self.count += 1;
        let mut frame = sighting.kept();
        frame.comment = passage.comment.clone();
        let held = Held { frame, name, from, to, is_swapped: act == Act::Swap };
        self.held.insert((now + wait, self.count), held);
        Passage { waits: true, ..passage }
    }

    /// The frame that waits for this one, to go on after it.
    fn waiting(&self, sighting: &Sighting, from: usize, to: Option<usize>) -> Option<(Duration, u64)> {
        let fits = |held: &Held| held.is_swapped && (held.from, held.to) == (from, to);
        let (key, _) = self.held.iter().find(|(_, held)| fits(held))?;
        sighting.told().map(|_| *key)
    }

    /// When the next frame that is held back is to go on.
    pub fn due(&self) -> Option<Duration> {
        self.held.first_key_value().map(|((time, _), _)| *time)
    }

    /// The next frame whose time has come.
    pub fn release(&mut self, now: Duration) -> Option<Released> {
        let next = self.held.first_entry().filter(|next| next.key().0 <= now)?;
        let Held { frame, name, from, to, is_swapped } = next.remove();
        let alone = format!(" alone: no packet to swap it with came within {} ms", SWAP_LIMIT.as_millis());
        let line = format!("{name} goes on{}", if is_swapped { &alone } else { "" });
        Some(Released { from, to, frame, line })
    }

    /// The nodes and names of the packets that are still held back.
    pub fn held(&self) -> impl Iterator<Item = (usize, &'static str)> + '_ {
        self.held.values().map(|held| (held.from, held.name))
    }
}

fn done(act: Act) -> String {
    match act {
        Act::Drop => "dropped".to_owned(),
        Act::Duplicate => "duplicated".to_owned(),
        Act::Delay(time) if time.subsec_micros() % 1000 > 0 => format!("delayed {} us", time.as_micros()),
        Act::Delay(time) => format!("delayed {} ms", time.as_millis()),
        Act::Swap => "swapped with the next one".to_owned(),
        Act::Corrupt => "corrupted".to_owned(),
        Act::Cut => "dropped, and the cable cut,".to_owned(),
    }
}

/// The frame with its ICRC inverted. A UDP checksum, which RoCEv2 doesn't need, is cleared, or the receiver would drop the packet one layer
/// too early. Over TCP the payload's last four bytes are inverted, so that TCP's checksum is wrong.
fn corrupted(sighting: &Sighting) -> Vec<u8> {
    let mut frame = sighting.data.to_vec();
    if let Some(segment) = sighting.iwarp().map(|brought| brought.segment) {
        let end = frame.len().min(segment.payload_offset + segment.length);
        frame[end.saturating_sub(roce::icrc::LENGTH)..end].iter_mut().for_each(|byte| *byte = !*byte);
    }
    let Some(Packet { datagram, .. }) = sighting.packet() else { return frame };
    let end = datagram.ip_offset + datagram.wire_length;
    let checksum = datagram.ip_offset + datagram.udp_offset + 6;
    frame[checksum..checksum + 2].fill(0);
    if let Some(icrc) = frame.get_mut(end - roce::icrc::LENGTH..end) {
        icrc.iter_mut().for_each(|byte| *byte = !*byte);
    }
    frame
}

//! Signs of congestion: marks of switches, notifications (CNPs), and pauses. They count for a connection, and are told once.

use super::cause::{Blame, Cause};
use super::finding::Findings;
use super::names::Names;
use roce::pause;
use roce::track::Side;

/// So many frames of each kind are named.
const MOST_FRAMES: usize = 3;

/// How often something was seen, and where first.
#[derive(Clone, Debug, Default)]
struct Sign {
    count: u64,
    frames: Vec<u64>,
}

impl Sign {
    fn see(&mut self, frame: u64) {
        self.count += 1;
        if self.frames.len() < MOST_FRAMES {
            self.frames.push(frame);
        }
    }
}

/// Pauses of each priority: a link's affair, and so that of all connections that have this priority there.
#[derive(Debug, Default)]
pub(super) struct Pauses([Sign; 8]);

impl Pauses {
    /// A pause frame. One with no time ends a pause, and is no sign of anything.
    pub(super) fn see(&mut self, pause: &pause::Frame, frame: u64) {
        let stopped = self.0.iter_mut().zip(pause.quanta).filter(|(_, quanta)| quanta.is_some_and(|quanta| quanta > 0));
        stopped.for_each(|(sign, _)| sign.see(frame));
    }
}

/// What a connection met.
#[derive(Debug, Default)]
pub(super) struct Congestion {
    /// Of each side: packets that are marked, and notifications that it got.
    marks: [Sign; 2],
    notifications: [Sign; 2],
    /// The priorities of its packets, one bit each.
    priorities: u8,
}

impl Congestion {
    /// A packet of this traffic class.
    pub(super) fn packet(&mut self, class: u8) {
        self.priorities |= 1 << (class >> 5);
    }

    /// A packet of this side was marked.
    pub(super) fn mark(&mut self, from: Side, frame: u64) {
        self.marks[from as usize].see(frame);
    }

    /// This side was told to slow down.
    pub(super) fn notify(&mut self, to: Side, frame: u64) {
        self.notifications[to as usize].see(frame);
    }

    /// All of it in a sentence, if there is anything. What was sent again counts only beside the other signs.
    pub(super) fn ended(&self, pauses: &Pauses, names: &Names, findings: &mut Findings) {
        let [marks, notifications] = [&self.marks, &self.notifications];
        let side =
            Side::BOTH.into_iter().max_by_key(|side| marks[*side as usize].count + notifications[*side as usize].count);
        let Some(side) = side else { return };
        let stops =
            pauses.0.iter().zip(0..).filter(|(sign, priority)| self.priorities >> priority & 1 == 1 && sign.count > 0);
        let stops: Vec<(&Sign, u8)> = stops.collect();
        let signs = [&marks[side as usize], &notifications[side as usize]];
        let mut frames: Vec<u64> = signs
            .iter()
            .copied()
            .chain(stops.iter().map(|(sign, _)| *sign))
            .flat_map(|sign| sign.frames.clone())
            .collect();
        if frames.is_empty() {
            return;
        }
        frames.sort_unstable();
        let mut told = Vec::new();
        if signs[0].count > 0 {
            told.push(format!("switches marked {} of {}'s packets (ECN 11)", signs[0].count, &names[side]));
        }
        if signs[1].count > 0 {
            told.push(format!("{} CNPs told it to slow down", signs[1].count));
        }
        told.extend(stops.iter().map(|(sign, priority)| {
            format!(
                "{} pause frames (PFC) stopped priority {priority}, which its packets have where the DSCP's upper three bits are the \
                 priority",
                sign.count
            )
        }));
        let again = findings.count(Cause::Lost) + findings.count(Cause::AnswerLost);
        if again > 0 {
            told.push(format!("{again} times it sent again what was lost or late"));
        }
        let told = findings.add(Cause::Congestion, side, told.join("; "), &frames);
        // A slow receiver also sends pauses.
        if signs.iter().all(|sign| sign.count == 0) {
            told.blame(Blame::Unknown);
        }
    }
}

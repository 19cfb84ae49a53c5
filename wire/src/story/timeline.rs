//! Reading `timeline.txt`, which a run in the lab leaves behind: both logs and the packets in the order they happened.
//!
//! A line has the time and three lanes; a line without time continues the one above.
//!
//! ```text
//!           server  10.47.91.1        │ the wire             │ client  10.47.91.2
//! ────────────────────────────────────┼──────────────────────┼───────────────────
//!   842.7  [#0008 reject] SLOW        │                      │
//!              rdma_reject            │                      │
//!   847.7                             │ ── REJ  reason 28 ─▶ │
//! ```

use super::{Act, Side};
use std::ops::Range;

/// What happened, in order.
#[derive(Clone, Debug)]
pub struct Timeline {
    entries: Vec<Entry>,
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where it stands.
    pub lane: Lane,
    /// What is said, without white space, for that depends on how wide the lane is.
    pub text: String,
    /// What is said, each line of the lane joined to the one above by one blank.
    pub words: String,
    /// The lines of the file that say it, counted from 0.
    pub lines: Range<usize>,
}

/// A column of the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// What this side's program prints.
    Log(Side),
    /// The packets.
    Wire,
}

/// The lanes from left to right.
const LANES: [Lane; 3] = [Lane::Log(Side::Server), Lane::Wire, Lane::Log(Side::Client)];

/// Width of the column with the time, which is part of the first lane.
const TIME: usize = 10;

impl Timeline {
    /// Reads the text; None if it has no heading with three lanes.
    pub fn parse(text: &str) -> Option<Timeline> {
        let mut lines = text.lines();
        let heading = lines.next()?;
        let bars: Vec<usize> = (0..).zip(heading.chars()).filter(|(_, c)| *c == '│').map(|(at, _)| at).collect();
        let [left, right] = bars[..] else { return None };
        lines.next()?;
        let mut entries: Vec<Entry> = Vec::new();
        for (number, line) in (2..).zip(lines) {
            let line: Vec<char> = line.chars().collect();
            let cell = |from: usize, to: usize| -> String {
                let cell: String = line.iter().take(to).skip(from).collect();
                cell.trim().into()
            };
            let begins = !cell(0, TIME).is_empty();
            let cells = [cell(TIME, left), cell(left + 1, right), cell(right + 1, line.len())];
            let filled = LANES.into_iter().zip(cells).find(|(_, words)| !words.is_empty());
            match (filled, entries.last_mut()) {
                (Some((lane, words)), _) if begins => {
                    entries.push(Entry { lane, text: squeeze(&words), words, lines: number..number + 1 });
                }
                (Some((_, words)), Some(entry)) => {
                    entry.text.push_str(&squeeze(&words));
                    entry.words = format!("{} {words}", entry.words);
                    entry.lines.end = number + 1;
                }
                _ => {}
            }
        }
        Some(Timeline { entries })
    }

    /// All that happened, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Where the log line of an act stands; `nth` counts lines that look the same, from 0.
    pub fn log_line(&self, act: &Act, nth: usize) -> Option<usize> {
        let stage = squeeze(&format!("{}]", act.stage));
        let log = squeeze(&act.log);
        let wanted = |entry: &Entry| {
            let told = entry.text.split_once(&stage).map(|(_, told)| told);
            entry.lane == Lane::Log(act.side) && told.is_some_and(|told| told.contains(&log))
        };
        let mut places = (0..).zip(&self.entries).filter(|(_, entry)| wanted(entry)).map(|(place, _)| place);
        places.nth(nth)
    }

    /// Whether a side's log has a line with this text.
    pub fn says(&self, side: Side, text: &str) -> bool {
        let text = squeeze(text);
        self.entries.iter().any(|entry| entry.lane == Lane::Log(side) && entry.text.contains(&text))
    }

    /// The places of the packets, each with its sender and with what is written on its arrow, without white space.
    pub fn packets(&self) -> Vec<(usize, Side, String)> {
        let wire = (0..).zip(&self.entries).filter(|(_, entry)| entry.lane == Lane::Wire);
        wire.map(|(place, entry)| {
            let side = if entry.text.starts_with('◀') { Side::Client } else { Side::Server };
            let text = entry.text.chars().filter(|c| !"─◀▶".contains(*c)).collect();
            (place, side, text)
        })
        .collect()
    }
}

/// Text without white space.
pub fn squeeze(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "          server  10.47.91.1      │ the wire               │ client  10.47.91.2
──────────────────────────────────┼────────────────────────┼───────────────────
   842.7  [#0008 reject] SLOW     │                        │
              rdma_reject         │                        │
   847.7                          │ ── REJ  reason 28 ───▶ │
                                  │     (consumer)         │
   850.2                          │                        │ [#0009 end] SLOW  bye
   851.0                          │ ◀──── ACK  psn 7 ───── │
";

    fn act(side: Side, stage: &str, log: &str) -> Act {
        Act { side, file: String::new(), stage: stage.into(), calls: Vec::new(), log: log.into() }
    }

    #[test]
    fn lines_and_packets_are_found_in_their_lanes() {
        let timeline = Timeline::parse(TEXT).unwrap();
        assert_eq!(timeline.log_line(&act(Side::Server, "reject", "SLOW rdma_reject"), 0), Some(0));
        assert_eq!(timeline.log_line(&act(Side::Server, "reject", "rdma_reject"), 1), None);
        assert_eq!(timeline.log_line(&act(Side::Server, "end", "bye"), 0), None);
        assert_eq!(timeline.log_line(&act(Side::Client, "end", "bye"), 0), Some(2));
        let packets = timeline.packets();
        let expected = [(1, Side::Server, "REJreason28(consumer)".into()), (3, Side::Client, "ACKpsn7".into())];
        assert_eq!(packets, expected);
        assert!(timeline.says(Side::Client, "bye") && !timeline.says(Side::Server, "bye"));
    }

    #[test]
    fn other_texts_are_no_timeline() {
        assert!(Timeline::parse("").is_none());
        assert!(Timeline::parse("one lane\n──\n").is_none());
    }
}

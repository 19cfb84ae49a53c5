//! What of a lesson's run is open when it is told; the rest is folded away.

use super::{Act, Side};
use crate::file::Line;

/// The lines of a stage: all of them, those of one side, or those that begin with certain words.
#[derive(Clone, Debug)]
pub struct Shown {
    side: Option<Side>,
    stage: String,
    words: String,
}

impl Shown {
    /// Reads `write`, `client write`, or `send: WC`.
    pub(super) fn parse(text: &str) -> Shown {
        let (stage, words) = text.split_once(": ").unwrap_or((text, ""));
        let of = |side: Side| stage.strip_prefix(side.name())?.strip_prefix(' ').map(|stage| (Some(side), stage));
        let (side, stage) = Side::BOTH.into_iter().find_map(of).unwrap_or((None, stage));
        Shown { side, stage: stage.to_owned(), words: words.to_owned() }
    }

    /// Whether the line is open.
    pub fn has(&self, line: &Line) -> bool {
        line.stage().is_some_and(|stage| self.is_of(&line.node, stage)) && line.words().starts_with(&self.words)
    }

    /// Whether this is about lines of this stage on this node.
    pub fn is_of(&self, node: &str, stage: &str) -> bool {
        stage == self.stage && self.side.map_or(true, |side| side.is_at(node))
    }

    /// Whether it leaves out a part of the stage.
    pub fn is_of_some_lines(&self) -> bool {
        !self.words.is_empty()
    }

    /// Whether the packets that an act causes are also open, which are those of a whole stage.
    pub fn has_packets_of(&self, act: &Act) -> bool {
        self.words.is_empty() && act.stage == self.stage && self.side.map_or(true, |side| side == act.side)
    }
}

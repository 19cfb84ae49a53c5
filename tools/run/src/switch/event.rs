//! What a switch tells of itself: lines of the lab in the run file. They are written and read here, and nowhere else.

use std::fmt;

/// What a switch does to a packet, as the packet's comment tells it behind `lab: `, with a colon and why.
pub(super) const DROPPED: &str = "dropped";
pub(super) const MARKED: &str = "marked";

/// What a switch has done to a packet with this comment, in a word; None if it was no switch.
pub fn done(comment: &str) -> Option<&'static str> {
    let said = comment.strip_prefix("lab: ")?.split_once(": ")?.0;
    [DROPPED, MARKED].into_iter().find(|done| *done == said)
}

/// Something that happened in a switch, about one of its neighbours: a node, or in a ring the next switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its name.
    pub port: String,
    /// What happened.
    pub what: What,
}

/// What happened to what is sent to a neighbour, or by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// So many bytes wait for it.
    Queue(u64),
    /// A frame for it was lost, for this reason.
    Drop(String),
    /// It was told to send nothing of this priority.
    Pause(u8),
    /// It may send this priority again.
    Resume(u8),
}

impl Event {
    /// The kind of act, in one word.
    pub fn act(&self) -> &'static str {
        match self.what {
            What::Queue(_) => "queue",
            What::Drop(_) => "drop",
            What::Pause(_) => "pause",
            What::Resume(_) => "resume",
        }
    }

    /// Reads the line that [`Display`](fmt::Display) has written; None if it is another act.
    pub fn read(act: &str, text: &str) -> Option<Event> {
        let (port, rest) = text.split_once(": ")?;
        let priority = |begin| rest.strip_prefix(begin)?.strip_prefix(", priority ")?.parse().ok();
        let what = match act {
            "queue" => What::Queue(rest.strip_suffix(" bytes wait")?.parse().ok()?),
            "drop" => What::Drop(rest.strip_prefix("lost, ")?.to_owned()),
            "pause" => What::Pause(priority("pause")?),
            "resume" => What::Resume(priority("go on")?),
            _ => return None,
        };
        Some(Event { port: port.to_owned(), what })
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = &self.port;
        match &self.what {
            What::Queue(bytes) => write!(f, "{port}: {bytes} bytes wait"),
            What::Drop(why) => write!(f, "{port}: lost, {why}"),
            What::Pause(priority) => write!(f, "{port}: pause, priority {priority}"),
            What::Resume(priority) => write!(f, "{port}: go on, priority {priority}"),
        }
    }
}

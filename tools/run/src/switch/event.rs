//! What a switch tells of itself: lines of the lab in the run file. They are written and read here, and nowhere else.

use std::fmt;

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
        let priority = || rest.strip_prefix("priority ")?.parse().ok();
        let what = match act {
            "queue" => What::Queue(rest.strip_suffix(" bytes wait")?.parse().ok()?),
            "drop" => What::Drop(rest.to_owned()),
            "pause" => What::Pause(priority()?),
            "resume" => What::Resume(priority()?),
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
            What::Drop(why) => write!(f, "{port}: {why}"),
            What::Pause(priority) | What::Resume(priority) => write!(f, "{port}: priority {priority}"),
        }
    }
}

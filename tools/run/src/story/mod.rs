//! The story of a lesson: what happens, step by step, and which packets each step puts on the wire.
//!
//! A lesson's `steps.toml` is the one source of the packet tables in its page, of the comments in its bundled
//! capture, and of the sentences of `wire compare`. [`parse`] reads such a file, [`named`] knows those of this
//! repository, and [`Follow`] says to which step each packet of a capture belongs.
//!
//! A step is one message on the wire: a CM message, one request with all its packets (a long WRITE is First,
//! Middle, …, Last), or the answer to one request. How many packets a message takes depends on the path MTU, so a
//! step does not count them.

mod file;
mod follow;
mod options;
pub mod proof;
mod shown;

pub use file::parse;
pub use follow::{Follow, Unexpected};
pub use options::{closest, own};
pub use roce::track::Side;
pub use shown::Shown;

use anyhow::{Context, Result};
use roce::aeth::Syndrome;
use roce::packet::Packet;
use serde::Deserialize;

/// One way of running a lesson, and all that happens then.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Story {
    /// The lesson's folder, for example `04_rdma_write`.
    #[serde(skip)]
    pub lesson: String,
    /// The way it is run; [`MAIN`] is the one without options.
    #[serde(rename = "name")]
    pub variant: String,
    /// What this way shows, in one sentence.
    pub about: String,
    /// Options for the server.
    #[serde(default)]
    pub server: String,
    /// Options for the client.
    #[serde(default)]
    pub client: String,
    /// Faults on the wire.
    #[serde(default)]
    pub wire: String,
    /// It is recorded on the device in user space: the lab cannot run it.
    #[serde(skip)]
    pub device: bool,
    /// The exit status of all programs.
    #[serde(default)]
    pub exit: u8,
    /// How many clients there are, each with a connection of its own.
    #[serde(default = "one")]
    pub clients: usize,
    /// The requests of each side, and their answers, come again and again, in this order.
    #[serde(default)]
    pub repeats: bool,
    /// Every node is the client of one connection, and the server of another: the side of a step is that in its connection, and
    /// whose program it is, its name does not say.
    #[serde(default)]
    pub peers: bool,
    /// What this way has open instead of what all ways of the lesson have.
    #[serde(rename = "shows")]
    pub own_shows: Option<Vec<String>>,
    /// What the lesson adds.
    #[serde(skip)]
    pub shows: Vec<Shown>,
    /// What happens. Where both sides act at the same time, their steps may interleave differently.
    #[serde(skip)]
    pub steps: Vec<Step>,
}

fn one() -> usize {
    1
}

/// The variant of every lesson that needs no options.
pub const MAIN: &str = "main";

/// One message on the wire, and what causes it.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its place in the story, from 1.
    pub number: usize,
    /// What happens, as a sentence without its full stop.
    pub title: String,
    /// Who sends the packets.
    pub side: Side,
    /// True if this side's device answers by itself, and its program has no part in it.
    pub device: bool,
    /// What a program does to cause the packets; if a device answers by itself, the other side's act that asked.
    pub act: Act,
    /// The packets' name, without what only says which part of the message they are: `RC RDMA Write` stands for
    /// Only, and for First, Middle and Last.
    pub packets: String,
    /// How the private data of a CM message begins, where its name alone does not tell the step.
    pub says: Option<String>,
}

/// What a program does.
#[derive(Clone, Debug)]
pub struct Act {
    /// Whose program.
    pub side: Side,
    /// The source file below the lesson's `src`.
    pub file: String,
    /// The function in that file: the stage that the log names.
    pub stage: String,
    /// The C functions that it calls to that end.
    pub calls: Vec<String>,
    /// A part of the log line that comes before the packets.
    pub log: String,
}

impl Story {
    /// The lesson's number, two digits.
    pub fn number(&self) -> &str {
        self.lesson.split('_').next().unwrap_or_default()
    }

    /// How people call it: `04`, or `04-multi-packet` for a variant.
    pub fn short_name(&self) -> String {
        self.with_variant(self.number())
    }

    /// The name of its files: `04_rdma_write`, or `04_rdma_write-multi-packet` for a variant.
    pub fn file_name(&self) -> String {
        self.with_variant(&self.lesson)
    }

    fn with_variant(&self, name: &str) -> String {
        match self.variant.as_str() {
            MAIN => name.into(),
            variant => format!("{name}-{variant}"),
        }
    }

    /// Whether a node may do what this side does.
    pub fn is_at(&self, side: Side, node: &str) -> bool {
        self.peers || side.is_at(node)
    }

    /// True if the two sides connect their queue pairs without the connection manager.
    pub fn has_no_cm(&self) -> bool {
        self.steps.iter().all(|step| step.packets.starts_with("RC "))
    }
}

impl Step {
    /// Whether a packet has the right name for this step.
    pub fn fits(&self, packet: &Packet) -> bool {
        let says = |text: &String| packet.cm().is_some_and(|message| message.given_data().starts_with(text.as_bytes()));
        let is_named = if is_refused(packet) { self.packets == NAK } else { packet.name().starts_with(&self.packets) };
        is_named && self.says.as_ref().map_or(true, says)
    }

    /// True if the packets ask for something that the peer's device answers: an ACK, or the bytes of a READ.
    pub fn is_request(&self) -> bool {
        self.packets.starts_with("RC ") && !self.is_answer()
    }

    /// True if the packets answer a request.
    pub fn is_answer(&self) -> bool {
        ["RC Acknowledge", NAK, "RC RDMA Read Response", "RC Atomic Acknowledge"].contains(&self.packets.as_str())
    }

    /// True if the packets say that a switch has marked some: a device sends them by itself, and they answer none.
    pub fn is_notification(&self) -> bool {
        self.packets == "CNP"
    }

    /// One line that says it all, for the packets' comment in a capture.
    pub fn comment(&self) -> String {
        let Step { number, title, side, act, .. } = self;
        let calls = act.calls.join(", ");
        let cause = match self.device {
            true => format!("{}'s device, in answer to the {}'s {calls}", side.name(), act.side.name()),
            false => format!("{}: {calls} in {}, {}", side.name(), act.stage, act.file),
        };
        format!("Step {number}: {title} [{cause}]")
    }
}

/// What a step calls the answer that refuses its request for good.
const NAK: &str = "RC NAK";

/// Whether a packet refuses a request for good. Other NAKs ask to send it again, and so belong to the answer that it gets then.
fn is_refused(packet: &Packet) -> bool {
    matches!(packet.aeth().map(|aeth| aeth.verdict()), Some(Syndrome::Nak(nak)) if nak.status().is_some())
}

/// The stories of this repository's lessons, in order.
const BUNDLED: [(&str, &str); 14] = [
    ("01_cm_listen", include_str!("../../../../lessons/01_cm_listen/steps.toml")),
    ("02_resources", include_str!("../../../../lessons/02_resources/steps.toml")),
    ("03_metadata_exchange", include_str!("../../../../lessons/03_metadata_exchange/steps.toml")),
    ("04_rdma_write", include_str!("../../../../lessons/04_rdma_write/steps.toml")),
    ("05_rdma_read", include_str!("../../../../lessons/05_rdma_read/steps.toml")),
    ("06_send_recv_state_machine", include_str!("../../../../lessons/06_send_recv_state_machine/steps.toml")),
    ("07_disconnect_flush", include_str!("../../../../lessons/07_disconnect_flush/steps.toml")),
    ("08_handle_api", include_str!("../../../../lessons/08_handle_api/steps.toml")),
    ("09_parameter_server", include_str!("../../../../lessons/09_parameter_server/steps.toml")),
    ("10_going_fast", include_str!("../../../../lessons/10_going_fast/steps.toml")),
    ("11_datagrams", include_str!("../../../../lessons/11_datagrams/steps.toml")),
    ("12_key_value_store", include_str!("../../../../lessons/12_key_value_store/steps.toml")),
    ("13_ring_all_reduce", include_str!("../../../../lessons/13_ring_all_reduce/steps.toml")),
    ("20_congestion", include_str!("../../../../lessons/20_congestion/steps.toml")),
];

/// The stories of all lessons and variants, in order.
pub fn bundled() -> Result<Vec<Story>> {
    let stories: Result<Vec<_>> = BUNDLED.iter().map(|(lesson, text)| parse(lesson, text)).collect();
    Ok(stories?.concat())
}

/// The story called `04`, `04-multi-packet`, or by its files' name.
pub fn named(name: &str) -> Result<Story> {
    let stories = bundled()?;
    let known: Vec<String> = stories.iter().map(Story::short_name).collect();
    let found = stories.into_iter().find(|story| story.short_name() == name || story.file_name() == name);
    found.with_context(|| format!("there is no story `{name}`; there are {}", known.join(", ")))
}

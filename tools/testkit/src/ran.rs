//! A finished run with questions to ask, read from its run file: so they are the same for a run in the lab and for one on the
//! device. Each answers with all that was printed if it is not met.

pub mod ruled;

use roce::{Frame, Packet};
use run::capture::Reader;
use run::exit::Exit;
use run::file::{Event, Line};
use run::story::Story;
use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use wire::compare::{compare, Capture, Report};

pub const SERVER: &str = "server";
pub const CLIENT: &str = "client";

/// What a node's program said, and how it ended: None if it did not end by itself, or there was none.
#[derive(Debug, Default)]
pub struct NodeReport {
    pub name: String,
    pub exit: Option<i32>,
    pub log: Vec<String>,
}

/// A run, and what else its runner tells of it.
pub struct Check<T> {
    pub outcome: T,
    pub file: PathBuf,
    pub nodes: Vec<NodeReport>,
}

impl<T> Check<T> {
    pub fn read(file: &Path, outcome: T) -> Self {
        let mut check = Self { outcome, file: file.to_owned(), nodes: Vec::new() };
        let mut nodes: Vec<NodeReport> = Vec::new();
        check.each_event(|event| {
            let Event::Line(line) = event else { return };
            let Some(status) = status(line) else { return };
            let node = match nodes.iter_mut().position(|node| node.name == line.node) {
                Some(at) => &mut nodes[at],
                None => {
                    nodes.push(NodeReport { name: line.node.clone(), ..NodeReport::default() });
                    nodes.last_mut().unwrap()
                }
            };
            match status {
                Some(status) => node.exit = Some(status),
                None => node.log.push(line.text.clone()),
            }
        });
        check.nodes = nodes;
        check
    }

    /// A node that said something.
    pub fn node(&self, name: &str) -> &NodeReport {
        let node = self.nodes.iter().find(|node| node.name == name);
        node.unwrap_or_else(|| panic!("no word of {name}: {}", self.all()))
    }

    /// Both programs ended by themselves, with these exit statuses.
    pub fn exits(self, server: i32, client: i32) -> Self {
        let got = [SERVER, CLIENT].map(|name| self.node(name).exit);
        assert_eq!(got, [Some(server), Some(client)], "{}", self.all());
        self
    }

    /// Some line of that node contains the text.
    #[track_caller]
    pub fn logs(&self, node: &str, text: &str) {
        assert!(self.count(node, text) > 0, "the {node} does not say {text:?}:\n{}", self.all());
    }

    /// Lines that contain these texts come one after the other.
    #[track_caller]
    pub fn logs_in_order(&self, node: &str, texts: &[&str]) {
        let mut lines = self.node(node).log.iter();
        for text in texts {
            assert!(lines.any(|line| line.contains(text)), "the {node} does not say {text:?} there:\n{}", self.all());
        }
    }

    /// How many lines contain the text.
    pub fn count(&self, node: &str, text: &str) -> usize {
        self.node(node).log.iter().filter(|line| line.contains(text)).count()
    }

    /// The first line that contains the text.
    #[track_caller]
    pub fn line(&self, node: &str, text: &str) -> String {
        self.logs(node, text);
        self.node(node).log.iter().find(|line| line.contains(text)).cloned().unwrap_or_default()
    }

    /// What follows `our metadata: ` or `the peer's metadata: ` in a node's log.
    pub fn metadata(&self, node: &str, whose: &str) -> String {
        let mark = format!("{whose} metadata: ");
        self.line(node, &mark).split(&mark).nth(1).unwrap_or_default().to_string()
    }

    /// Exactly these RoCE packets crossed the wire: each with its sender, C or S. Where both sides send on their own, the
    /// order between them is not fixed by the protocol, so the order is checked for each sender.
    #[track_caller]
    pub fn packets_are(&self, expected: &[&[&str]]) {
        let expected: Vec<String> = expected.concat().into_iter().map(String::from).collect();
        let got = self.packets_once();
        for sender in ["C ", "S "] {
            let of = |all: &[String]| -> Vec<String> {
                all.iter().filter(|packet| packet.starts_with(sender)).cloned().collect()
            };
            assert_eq!(of(&got), of(&expected), "{}", self.all());
        }
    }

    /// The packets' names with their senders, C or S.
    pub fn packets(&self) -> Vec<String> {
        let mut packets = Vec::new();
        self.each_packet(|node, packet| packets.push(named(node, packet)));
        packets
    }

    /// The same without repetitions: where the machines are slow, an answer may come too late for the one who waits for it.
    pub fn packets_once(&self) -> Vec<String> {
        let (mut packets, mut seen) = (Vec::new(), HashSet::new());
        self.each_packet(|node, packet| {
            let (name, number) = (named(node, packet), packet.cm().map(|message| message.transaction_id));
            if seen.insert((name.clone(), packet.bth.dest_qp, number.unwrap_or(packet.bth.psn.into()))) {
                packets.push(name);
            }
        });
        packets
    }

    /// How many packets have this name.
    pub fn packets_named(&self, name: &str) -> usize {
        self.packets().iter().filter(|packet| &packet[2..] == name).count()
    }

    /// The RoCE packets, each with the node that sent it.
    pub fn each_packet(&self, mut look: impl FnMut(&str, &Packet<'_>)) {
        self.each_event(|event| {
            let Event::Packet(record) = event else { return };
            if let Frame::Roce(packet) = Frame::ethernet(record.data) {
                look(record.node.unwrap_or_default(), &packet);
            }
        });
    }

    /// All that happened.
    pub fn each_event(&self, mut look: impl FnMut(&Event<'_>)) {
        let mut reader = Reader::new(open(&self.file)).unwrap();
        while let Some(event) = reader.event().unwrap() {
            look(&event);
        }
    }

    /// How the run differs from the bundled capture of a story.
    pub fn compared(&self, story: &Story) -> Report {
        compare(&capture(&self.file), &capture(&bundled(story)))
    }

    /// How the run differs from another one.
    pub fn compared_with<U>(&self, other: &Check<U>) -> Report {
        compare(&capture(&self.file), &capture(&other.file))
    }

    /// All that is known, for a test that fails.
    pub fn all(&self) -> String {
        let log = |node: &NodeReport| format!("{}: {:?}\n{}\n\n", node.name, node.exit, node.log.join("\n"));
        format!("{}packets: {:?}", self.nodes.iter().map(log).collect::<String>(), self.packets())
    }
}

/// Whether a line is a program's, or tells with which status it ended.
fn status(line: &Line) -> Option<Option<i32>> {
    match line.program.as_str() {
        Line::LAB if line.act == Line::EXIT => Some(line.ends_program().map(Exit::number)),
        Line::LAB | Line::KERNEL | Line::DEVICE => None,
        _ => Some(None),
    }
}

fn named(node: &str, packet: &Packet<'_>) -> String {
    format!("{} {}", if node == CLIENT { 'C' } else { 'S' }, packet.name())
}

/// The capture that was recorded of a story.
pub fn bundled(story: &Story) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../captures/{}.pcapng", story.file_name()))
}

fn capture(file: &Path) -> Capture {
    Capture::read(&mut Reader::new(open(file)).unwrap()).unwrap()
}

fn open(file: &Path) -> File {
    File::open(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// An example, for instance common's `odd_peer`; `cargo test --workspace` builds all of them.
pub fn example(name: &str) -> String {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(program.exists(), "{} does not exist: `cargo build --workspace --examples` builds it", program.display());
    program.display().to_string()
}

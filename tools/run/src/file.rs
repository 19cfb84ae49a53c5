//! What happened in a run, in order: packets, and lines of the programs, of the kernels and of the lab.
//!
//! A run file is a pcapng file with both. A line is a *systemd Journal Export Block*, one journal entry of
//! `KEY=value` lines, which Wireshark shows between the packets with a number of its own. The keys are those of
//! systemd.journal-fields(7), and a few more: `RDMA_STAGE` and `RDMA_TAG`, taken out of a lesson's line, `LAB_ACT`,
//! `LAB_STREAM` of a line on standard error, and `LAB_CODE`, see [`source`](crate::source). How a program ended is in
//! `EXIT_CODE` and `EXIT_STATUS`, as in the messages of systemd itself; what a device did is in `NIC_FACT`, its name, and a
//! field for each of the fact's own: `NIC_WR_ID`.

use crate::exit::{signal_name, Exit};
use crate::look::printable;
use crate::sighting::Sighting;
use crate::source::Source;

/// How the key of a field begins that is one of a device's fact.
const OF_DEVICE: &str = "NIC_";

/// One thing that happened.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A frame on the wire; its comment says what the lab did to it.
    Packet(Sighting<'a>),
    /// A line of text.
    Line(Line),
}

impl Event<'_> {
    /// Nanoseconds since 1970; None where the file does not tell.
    pub fn time_ns(&self) -> Option<u64> {
        match self {
            Event::Packet(sighting) => sighting.time_ns,
            Event::Line(line) => Some(line.time_ns()),
        }
    }
}

/// A line of text that somebody said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Its number in the file, counted with the packets from 1; 0 before it is written.
    pub number: u64,
    /// Microseconds since 1970.
    pub time_us: u64,
    /// The node that it is about, or that said it.
    pub node: String,
    /// Who said it: a program's name, [`Line::KERNEL`], [`Line::DEVICE`] or [`Line::LAB`].
    pub program: String,
    /// What was said, on one line and without control sequences.
    pub text: String,
    /// What kind of act the lab reports, in one word; empty otherwise.
    pub act: String,
    /// What a device did, as its fields: `fact` is its name, and then come those of that fact.
    pub fields: Vec<(String, String)>,
    /// Whether it was said on standard error.
    pub error: bool,
    /// The line of a lesson that has called for it; None if the program does not say so.
    pub source: Option<Source>,
    /// How the node's program ended, if this line reports that; or, in a line of the lab about the run as a whole, which signal
    /// has ended the run.
    pub exit: Option<Exit>,
}

impl Line {
    /// The program of a kernel's message.
    pub const KERNEL: &'static str = "kernel";
    /// The program of what a device in user space decides.
    pub const DEVICE: &'static str = "device";
    /// The program of what the lab did.
    pub const LAB: &'static str = "lab";

    /// The kind of act that says which switch is between the nodes, as `--wire` has it.
    pub const WIRE: &'static str = "wire";
    /// The kind of act that reports how a program ended: `exit status 0`.
    pub const EXIT: &'static str = "exit";
    /// The kind of act that reports why a run is no good; if it is about a node, the run ends that one's program.
    pub const TROUBLE: &'static str = "trouble";
    /// The kind of act that reports which signal has ended the run.
    pub const STOP: &'static str = "stop";
    /// The kind of act that reports that the file could not be written any further.
    pub const FULL: &'static str = "full";
    /// The kind of the lab's last act: nothing comes after it.
    pub const END: &'static str = "end";

    /// What a program said.
    pub fn of_program(program: &str, text: String, error: bool) -> Line {
        let (source, text) = match Source::split(&text) {
            Some((source, rest)) => (Some(source), rest.to_owned()),
            None => (None, text),
        };
        Line { program: program.to_owned(), text, error, source, ..Line::default() }
    }

    /// What a device did: a sentence, and a line `key=value` for each field.
    pub fn of_device(told: &str) -> Line {
        let mut lines = told.lines();
        let text = printable(lines.next().unwrap_or_default());
        let fields =
            lines.filter_map(|line| line.split_once('=')).map(|(key, value)| (key.to_owned(), printable(value)));
        Line { program: Line::DEVICE.to_owned(), text, fields: fields.collect(), ..Line::default() }
    }

    /// The name of what a device did; in a run file that is older than facts nothing has one.
    pub fn fact(&self) -> Option<&str> {
        self.field("fact")
    }

    /// A field of what a device did.
    pub fn field(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// What the lab did, with one word for it.
    pub fn of_lab(act: &str, text: &str) -> Line {
        Line { act: act.to_owned(), ..Line::of_program(Line::LAB, text.to_owned(), false) }
    }

    /// How the node's program ended.
    pub fn of_exit(exit: Exit) -> Line {
        Line { exit: Some(exit), ..Line::of_lab(Line::EXIT, &exit.to_string()) }
    }

    /// This signal has ended the run, while these nodes' programs were running.
    pub fn of_stop(signal: i32, running: &[&str]) -> Line {
        let text = match running {
            [] => format!("{} ended the run", signal_name(signal)),
            nodes => format!("{} ended the run while {} running", signal_name(signal), are(nodes)),
        };
        Line { exit: Some(Exit::Signal(signal)), ..Line::of_lab(Line::STOP, &text) }
    }

    /// How the node's program ended, if the line reports that.
    pub fn ends_program(&self) -> Option<Exit> {
        self.exit.filter(|_| self.program == Line::LAB && self.act == Line::EXIT)
    }

    /// Nanoseconds since 1970.
    pub fn time_ns(&self) -> u64 {
        self.time_us.saturating_mul(1000)
    }

    /// Whether the run has ended.
    pub fn ends_run(&self) -> bool {
        self.program == Line::LAB && self.act == Line::END
    }

    /// The stage in the heading of a lesson's line: `[12:00:00.000 #0007 accept] SLOW  rdma_accept`.
    pub fn stage(&self) -> Option<&str> {
        self.heading().map(|(stage, _)| stage)
    }

    /// The tag behind the heading of a lesson's line: SLOW, FAST, DATA, INFO or ERR. A device's decision is NIC.
    pub fn tag(&self) -> Option<&'static str> {
        if self.program == Line::DEVICE {
            return Some("NIC");
        }
        let word = self.heading()?.1.split_whitespace().next()?;
        ["SLOW", "FAST", "DATA", "INFO", "ERR"].into_iter().find(|tag| *tag == word)
    }

    /// The text without the heading of a lesson's line.
    pub fn said(&self) -> &str {
        self.heading().map_or(&self.text, |(_, rest)| rest)
    }

    /// The text without heading and tag; [`Said`](crate::said::Said) takes it apart.
    pub fn words(&self) -> &str {
        let tag = self.heading().and(self.tag()).unwrap_or_default();
        self.said().strip_prefix(tag).unwrap_or(self.said()).trim_start()
    }

    /// Run files that were written before they had fields for it say it in words alone.
    fn exit_in_words(&self) -> Option<Exit> {
        let said =
            self.text.strip_prefix("exit status ").filter(|_| self.program == Line::LAB && self.act == Line::EXIT);
        said?.parse().ok().map(Exit::of_shell)
    }

    fn heading(&self) -> Option<(&str, &str)> {
        let (heading, rest) = self.text.strip_prefix('[')?.split_once("] ")?;
        let mut words = heading.split(' ');
        let (_time, number, stage) = (words.next()?, words.next()?, words.next()?);
        (number.starts_with('#') && words.next().is_none()).then_some((stage, rest))
    }

    /// The journal entry. Syslog's priorities: 3 an error, 4 a warning, 6 the usual.
    pub(crate) fn export(&self) -> String {
        let priority = match (self.tag(), self.program.as_str()) {
            (Some("ERR"), _) => 3,
            (_, Line::KERNEL) => 4,
            _ => 6,
        };
        let time = self.time_us.to_string();
        let fields = [
            ("__REALTIME_TIMESTAMP", time.as_str()),
            ("_HOSTNAME", &self.node),
            ("SYSLOG_IDENTIFIER", &self.program),
            ("PRIORITY", &priority.to_string()),
            ("MESSAGE", &self.text),
            ("RDMA_STAGE", self.stage().unwrap_or_default()),
            ("RDMA_TAG", self.tag().unwrap_or_default()),
            ("LAB_ACT", &self.act),
            ("LAB_STREAM", if self.error { "stderr" } else { "" }),
            ("CODE_FILE", self.source.as_ref().map_or("", |source| &source.file)),
            ("CODE_LINE", &self.source.as_ref().map(|source| source.line.to_string()).unwrap_or_default()),
            ("LAB_CODE", self.source.as_ref().map_or("", |source| &source.text)),
            ("EXIT_CODE", self.exit.map_or("", Exit::word)),
            ("EXIT_STATUS", &self.exit.map(|exit| exit.value().to_string()).unwrap_or_default()),
        ];
        let mut entry = String::new();
        for (key, value) in fields.into_iter().filter(|(key, value)| !value.is_empty() || *key == "MESSAGE") {
            entry.push_str(&format!("{key}={}\n", value.replace('\n', " ")));
        }
        for (key, value) in &self.fields {
            entry.push_str(&format!("{OF_DEVICE}{}={value}\n", key.to_ascii_uppercase()));
        }
        entry
    }

    /// Reads a journal entry. Fields in systemd's binary form, which holds what is no text, are not understood. Whoever wrote
    /// the file may be a stranger: control characters are left out.
    pub(crate) fn read(number: u64, entry: &[u8]) -> Line {
        let entry = String::from_utf8_lossy(entry);
        let mut line = Line { number, ..Line::default() };
        let (mut exit_word, mut exit_value) = ("", "");
        for (key, value) in entry.trim_end_matches('\0').lines().filter_map(|field| field.split_once('=')) {
            match key {
                "__REALTIME_TIMESTAMP" => line.time_us = value.parse().unwrap_or_default(),
                "_HOSTNAME" => line.node = printable(value),
                "SYSLOG_IDENTIFIER" => line.program = printable(value),
                "MESSAGE" => line.text = printable(value),
                "LAB_ACT" => line.act = printable(value),
                "LAB_STREAM" => line.error = value == "stderr",
                "CODE_FILE" => line.source.get_or_insert_with(Source::default).file = printable(value),
                "CODE_LINE" => line.source.get_or_insert_with(Source::default).line = value.parse().unwrap_or_default(),
                "LAB_CODE" => line.source.get_or_insert_with(Source::default).text = printable(value),
                "EXIT_CODE" => exit_word = value,
                "EXIT_STATUS" => exit_value = value,
                _ => {
                    let field = key.strip_prefix(OF_DEVICE).map(|key| (key.to_ascii_lowercase(), printable(value)));
                    line.fields.extend(field);
                }
            }
        }
        line.exit = Exit::read(exit_word, exit_value).or_else(|| line.exit_in_words());
        line
    }
}

/// Nodes as the subject of a sentence: `the server was`, `the server and the client were`.
pub fn are(nodes: &[&str]) -> String {
    format!("{} {}", names(nodes), if nodes.len() == 1 { "was" } else { "were" })
}

/// Nodes in a sentence: `the server and the client`.
pub fn names(nodes: &[&str]) -> String {
    nodes.iter().map(|node| format!("the {node}")).collect::<Vec<_>>().join(" and ")
}

/// What the lab did to a packet, as `lab: dropped by the rule …`: it is at the end of the packet's comment.
pub fn lab_comment(comment: &str) -> Option<&str> {
    comment.find("lab: ").map(|at| &comment[at..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::Reader;
    use crate::pcapng::{Section, Writer};
    use roce::LinkType;

    #[test]
    fn stage_and_tag_are_found_in_a_lessons_line_and_nowhere_else() {
        let line = |text: &str| Line { text: text.into(), ..Line::default() };
        let lesson = line("[12:00:00.000 #0007 accept] SLOW  rdma_accept");
        assert_eq!((lesson.stage(), lesson.tag(), lesson.said()), (Some("accept"), Some("SLOW"), "SLOW  rdma_accept"));
        for other in ["", "[", "[1 2] x", "[    1.000000] rxe0: added", "[a b c d] SLOW x"] {
            let other = line(other);
            assert_eq!((other.stage(), other.tag(), other.said()), (None, None, other.text.as_str()));
        }
    }

    #[test]
    fn a_run_file_gives_back_packets_and_lines_with_one_numbering() {
        let mut writer = Writer::new(Vec::new(), &Section::default()).unwrap();
        let server = writer.interface(LinkType::ETHERNET, Some("server")).unwrap();
        let said = "[at a.rs:5] [12:00:00.000 #0007 accept] ERR   broken: a = b";
        let mut said = Line { node: "server".into(), time_us: 7, ..Line::of_program("lesson-04", said.into(), true) };
        said.source.as_mut().unwrap().text = "x = \"y\";".into();
        let exit = Line { number: 3, ..Line::of_exit(Exit::Signal(11)) };
        writer.line(&said).unwrap();
        writer.packet(server, 1_700_000_000_123_456_789, &[1, 2, 3], 90, Some("dropped ·")).unwrap();
        writer.line(&exit).unwrap();
        let file = writer.into_inner().unwrap();

        let mut reader = Reader::new(file.as_slice()).unwrap();
        assert!(matches!(reader.event().unwrap(), Some(Event::Line(line)) if line == Line { number: 1, ..said }));
        let Some(Event::Packet(packet)) = reader.event().unwrap() else { panic!("no packet") };
        assert_eq!((packet.number, packet.node, packet.comment), (2, Some("server"), Some("dropped ·")));
        assert_eq!((packet.time_ns, packet.data, packet.length), (Some(1_700_000_000_123_456_789), &[1, 2, 3][..], 90));
        assert!(matches!(reader.event().unwrap(), Some(Event::Line(line)) if line == exit));
        assert!(reader.event().unwrap().is_none());
        // One that is older has no fields for it.
        let old = Line { exit: None, ..Line::of_lab(Line::EXIT, "exit status 137") };
        assert_eq!(Line::read(1, old.export().as_bytes()).ends_program(), Some(Exit::Signal(9)));
        // A reader of packets alone counts as Wireshark does.
        assert_eq!(Reader::new(file.as_slice()).unwrap().next().unwrap().unwrap().number, 2);
    }
}

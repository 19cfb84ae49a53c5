//! What the player in the browser shows (tools/wire/player): every event of a run with the line of code behind it, the
//! packet's bytes, and what has changed in queue pairs and memory.
//!
//! All of that is found out here, once, from the run file and the lesson; the player looks nothing up. [`Run`] is written
//! as JSON, [`page`] puts that, the player and its look into one HTML file. Without a lesson, as with a capture of some
//! other program, there is no code, and states and memory are what the packets tell.

mod code;
mod event;
mod fields;
mod lesson;
mod memory;
mod outcomes;
pub mod page;
mod queue_pairs;
mod requests;
mod why;

pub use event::Run;
pub use lesson::Lesson;

use crate::show::iwarp;
use crate::show::parts::{parts, Part};
use code::Code;
use event::Event;
use fields::Fields;
use memory::Memory;
use queue_pairs::QueuePairs;
use roce::icrc::Icrc;
use roce::packet::{Frame, Packet};
use roce::Others;
use run::capture::Events;
use run::file::{self, Line};
use run::lanes::{self, Entry, Lanes};
use run::look::{printable, Sort};
use run::said::{is_act, waits, Said};
use run::sighting::Sighting;

/// How much of a capture, in bytes of memory, the player keeps; later events are only counted.
pub const MOST_KEPT: usize = 64 << 20;
/// How many events are shown: with more, a browser gets slow, and nobody gets to their end.
const MOST: usize = 3000;
/// Of a frame this many bytes are shown: a path MTU of 1024 and all headers.
const MOST_BYTES: usize = 1200;

/// Why there is no code beside a lesson's run.
const CODELESS: &str =
    "the code, for this log does not say which line of it acts; a run in the lab or on the device does";

/// A run, or any capture; `name` is what it is called without a lesson. What comes before damage is good, and is shown.
pub fn run(events: &Events, name: &str, lesson: Option<&Lesson>) -> Run {
    let mut lanes = lanes::begin(events);
    let story = lesson.and_then(|lesson| lesson.story(events, name));
    let mut follow = story.map(|story| story.follow());
    let mut player = Player::new(events, &lanes, lesson);
    let shows = story.map_or(&[][..], |story| &story.shows);
    let (mut left_out, mut others, mut more) = (Vec::new(), Others::default(), events.more());
    for event in events.iter() {
        if player.events.len() == MOST {
            more += 1;
            continue;
        }
        let entry = lanes.entry(&event);
        match (&event, entry) {
            (file::Event::Line(line), Some(entry)) => {
                player.line(line, entry);
                player.open_if(shows.iter().any(|shown| shown.has(line)));
            }
            (file::Event::Packet(sighting), entry) => match (&sighting.frame, entry) {
                (Frame::Roce(packet), Some(entry)) => {
                    // A damaged one is thrown away by whoever gets it.
                    let lost = entry.sort == Sort::Lost || packet.icrc() == Icrc::Bad;
                    let step = follow.as_mut().and_then(|follow| follow.packet(sighting, packet).ok());
                    player.packet(sighting, packet, entry, step, lost);
                    player.open_if(step.is_some_and(|step| shows.iter().any(|shown| shown.has_packets_of(&step.act))));
                    player.show(sighting.data, parts(sighting, packet), sighting.length);
                }
                (Frame::Other(other), entry) => match (sighting.iwarp(), entry) {
                    (Some(brought), Some(entry)) => {
                        player.segment(entry);
                        player.show(sighting.data, iwarp::parts(&sighting.record, brought), sighting.length);
                    }
                    _ => others.see(*other),
                },
                _ => {}
            },
            _ => {}
        }
    }
    left_out.extend(events.to_end().err().map(|error| error.to_string()));
    left_out.extend((!others.is_empty()).then(|| format!("no RoCEv2, and not shown: {others}")));
    let is_codeless = lesson.is_some() && player.code.shown.is_empty();
    left_out.extend(is_codeless.then(|| CODELESS.to_owned()));
    left_out.extend((more > 0).then(|| format!("only the first {MOST} events are shown, and {more} more are not")));
    let (title, about) = match (lesson, story) {
        (Some(lesson), Some(story)) => (lesson.title(), story.about.clone()),
        (Some(lesson), None) => (lesson.title(), String::new()),
        _ => (printable(name), String::new()),
    };
    // A capture of no lesson begins with its first packet.
    let opens = player.opens.or_else(|| player.events.iter().position(|event| event.to.is_some()));
    let opens = opens.map_or(0, |at| at + 1);
    let nodes = player.nodes.iter().map(|node| lanes.with_address(node)).collect();
    let (files, events, left_out) = (player.code.shown, player.events, left_out.join("; "));
    let Fields { layouts, texts } = player.fields;
    let (layouts, texts) = (layouts.into_inner(), texts.into_inner());
    Run { title, about, opens, nodes, files, events, layouts, texts, left_out }
}

/// Goes through a run.
struct Player {
    nodes: Vec<String>,
    code: Code,
    memory: Memory,
    queue_pairs: QueuePairs,
    fields: Fields,
    events: Vec<Event>,
    /// The event that is open first.
    opens: Option<usize>,
}

impl Player {
    fn new(events: &Events, lanes: &Lanes, lesson: Option<&Lesson>) -> Player {
        let nodes = lanes.left_to_right();
        Player {
            memory: Memory::new(events, &nodes),
            nodes,
            code: Code { sources: lesson.map(|lesson| lesson.sources.clone()).unwrap_or_default(), shown: Vec::new() },
            queue_pairs: QueuePairs::default(),
            fields: Fields::default(),
            events: Vec::new(),
            opens: None,
        }
    }

    fn node(&mut self, name: &str) -> usize {
        self.nodes.iter().position(|node| node == name).unwrap_or_else(|| {
            self.nodes.push(name.to_owned());
            self.nodes.len() - 1
        })
    }

    fn add(&mut self, entry: Entry, tag: String, stage: &str, text: String) -> &mut Event {
        let node = self.node(&entry.node);
        let to = entry.to.as_deref().map(|to| self.node(to));
        self.events.push(Event {
            n: entry.number,
            ms: entry.ms.map(|ms| (ms * 10.0).round() / 10.0),
            node,
            to,
            tag,
            stage: stage.to_owned(),
            text,
            notes: entry.notes,
            sort: entry.sort.look().0,
            ..Event::default()
        });
        let last = self.events.len() - 1;
        &mut self.events[last]
    }

    /// What the lesson adds begins with the last event, unless it has begun before.
    fn open_if(&mut self, is_open: bool) {
        self.opens = self.opens.or_else(|| self.events.len().checked_sub(1).filter(|_| is_open));
    }

    fn line(&mut self, line: &Line, entry: Entry) {
        let node = self.node(&entry.node);
        let said = Said::of(line);
        let code = line.source.as_ref().and_then(|source| self.code.place(source));
        let qp = self.queue_pairs.line(node, said);
        let memory = self.memory.line(node, said);
        let tag = line.tag().unwrap_or_default();
        let text = match line.program.as_str() {
            Line::KERNEL => format!("kernel: {}", line.words()),
            _ => line.words().to_owned(),
        };
        let why = self.fields.texts.number(why::line(line).to_owned());
        let event = self.add(entry, tag.to_owned(), &printable(line.stage().unwrap_or_default()), printable(&text));
        event.why = Some(why);
        (event.code, event.qp, event.memory) = (code, qp, memory);
    }

    fn packet(
        &mut self,
        sighting: &Sighting,
        packet: &Packet,
        entry: Entry,
        step: Option<&run::story::Step>,
        lost: bool,
    ) {
        let ends = [self.node(&entry.node), entry.to.as_deref().map_or(0, |to| self.node(to))];
        let qp = self.queue_pairs.packet(packet, ends, sighting.seen.zip(sighting.connection));
        let memory = self.memory.packet(sighting, packet, ends, lost);
        let (label, words) = entry.text.split_once("  ").unwrap_or((&entry.text, ""));
        let (label, words) = (label.to_owned(), words.to_owned());
        let why = why::packet(&label, step);
        let why = (!why.is_empty()).then(|| self.fields.texts.number(why));
        let (mut code, mut begins, mut entry) = (None, false, entry);
        if let Some(step) = step {
            let (actor, act) = (ends[usize::from(step.act.side != step.side)], &step.act);
            let said = |event: &Event| event.node == actor && event.stage == act.stage && is_act(&event.text, &act.log);
            code = self.events.iter().rev().filter(|event| said(event)).find_map(|event| event.code);
            let title = format!("Step {}: {}", step.number, step.title);
            if packet.opcode.is_first() {
                // The step begins with the line that causes it. Who waits causes nothing, and a device has no lines.
                let causes = |event: &&mut Event| said(event) && !event.begins && !waits(&event.text);
                let cause = self.events.iter_mut().find(causes).filter(|_| !step.device);
                begins = cause.is_none();
                if let Some(cause) = cause {
                    cause.begins = true;
                    cause.notes.insert(0, title.clone());
                }
            }
            if entry.notes.iter().all(|note| !note.starts_with("Step ")) {
                entry.notes.insert(0, title);
            }
        }
        let event = self.add(entry, label, "", words);
        (event.code, event.qp, event.memory, event.why, event.begins) = (code, qp, memory, why, begins);
        event.device = step.filter(|step| step.device).map(|_| true);
    }

    /// A TCP segment of an iWARP connection. Stories, queue pairs and memory are told in RoCE's packets.
    fn segment(&mut self, entry: Entry) {
        let (label, words) = entry.text.split_once("  ").unwrap_or((&entry.text, ""));
        let (label, words) = (label.to_owned(), words.to_owned());
        self.add(entry, label, "", words);
    }

    /// What the last packet holds.
    fn show(&mut self, frame: &[u8], parts: Vec<Part>, length: usize) {
        let parts = parts.into_iter().map(|part| self.fields.shown(part, frame)).collect();
        let Some(event) = self.events.last_mut() else { return };
        event.bytes = hex(&frame[..frame.len().min(MOST_BYTES)]);
        event.length = Some(length);
        event.parts = parts;
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

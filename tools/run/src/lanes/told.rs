//! A lesson's run as its story: every step has a heading, what the lesson adds is open below its own, and the rest is folded
//! away. Trouble is never folded: packets that the story does not have, that a rule has met, or that come again; errors; what
//! a kernel says. The run file holds everything.

use super::text;
use super::{Entry, Lanes};
use crate::file::{lab_comment, Event, Line};
use crate::look::printable;
use crate::said::{is_act, waits};
use crate::sighting::Sighting;
use crate::story::{Follow, Shown, Step, Story};
use crate::switch::{self, Event as Switched, What};
use std::collections::{HashMap, HashSet};

/// What a device's responder does.
const OF_RESPONDER: [&str; 12] = [
    "gap",
    "skipped",
    "duplicate",
    "refused",
    "dropped",
    "written",
    "received",
    "read",
    "atomic",
    "replaced",
    "visible",
    "datagram",
];
/// Acts of the lab that say no more than the story and the summary do.
const ROUTINE: [&str; 4] = ["start", "inspect", Line::EXIT, Line::END];
/// Waiting belongs to what was done before it.
const WAIT: &str = "wait_for";

/// Whether a line reports that a signal killed a program, which is never routine.
fn is_killed(line: &Line) -> bool {
    line.ends_program().is_some_and(|exit| exit.signal().is_some())
}

/// Tells a run, event by event.
#[derive(Debug)]
pub(super) struct Teller<'s> {
    pub(super) lanes: Lanes,
    story: &'s Story,
    follow: Follow<'s>,
    /// Of each step: whether it has its heading, and how many messages of it have passed.
    steps: Vec<(bool, usize)>,
    /// The stage that each node's last line is of, if it is open.
    open: HashMap<String, String>,
    /// Where the same comes again and again: the stages that have stood open, and on which node they still do.
    turns: HashMap<String, Option<String>>,
    /// Whether something is open.
    has_begun: bool,
    /// Whether the last packet does.
    is_passing: bool,
    /// What the programs have said since then, and which node's it was.
    said: Vec<(String, String)>,
    folded: usize,
    /// What a switch has done already, and to whom.
    switched: HashSet<(String, String)>,
}

impl<'s> Teller<'s> {
    pub(super) fn new(lanes: Lanes, story: &'s Story) -> Teller<'s> {
        let (follow, steps) = (story.follow(), vec![(false, 0); story.steps.len()]);
        Teller {
            lanes,
            story,
            follow,
            steps,
            open: HashMap::new(),
            turns: HashMap::new(),
            has_begun: false,
            is_passing: false,
            said: Vec::new(),
            folded: 0,
            switched: HashSet::new(),
        }
    }

    /// What is to be printed of an event; perhaps nothing.
    pub(super) fn event(&mut self, event: &Event) -> String {
        let Some(mut entry) = self.lanes.entry(event) else { return String::new() };
        let (heading, is_shown) = match event {
            Event::Line(line) => self.line(line, &mut entry),
            Event::Packet(sighting) => self.packet(sighting, &mut entry),
        };
        self.folded += usize::from(!is_shown && heading.is_empty());
        heading + &if is_shown { text::entry(self.lanes.style, &self.lanes.layout(), &entry) } else { String::new() }
    }

    /// What the programs have said themselves, and how much is folded away.
    pub(super) fn end(&self) -> String {
        let width = self.lanes.style.width;
        let names = self.said.iter().map(|(node, _)| node.chars().count()).max().unwrap_or(0);
        let mut text = format!("{:─<width$}\n", "── what the programs say ");
        for (node, said) in &self.said {
            for (place, line) in text::wrap(said, width.saturating_sub(2 + names)).into_iter().enumerate() {
                text += &format!("{:names$}  {line}\n", if place == 0 { node } else { "" });
            }
        }
        text + &format!("folded:   {} more lines and packets; log=all shows them\n", self.folded)
    }

    fn line(&mut self, line: &Line, entry: &mut Entry) -> (String, bool) {
        let Some(stage) = line.stage() else { return (String::new(), self.stageless(line)) };
        let shows = &self.story.shows;
        let is_of_stage = shows.iter().any(|shown| shown.is_of(&line.node, stage)) && self.has_turn(&line.node, stage);
        let waits_on = stage == WAIT && !is_of_stage;
        let shown = shows.iter().find(|shown| is_of_stage && shown.has(line));
        if shown.is_some_and(Shown::is_of_some_lines) {
            entry.text = printable(line.said());
        }
        if !waits_on {
            self.enter(&line.node, is_of_stage.then_some(stage));
        }
        let is_open = shown.is_some() || waits_on && self.open.contains_key(&line.node);
        let heading = match self.caused_by(line).filter(|step| is_open && self.is_open(step)) {
            Some(step) => self.heading(step, entry, true),
            None => String::new(),
        };
        self.begin(is_open);
        (heading, is_open || line.tag() == Some("ERR"))
    }

    /// Whether a stage may be open on this node.
    fn has_turn(&self, node: &str, stage: &str) -> bool {
        self.turns.get(stage).map_or(true, |turn| turn.as_deref() == Some(node))
    }

    /// A node's next line is of this stage, which is open; None is any other.
    fn enter(&mut self, node: &str, stage: Option<&str>) {
        let left = self.open.remove(node);
        if let Some(left) = left.filter(|left| self.comes_again() && stage != Some(left)) {
            self.turns.insert(left, None);
        }
        if let Some(stage) = stage {
            self.open.insert(node.to_owned(), stage.to_owned());
            if self.comes_again() {
                self.turns.insert(stage.to_owned(), Some(node.to_owned()));
            }
        }
    }

    /// Several clients, and what repeats, do the same again and again.
    fn comes_again(&self) -> bool {
        self.story.repeats || self.story.clients > 1
    }

    fn stageless(&mut self, line: &Line) -> bool {
        match line.program.as_str() {
            Line::KERNEL => true,
            Line::LAB if Switched::read(&line.act, &line.text).is_some() => self.is_switched_first(line),
            Line::LAB => is_killed(line) || !ROUTINE.contains(&line.act.as_str()),
            // The effect of a packet that is open is also shown where it arrives.
            Line::DEVICE => {
                self.open.contains_key(&line.node)
                    || self.is_passing && line.fact().is_some_and(|fact| OF_RESPONDER.contains(&fact))
            }
            // A panic, or a program's complaint.
            _ if line.error => true,
            _ => {
                self.said.push((line.node.clone(), line.text.clone()));
                false
            }
        }
    }

    /// A switch does the same again and again. The packets also show what waits, so a pause of each node is told only once.
    fn is_switched_first(&mut self, line: &Line) -> bool {
        let Some(Switched { port, what: What::Pause(_) | What::Resume(_) }) = Switched::read(&line.act, &line.text)
        else {
            return false;
        };
        self.switched.insert((line.act.clone(), port))
    }

    /// Whether what the lab has done to a packet is shown. That a switch loses or marks those of a node is shown once.
    fn is_done_to(&mut self, sighting: &Sighting) -> bool {
        let Some(done) = sighting.comment.and_then(lab_comment) else { return false };
        match switch::done(done) {
            Some(done) => self.switched.insert((done.to_owned(), sighting.node.unwrap_or_default().to_owned())),
            None => true,
        }
    }

    /// The step that this line begins. Whoever waits begins nothing.
    fn caused_by(&self, line: &Line) -> Option<&'s Step> {
        let is_it = |step: &Step| {
            let act = &step.act;
            let is_said = self.story.is_at(act.side, &line.node)
                && line.stage() == Some(&act.stage)
                && is_act(line.words(), &act.log);
            is_said && !step.device && !self.steps[step.number - 1].0 && !waits(line.words())
        };
        self.story.steps.iter().find(|step| is_it(step))
    }

    fn packet(&mut self, sighting: &Sighting, entry: &mut Entry) -> (String, bool) {
        // Stories are told in RoCE's packets. Over TCP each unit is shown, and what TCP says by itself is folded away.
        let Some(packet) = sighting.packet() else {
            let is_shown = sighting.iwarp().is_some_and(|brought| !brought.units.is_empty() || brought.doubt.is_some());
            return (String::new(), is_shown);
        };
        let Ok(step) = self.follow.packet(sighting, packet) else { return (String::new(), true) };
        let is_open = self.is_open(step);
        let (is_headed, messages) = &mut self.steps[step.number - 1];
        *messages += usize::from(packet.opcode.is_first());
        let (is_headed, is_again) = (*is_headed, *messages > 1);
        if is_again && self.comes_again() {
            self.turns.insert(step.act.stage.clone(), None);
        }
        let is_shown = if is_again { !self.comes_again() } else { is_open };
        self.begin(is_shown);
        self.is_passing = is_shown;
        // The heading says it already.
        entry.notes.retain(|note| !note.starts_with("Step "));
        let heading = if is_headed { String::new() } else { self.heading(step, entry, is_shown) };
        (heading, self.is_done_to(sighting) || is_shown)
    }

    /// What was said before the first thing that is open is folded away with the rest.
    fn begin(&mut self, is_open: bool) {
        if is_open && !self.has_begun {
            self.has_begun = true;
            self.folded += self.said.drain(..).count();
        }
    }

    /// Whether the packets of a step are open.
    fn is_open(&self, step: &Step) -> bool {
        self.story.shows.iter().any(|shown| shown.has_packets_of(&step.act))
    }

    /// A step's line: its number, what happens, and if nothing of it is open, its packet.
    fn heading(&mut self, step: &Step, entry: &Entry, is_open: bool) -> String {
        self.steps[step.number - 1].0 = true;
        let title = format!("{:>2}  {}", step.number, step.title);
        text::step(self.lanes.style, &self.lanes.layout(), entry, &title, is_open)
    }
}

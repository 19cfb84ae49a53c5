//! The wire between the nodes of a run, for the lab and the device alike: which way a frame takes, and what is recorded of it.
//!
//! A frame's way is [`Wire::carry`], from its first line to its last: it is seen, the rules judge it, it is sent on, recorded, and
//! what else the rule wants is done. Without a switch it has arrived by then. With one it only enters; [`Wire::cross`] then
//! says what the switch has done with it, and records it there. [`Ports`] are what hangs on the wire, and a [`Scribe`] takes
//! down what happens.

#[cfg(test)]
mod tests;

use crate::exit::Exit;
use crate::file::Line;
use crate::rules::Rules;
use crate::sighting::{Kept, Lookout, Sighting};
use crate::switch::{self, Out, Switch};
use anyhow::Result;
use std::collections::{BTreeSet, HashMap};
use std::mem;
use std::time::{Duration, Instant};

/// Who sends pause frames.
const SWITCH: &str = "switch";

/// What hangs on a wire: the nodes, by their numbers.
pub trait Ports {
    /// Which node a frame is for; None if it is for all, or nobody knows.
    fn target(&mut self, from: usize, sighting: &Sighting<'_>) -> Option<usize>;

    /// The nodes that a frame for all is brought to one by one.
    fn all_but(&self, from: usize) -> Vec<usize>;

    /// Brings these nodes a frame that no switch has delayed, and gives the first that had no room for it.
    fn send(&mut self, from: usize, to: &[usize], frame: &[u8]) -> Option<usize>;

    /// Brings a node a frame that comes out of the switch; false if it has no room for it.
    fn arrives(&mut self, to: usize, frame: Vec<u8>) -> bool;
}

/// Whoever takes down what happens, in the order of cause and effect.
pub trait Scribe {
    /// What its clock says, in nanoseconds; None if it has none.
    fn time_ns(&self) -> Option<u64> {
        None
    }

    /// A frame that a node has sent, and what became of it if it was not simply delivered. A frame that has a time keeps it.
    fn packet(&mut self, node: usize, sighting: Sighting<'_>, comment: Option<&str>) -> Result<()>;

    /// A line about a node, or about the run as a whole.
    fn line(&mut self, node: Option<usize>, line: Line) -> Result<()>;

    /// The number of a sender that is none of the run's nodes.
    fn other(&mut self, name: &str) -> Result<usize>;

    /// What was done to a node, or to the run as a whole, with one word for it.
    fn act(&mut self, node: Option<usize>, act: &str, text: &str) -> Result<()> {
        self.line(node, Line::of_lab(act, text))
    }

    /// A node's program has ended.
    fn exit(&mut self, node: usize, exit: Exit) -> Result<()> {
        self.line(Some(node), Line::of_exit(exit))
    }

    /// What makes the run no good.
    fn first_trouble(&mut self) -> &mut Option<String>;

    /// Something makes the run no good. The first such thing is the one that is told at the end.
    fn trouble(&mut self, node: Option<usize>, text: &str) -> Result<()> {
        self.first_trouble().get_or_insert_with(|| text.to_owned());
        self.act(node, Line::TROUBLE, text)
    }

    /// A signal ends the run, while these nodes' programs run.
    fn stop(&mut self, signal: i32, running: &[&str]) -> Result<()> {
        let line = Line::of_stop(signal, running);
        self.first_trouble().get_or_insert_with(|| line.text.clone());
        self.line(None, line)
    }
}

/// A wire, with the rules for it, what is in it, and all that it has seen.
#[derive(Debug, Default)]
pub struct Wire {
    rules: Rules,
    road: Road,
    /// Sees what nodes send, once: the rules, a switch and the recorder get its sighting.
    lookout: Lookout,
    /// When it began, if its time is this machine's.
    begun: Option<Instant>,
    /// How long after the begin it is, if time is virtual.
    pub time: Option<Duration>,
}

/// What is between the nodes.
#[derive(Debug, Default)]
struct Road {
    names: Vec<String>,
    switch: Option<Switch>,
    /// What nodes have sent and the switch has not got yet.
    entering: Vec<(usize, Option<usize>, Kept)>,
    /// What is in the switch, by the numbers that it gives: it has the bytes, and they are recorded when they come out.
    crossing: HashMap<u64, Kept>,
    /// The nodes whose cables are cut.
    cut: BTreeSet<usize>,
}

/// What a wire says of a frame that it has carried.
#[derive(Clone, Copy, Debug)]
pub struct Carried {
    /// What people call it: a packet's name, or that of an iWARP unit; None for other frames.
    pub name: Option<&'static str>,
    /// Whether the rules have let it pass.
    pub goes_on: bool,
    /// Whether they hold it back, to let it pass later.
    pub waits: bool,
}

impl Wire {
    /// Reads what a wire between these nodes is like, and what is to happen on it. The message about a word that is not
    /// understood points at it. Its time begins now.
    pub fn parse(text: &str, nodes: &[&str]) -> Result<Wire> {
        Ok(Wire { begun: Some(Instant::now()), ..Wire::still(text, nodes)? })
    }

    /// The same, but it's always as late as somebody says.
    pub fn still(text: &str, nodes: &[&str]) -> Result<Wire> {
        let (of_switch, rules) = switch::split(text);
        let (switch, rules) = (Switch::parse(&of_switch, nodes)?, Rules::parse(&rules, nodes)?);
        let names = nodes.iter().map(|name| (*name).to_owned()).collect();
        let road = Road { names, switch, ..Road::default() };
        let (lookout, begun, time) = Default::default();
        Ok(Wire { rules, road, lookout, begun, time })
    }

    /// Whether nothing can happen on it.
    pub fn is_plain(&self) -> bool {
        self.rules.is_empty() && self.road.switch.is_none()
    }

    /// The switch, if there is one.
    pub fn switch(&self) -> Option<&Switch> {
        self.road.switch.as_ref()
    }

    /// How long after its begin it is.
    pub fn now(&self) -> Duration {
        self.time.or_else(|| self.begun.map(|begun| begun.elapsed())).unwrap_or_default()
    }

    /// Until when the next frame is held back.
    pub fn held_until(&self) -> Option<Duration> {
        self.rules.due()
    }

    /// How long it is until something happens by itself.
    pub fn due(&self) -> Option<Duration> {
        let next = self.switch().and_then(Switch::next);
        next.into_iter().chain(self.held_until()).min().map(|due| due.saturating_sub(self.now()))
    }

    /// Carries a frame that a node sends.
    pub fn carry(
        &mut self,
        from: usize,
        frame: &[u8],
        ports: &mut impl Ports,
        scribe: &mut impl Scribe,
    ) -> Result<Carried> {
        let now = self.now();
        let Wire { rules, road, lookout, .. } = self;
        let has_switch = road.switch.is_some();
        let name = road.names.get(from).cloned();
        let sighting = lookout.live(name.as_deref(), frame);
        let to = ports.target(from, &sighting);
        let passage = rules.pass(&sighting, from, to, now);
        let goes_on = passage.copies > 0;
        let mut arriving = match &passage.damaged {
            Some(bytes) => sighting.with_bytes(bytes),
            None => sighting,
        };
        if passage.copies > 1 && !has_switch {
            // All copies leave in one moment. Whoever gets the first may take the processor before the second is taken down, and with
            // times of their own they'd look as if the sender had waited and sent the packet again.
            arriving.record.time_ns = scribe.time_ns();
        }
        for copy in 1..=passage.copies.max(1) {
            // A switch takes the comment along, and it's recorded when the frame comes out.
            arriving.record.comment = passage.comment.as_deref().filter(|_| copy >= passage.copies);
            let lost = if goes_on { road.send(from, to, &arriving, ports) } else { None };
            let comes_out_of_switch = has_switch && lost.is_none() && (goes_on || passage.waits);
            if !comes_out_of_switch {
                let lost = lost.map(|lost| format!("lab: {lost}"));
                scribe.packet(from, arriving, lost.as_deref().or(arriving.comment))?;
            }
            arriving = arriving.again();
        }
        if let Some(line) = &passage.line {
            scribe.act(Some(from), "rule", line)?;
        }
        if let Some(waited) = &passage.then {
            road.send(from, to, &waited.sighting(None), ports);
        }
        if passage.cuts {
            road.cut.insert(from);
        }
        Ok(Carried { name: sighting.told(), goes_on, waits: passage.waits })
    }

    /// Records a frame that somebody outside has sent to a node.
    pub fn outside(&mut self, name: &str, frame: &[u8], scribe: &mut impl Scribe) -> Result<()> {
        let number = scribe.other(name)?;
        scribe.packet(number, self.lookout.live(Some(name), frame), None)
    }

    /// Lets frames go on that rules have held back until now.
    pub fn let_go(&mut self, ports: &mut impl Ports, scribe: &mut impl Scribe) -> Result<()> {
        while let Some(released) = self.rules.release(self.now()) {
            let lost = self.road.send(released.from, released.to, &released.frame.sighting(None), ports);
            scribe.act(Some(released.from), "rule", &lost.unwrap_or(released.line))?;
        }
        Ok(())
    }

    /// Gives the switch what has been sent until now, node by node: so it's the same whoever was heard first.
    pub fn enter(&mut self) {
        let now = self.now();
        let Road { switch: Some(switch), entering, crossing, .. } = &mut self.road else { return };
        entering.sort_by_key(|(from, ..)| *from);
        for (from, to, mut seen) in entering.drain(..) {
            let number = switch.send(now, from, to, mem::take(&mut seen.data));
            crossing.insert(number, seen);
        }
    }

    /// What has happened at the switch until now: frames have come to a queue, or to a node.
    pub fn cross(&mut self, ports: &mut impl Ports, scribe: &mut impl Scribe) -> Result<()> {
        self.enter();
        let now = self.now();
        let outs = self.road.switch.as_mut().map(|switch| switch.advance(now)).unwrap_or_default();
        for (_, out) in outs {
            match out {
                Out::Passed { from, number, frame, comment } => {
                    let sender = from.map_or_else(|| scribe.other(SWITCH), Ok)?;
                    match self.road.crossing.remove(&number) {
                        Some(mut seen) => {
                            seen.data = frame;
                            let comment = comment.or_else(|| seen.comment.take());
                            scribe.packet(sender, self.lookout.recall(&seen), comment.as_deref())?;
                        }
                        // The switch itself sends it. Or it's for all, and another copy of it came out before this one was lost.
                        None => {
                            let name = from.map_or(SWITCH, |from| &self.road.names[from]);
                            scribe.packet(sender, self.lookout.live(Some(name), &frame), comment.as_deref())?;
                        }
                    }
                }
                Out::Deliver { to, frame } => {
                    if let Some(lost) = self.road.arrives(to, frame, ports) {
                        scribe.act(None, "drop", &lost)?;
                    }
                }
                Out::Tell(event) => scribe.act(None, event.act(), &event.to_string())?,
            }
        }
        Ok(())
    }

    /// The run is over: says what the rules still hold back, and what they have not come to.
    pub fn end(&self, scribe: &mut impl Scribe) -> Result<()> {
        for (node, name) in self.rules.held() {
            scribe.act(Some(node), "rule", &format!("{name} is still held back, and the run is over"))?;
        }
        self.rules.trouble().map_or(Ok(()), |trouble| scribe.trouble(None, &trouble))
    }
}

impl Road {
    /// Sends a frame on, and says why it is lost, if it is.
    fn send(&mut self, from: usize, to: Option<usize>, frame: &Sighting, ports: &mut impl Ports) -> Option<String> {
        let is_cut = |node: &usize| self.cut.contains(node);
        if let Some(cut) = [Some(from), to].into_iter().flatten().find(is_cut) {
            return Some(self.is_cut(cut));
        }
        if self.switch.is_some() {
            self.entering.push((from, to, frame.kept()));
            return None;
        }
        let (cut, reached): (Vec<_>, Vec<_>) =
            to.map_or_else(|| ports.all_but(from), |to| vec![to]).into_iter().partition(is_cut);
        let full = ports.send(from, &reached, frame.data);
        full.map(|node| self.is_full(node)).or_else(|| cut.first().map(|node| self.is_cut(*node)))
    }

    /// Brings a node what the switch has for it, and says why it is lost, if it is.
    fn arrives(&mut self, to: usize, frame: Vec<u8>, ports: &mut impl Ports) -> Option<String> {
        if self.cut.contains(&to) {
            return Some(self.is_cut(to));
        }
        (!ports.arrives(to, frame)).then(|| self.is_full(to))
    }

    fn is_cut(&self, node: usize) -> String {
        format!("dropped, as the cable of {} is cut", self.names[node])
    }

    fn is_full(&self, node: usize) -> String {
        format!("dropped, as {} takes nothing from the wire and its queue is full", self.names[node])
    }
}

//! A wire that is a switch: frames cross it in virtual time, which this moves.
//!
//! Time stands still while a program works or a device is at it. When all sleep, it goes to where something is due next: at the
//! switch or at a device. So what a run sends, and when, depends on no processor. A program's sleep
//! is virtual, its own clock is not.

use super::record::Recorder;
use super::still::{Doing, Still};
use anyhow::{anyhow, Context, Result};
use device::node::line::{self, Line, Rein};
use device::node::tap::Stepped;
use nic::congestion::{self, Parameters};
use run::switch::{Out, Settings, Switch};
use std::time::{Duration, Instant};

/// What is known of a node.
struct Node {
    rein: Rein,
    /// For its device, until that is started.
    line: Option<Line>,
    /// When something is due there.
    due: Option<Duration>,
    is_gone: bool,
    /// It was told to make a step, and has not said that it is done.
    is_asked: bool,
    /// What it has sent at this time.
    sent: Vec<(Option<usize>, Vec<u8>)>,
}

pub struct Link {
    switch: Switch,
    /// How devices react to marks, if they do.
    parameters: Option<Parameters>,
    nodes: Vec<Node>,
    /// The instant at which the time 0 was, for the rules.
    begin: Instant,
    pub now: Duration,
    /// Something happened that a program may answer.
    pub is_news: bool,
    still: Still,
    /// Since when nothing but pauses is due, by this machine's clock and by ours.
    stuck: Option<(Instant, Duration)>,
}

/// What a turn has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Programs work.
    Wait,
    /// Nothing is due any more.
    Idle,
    /// Nodes were asked what waits there.
    Asked,
    /// It is another time, and what is due then is to be done.
    Moved,
}

impl Link {
    pub fn new(switch: Switch, nodes: usize) -> Result<Link> {
        let node = |_| {
            let (rein, line) = line::pair().context("socketpair")?;
            Ok(Node { rein, line: Some(line), due: None, is_gone: false, is_asked: false, sent: Vec::new() })
        };
        let nodes = (0..nodes).map(node).collect::<Result<_>>()?;
        let parameters = parameters(&switch.settings)?;
        Ok(Link {
            switch,
            parameters,
            nodes,
            begin: Instant::now(),
            now: Duration::ZERO,
            is_news: true,
            still: Still::default(),
            stuck: None,
        })
    }

    /// The line that a node's device is to hear, and the link that it sends on.
    pub fn line(&mut self, node: usize) -> Option<(Line, congestion::Link)> {
        let line = self.nodes[node].line.take()?;
        Some((line, congestion::Link::new(self.switch.settings.rate, self.parameters)))
    }

    /// A node has sent a frame, now.
    pub fn sends(&mut self, from: usize, to: Option<usize>, frame: Vec<u8>) {
        self.nodes[from].sent.push((to, frame));
    }

    /// The same time, for those who measure by a clock.
    pub fn instant(&self) -> Instant {
        self.begin + self.now
    }

    /// A node says that it has done what was due.
    pub fn stepped(&mut self, node: usize, stepped: Stepped, guardian: u32) {
        let node = &mut self.nodes[node];
        node.is_asked = false;
        let is_news = match stepped {
            Stepped::Next { due, was_busy } => {
                node.due = due;
                was_busy
            }
            Stepped::Gone => {
                node.is_gone = true;
                node.due = None;
                true
            }
        };
        if is_news {
            self.news(guardian);
        }
    }

    /// Programs have something to look at, from now on.
    pub fn news(&mut self, guardian: u32) {
        self.is_news = true;
        self.still.news(guardian);
    }

    /// Whether a node has been asked and has not answered.
    pub fn is_waiting(&self) -> bool {
        self.nodes.iter().any(|node| node.is_asked && !node.is_gone)
    }

    /// Tells a node what time it is, and brings it a frame, or nothing.
    pub fn ask(&mut self, node: usize, frame: &[u8]) {
        let node = &mut self.nodes[node];
        if !node.is_gone && node.line.is_none() {
            node.is_asked = node.rein.step(self.now, frame);
        }
    }

    /// The nodes where something is due.
    pub fn due(&self) -> Vec<usize> {
        let is_due = |node: &Node| node.due.is_some_and(|due| due <= self.now);
        (0..self.nodes.len()).filter(|node| is_due(&self.nodes[*node])).collect()
    }

    /// Makes time go on, if all programs sleep. A rule may hold something back until a time.
    pub fn turn(&mut self, held: Option<Instant>, guardian: u32) -> Turn {
        if self.is_news {
            if self.still.look(guardian) == Doing::Work {
                return Turn::Wait;
            }
            // Calls that wait are done at this time, too; what comes of them is new again.
            self.is_news = false;
            (0..self.nodes.len()).for_each(|node| self.ask(node, &[]));
            return Turn::Asked;
        }
        for from in 0..self.nodes.len() {
            for (to, frame) in std::mem::take(&mut self.nodes[from].sent) {
                self.switch.send(self.now, from, to, frame);
            }
        }
        let held = held.map(|held| held.saturating_duration_since(self.begin));
        let due = self.nodes.iter().filter_map(|node| node.due).chain(held).min();
        let Some(next) = due.into_iter().chain(self.switch.next()).min() else { return Turn::Idle };
        // A ring in a deadlock tells of pauses for ever. Who waits for its end does so by this machine's clock: no hurry then.
        if due.is_none() && self.switch.is_stuck() {
            let (since, begin) = *self.stuck.get_or_insert((Instant::now(), self.now));
            if next > begin + since.elapsed() {
                return Turn::Idle;
            }
        } else {
            self.stuck = None;
        }
        self.now = self.now.max(next);
        Turn::Moved
    }

    /// What is due now at the switch: frames and lines are recorded, and what is delivered is given back.
    pub fn cross(&mut self, recorder: &mut Recorder) -> Result<Vec<(usize, Vec<u8>)>> {
        let mut arrived = Vec::new();
        for (_, out) in self.switch.advance(self.now) {
            match out {
                Out::Passed { from: Some(from), frame, comment } => {
                    recorder.packet(from, &frame, comment.as_deref())?
                }
                Out::Passed { from: None, frame, .. } => recorder.of_switch(&frame)?,
                Out::Deliver { to, frame } => arrived.push((to, frame)),
                Out::Tell(event) => recorder.act(None, event.act(), &event.to_string())?,
            }
        }
        Ok(arrived)
    }
}

/// The parameters of DCQCN, if devices are to do it.
///
/// # Errors
/// They are not understood.
pub fn parameters(settings: &Settings) -> Result<Option<Parameters>> {
    let parsed = settings.dcqcn.as_deref().map(Parameters::parse).transpose();
    parsed.map_err(|error| anyhow!("the wire's `dcqcn` is not understood: {error}"))
}

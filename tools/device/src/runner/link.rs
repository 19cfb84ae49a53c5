//! Virtual time, for nodes with a switch between them: this moves it.
//!
//! Time stands still while a program works or a device is at it. When all sleep, it goes to where something is due next: at the
//! switch or at a device. So what a run sends, and when, depends on no processor. A program's sleep
//! is virtual, its own clock is not.

use super::still::{Doing, Still};
use anyhow::{anyhow, Context, Result};
use device::node::line::{self, Line, Rein};
use device::node::tap::Stepped;
use nic::congestion::{self, Parameters};
use run::switch::{Settings, Switch};
use run::wire::Wire;
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
}

pub struct Link {
    /// Bits per second on each cable.
    rate: u64,
    /// How devices react to marks, if they do.
    parameters: Option<Parameters>,
    nodes: Vec<Node>,
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
    pub fn new(settings: &Settings, nodes: usize) -> Result<Link> {
        let node = |_| {
            let (rein, line) = line::pair().context("socketpair")?;
            Ok(Node { rein, line: Some(line), due: None, is_gone: false, is_asked: false })
        };
        let nodes = (0..nodes).map(node).collect::<Result<_>>()?;
        let parameters = parameters(settings)?;
        Ok(Link { rate: settings.rate, parameters, nodes, is_news: true, still: Still::default(), stuck: None })
    }

    /// The line that a node's device is to hear, and the link that it sends on.
    pub fn line(&mut self, node: usize) -> Option<(Line, congestion::Link)> {
        let line = self.nodes[node].line.take()?;
        Some((line, congestion::Link::new(self.rate, self.parameters)))
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
    pub fn ask(&mut self, node: usize, now: Duration, frame: &[u8]) {
        let node = &mut self.nodes[node];
        if !node.is_gone && node.line.is_none() {
            node.is_asked = node.rein.step(now, frame);
        }
    }

    /// The nodes where something is due.
    pub fn due(&self, now: Duration) -> Vec<usize> {
        let is_due = |node: &Node| node.due.is_some_and(|due| due <= now);
        (0..self.nodes.len()).filter(|node| is_due(&self.nodes[*node])).collect()
    }

    /// Makes the wire's time go on, if all programs sleep.
    pub fn turn(&mut self, wire: &mut Wire, guardian: u32) -> Turn {
        if self.is_news {
            if self.still.look(guardian) == Doing::Work {
                return Turn::Wait;
            }
            // Calls that wait are also done at this time, and what they cause is new again.
            self.is_news = false;
            (0..self.nodes.len()).for_each(|node| self.ask(node, wire.now(), &[]));
            return Turn::Asked;
        }
        wire.enter();
        let due = self.nodes.iter().filter_map(|node| node.due).chain(wire.held_until()).min();
        let Some(next) = due.into_iter().chain(wire.switch().and_then(Switch::next)).min() else { return Turn::Idle };
        // A ring in a deadlock tells of pauses for ever. Who waits for its end does so by this machine's clock: no hurry then.
        if due.is_none() && wire.switch().is_some_and(Switch::is_stuck) {
            let (since, begin) = *self.stuck.get_or_insert((Instant::now(), wire.now()));
            if next > begin + since.elapsed() {
                return Turn::Idle;
            }
        } else {
            self.stuck = None;
        }
        wire.time = Some(wire.now().max(next));
        Turn::Moved
    }
}

/// The parameters of DCQCN, if devices are to do it.
///
/// # Errors
/// They are not understood.
pub fn parameters(settings: &Settings) -> Result<Option<Parameters>> {
    let parsed = settings.dcqcn.as_deref().map(Parameters::parse).transpose();
    parsed.map_err(|error| anyhow!("cannot read the `dcqcn` of wire=: {error}"))
}

//! The run of a script: two nodes, a wire, and a clock that goes on when nothing else can happen.

use crate::node::{Connection, Node};
use crate::script::{Call, Script, Timed};
use crate::wire::{Record, Recorded};
use anyhow::Result;
use nic::congestion::Parameters;
use nic::memory::Access;
use pair::{CLIENT, SERVER};
use run::file::Line;
use std::collections::VecDeque;
use std::time::Duration;

/// Packets after which a run that would go on for ever is ended. The player shows 3,000 events at the most, and a packet comes
/// with what both NICs say about it.
const MOST_PACKETS: usize = 500;
/// Turns after which it's given up, whatever happens.
const MOST_TURNS: usize = 100_000;
/// The rights of the memory that a program registers if its script doesn't say what.
const ALL: Access =
    Access(Access::LOCAL_WRITE.0 | Access::REMOTE_WRITE.0 | Access::REMOTE_READ.0 | Access::REMOTE_ATOMIC.0);

/// What a run leaves behind.
pub struct Run {
    /// The run file, and when what in it happened.
    pub record: Record,
    /// The server and the client, as they are at the end.
    pub nodes: [Node; 2],
    /// For each call, the number of the event at which it was made, or began to wait; None if it never was.
    pub made: Vec<Option<u64>>,
    /// The calls that were never made, or wait for ever, by their places.
    pub waiting: Vec<usize>,
    /// Why it was ended before it had come to its end by itself.
    pub ended: Option<String>,
}

/// Lines that follow each other.
struct Strand {
    node: usize,
    /// The places of its calls in the script.
    calls: VecDeque<usize>,
    /// How many completions the call before it still waits for, if it's one that waits.
    polling: Option<usize>,
}

struct Bench<'a> {
    script: &'a Script,
    nodes: [Node; 2],
    wire: Recorded,
    now: Duration,
    strands: Vec<Strand>,
    made: Vec<Option<u64>>,
    /// Whether each has listened, or has asked for the connection.
    begun: [bool; 2],
}

/// Runs a script to its end.
///
/// # Errors
/// A rule for the wire isn't understood together with the others.
pub fn run(script: &Script) -> Result<Run> {
    let rules = script.wire();
    let mut bench = Bench {
        script,
        nodes: [SERVER, CLIENT].map(|number| Node::new(number, script.settings)),
        wire: Recorded::begin(&rules)?,
        now: Duration::ZERO,
        strands: strands(&script.calls),
        made: vec![None; script.calls.len()],
        begun: [false; 2],
    };
    bench.plug(&rules)?;
    let ended = bench.run();
    let waiting: Vec<usize> = bench.strands.iter().flat_map(|strand| strand.calls.iter().copied()).collect();
    if let Some(why) = &ended {
        bench.wire.says(None, Line::of_lab("stopped", why));
    }
    for call in &waiting {
        let Timed { node, line, text, .. } = &script.calls[*call];
        let what = if bench.made[*call].is_some() { "waits for ever" } else { "is never reached" };
        let words = format!("line {line} {what}: {text}");
        bench.wire.says(Some(*node), Line::of_lab("waits", &words));
    }
    Ok(Run { record: bench.wire.end()?, nodes: bench.nodes, made: bench.made, waiting, ended })
}

/// A call with a time begins a strand of its own.
fn strands(calls: &[Timed]) -> Vec<Strand> {
    let strand = |node| Strand { node, calls: VecDeque::new(), polling: None };
    let mut strands = vec![strand(SERVER), strand(CLIENT)];
    let mut last = [SERVER, CLIENT];
    for (at, call) in calls.iter().enumerate() {
        if call.at.is_some() {
            last[call.node] = strands.len();
            strands.push(strand(call.node));
        }
        strands[last[call.node]].calls.push_back(at);
    }
    strands
}

impl Bench<'_> {
    /// If there's a switch, the NICs' links are as fast as its links.
    fn plug(&mut self, rules: &str) -> Result<()> {
        let (switch, _) = run::switch::split(rules);
        let Some(settings) = run::switch::settings(&switch)? else { return Ok(()) };
        self.wire.says(None, Line::of_lab(Line::WIRE, &switch));
        let dcqcn = settings.dcqcn.as_deref().map(Parameters::parse).transpose().map_err(anyhow::Error::msg)?;
        self.nodes.iter_mut().for_each(|node| node.plug(settings.rate, dcqcn));
        Ok(())
    }

    /// Lets all happen. Why it was ended, if it would go on.
    fn run(&mut self) -> Option<String> {
        for node in [SERVER, CLIENT] {
            self.nodes[node].create(&mut self.wire);
            if !self.script.calls.iter().any(|call| call.node == node && matches!(call.call, Call::Register(..))) {
                self.nodes[node].register(&mut self.wire, &(0..crate::script::MEMORY), ALL);
            }
        }
        for _ in 0..MOST_TURNS {
            if self.turn() {
                continue;
            }
            if self.wire.sent() >= MOST_PACKETS {
                return Some(format!(
                    "the workbench stops here, after {MOST_PACKETS} packets: it would go on like this"
                ));
            }
            match self.due() {
                Some(next) => self.goes_on(next.max(self.now + Duration::from_nanos(1))),
                None => return None,
            }
        }
        Some("the workbench stops here: nothing new happens, and it would go on like this".to_owned())
    }

    fn goes_on(&mut self, now: Duration) {
        self.now = now;
        self.nodes.iter_mut().for_each(|node| node.goes_on(now));
        self.wire.goes_on(now);
    }

    /// What can happen now. Whether anything has.
    fn turn(&mut self) -> bool {
        let mut has_happened = false;
        while let Some((to, arrival)) = self.wire.take() {
            self.nodes[to].receive(arrival, &mut self.wire);
            has_happened = true;
        }
        for strand in 0..self.strands.len() {
            while self.make(strand) {
                has_happened = true;
            }
        }
        for node in [SERVER, CLIENT] {
            has_happened |= self.begin(node) | self.nodes[node].tick(&mut self.wire);
        }
        has_happened
    }

    /// A node listens, or asks for the connection, when its program has made the calls that it can make before.
    fn begin(&mut self, node: usize) -> bool {
        let begins = !self.begun[node] && !self.nodes[node].is_dead;
        if begins {
            self.begun[node] = true;
            self.nodes[node].connect(&mut self.wire);
        }
        begins
    }

    /// When something happens by itself.
    fn due(&self) -> Option<Duration> {
        let first = |strand: &Strand| self.script.calls[*strand.calls.front()?].at.filter(|at| *at > self.now);
        let times = self.strands.iter().filter(|strand| !self.nodes[strand.node].is_dead).filter_map(first);
        let nodes = self.nodes.iter().filter_map(Node::due);
        times.chain(nodes).chain(self.wire.due()).min()
    }

    /// Makes the next call of a strand, if it can be made now.
    fn make(&mut self, strand: usize) -> bool {
        let Some(&at) = self.strands[strand].calls.front() else { return false };
        let Timed { call, line, at: time, node, .. } = &self.script.calls[at];
        let (node, is_early) = (*node, time.is_some_and(|time| time > self.now));
        let needs_connection = matches!(call, Call::Send(_) | Call::Disconnect);
        let is_coming = needs_connection && self.nodes[node].connection == Connection::Coming;
        if is_early || is_coming || self.nodes[node].is_dead {
            return false;
        }
        let number = self.wire.number() + 1;
        self.nodes[node].line = *line;
        self.made[at].get_or_insert(number);
        let is_made = match call {
            Call::Poll(count) => self.poll(strand, node, *count),
            call => {
                self.act(node, call);
                true
            }
        };
        if is_made {
            self.strands[strand].calls.pop_front();
        }
        self.nodes[node].line = 0;
        is_made
    }

    fn act(&mut self, node: usize, call: &Call) {
        let [server, client] = &mut self.nodes;
        let (own, there) = if node == SERVER { (server, client) } else { (client, server) };
        let wire = &mut self.wire;
        match call {
            Call::Register(bytes, access) => own.register(wire, bytes, *access),
            Call::Deregister(bytes) => own.deregister(wire, bytes.as_ref()),
            Call::Receive(bytes) => own.post_receive(wire, bytes),
            Call::Send(request) => own.post_send(wire, request, there),
            Call::Fill(at, content) => own.fill(wire, *at, content),
            Call::Carry(content) => own.carry(wire, content, false),
            Call::Reject(content) => own.carry(wire, content, true),
            Call::Disconnect => own.disconnect(wire),
            Call::Die => own.dies(wire),
            Call::Poll(_) => {}
        }
    }

    /// Takes completions until there are enough. What's lacking is remembered.
    fn poll(&mut self, strand: usize, node: usize, count: usize) -> bool {
        if self.strands[strand].polling.is_none() {
            self.nodes[node].begins_to_poll(&mut self.wire);
        }
        let mut lacking = self.strands[strand].polling.unwrap_or(count);
        while lacking > 0 && self.nodes[node].poll(&mut self.wire) {
            lacking -= 1;
        }
        self.strands[strand].polling = (lacking > 0).then_some(lacking);
        lacking == 0
    }
}

//! Two queue pairs and a wire between them that loses, doubles and delays; and a clock that stands still until nothing else can
//! happen. What happens is kept, and drawn as a ladder.

use crate::end::{shown, End};
use nic::packet::Packet;
use nic::qp::Qp;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// What the wire does to one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Lose,
    Double,
    /// So many packets that were sent later pass it.
    Delay(u8),
}

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Client,
    Server,
}

/// A packet under way.
struct Flight {
    from: Role,
    /// How many others pass it.
    passes: u8,
    packet: Packet,
    fate: &'static str,
}

/// A line of the ladder.
enum Rung {
    Packet { from: Role, packet: String, fate: &'static str },
    Decision(String),
    Time(Duration),
}

/// Steps after which something goes in circles.
const STEPS: usize = 5_000;
/// Lines of a ladder that are shown, and the width of an arrow.
const LINES: usize = 48;
const WIDTH: usize = 52;
/// The longest group of lines that is looked for to come again.
const LONGEST: usize = 8;

pub struct Pair {
    pub client: End,
    pub server: End,
    /// What happens to packets, by their place among all that are sent.
    faults: BTreeMap<usize, Fault>,
    sent: usize,
    under_way: VecDeque<Flight>,
    rungs: Vec<Rung>,
}

impl Pair {
    pub fn new(client: End, mut server: End, faults: BTreeMap<usize, Fault>) -> Pair {
        server.now = client.now;
        Pair { client, server, faults, sent: 0, under_way: VecDeque::new(), rungs: Vec::new() }
    }

    /// Lets happen what can happen, and time go on when nothing can. Before time goes on, `idle` may do more. False if that has no
    /// end.
    pub fn run(&mut self, mut idle: impl FnMut(&mut Pair)) -> bool {
        for _ in 0..STEPS {
            self.collect();
            if let Some(flight) = self.arrives() {
                self.deliver(flight);
                continue;
            }
            idle(self);
            self.client.act(Qp::tick);
            self.server.act(Qp::tick);
            self.collect();
            if !self.under_way.is_empty() || self.client.qp.is_busy() || self.server.qp.is_busy() {
                continue;
            }
            match self.client.qp.deadline().into_iter().chain(self.server.qp.deadline()).min() {
                None => return true,
                Some(then) => {
                    let wait = then.since(self.client.now).max(Duration::from_micros(1));
                    self.rungs.push(Rung::Time(wait));
                    self.client.now += wait;
                    self.server.now += wait;
                }
            }
        }
        false
    }

    /// Takes what both have sent and decided.
    fn collect(&mut self) {
        for (from, side) in [(Role::Client, &mut self.client), (Role::Server, &mut self.server)] {
            let decisions = side.said.drain(..).filter(|said| !is_sending(said));
            self.rungs.extend(decisions.map(Rung::Decision));
            for packet in side.out.drain(..) {
                let (fate, copies) = match self.faults.get(&self.sent) {
                    None => ("", vec![0]),
                    Some(Fault::Lose) => ("✗ lost", vec![]),
                    Some(Fault::Double) => ("doubled", vec![0, 0]),
                    Some(Fault::Delay(others)) => ("late", vec![*others]),
                };
                self.sent += 1;
                if copies.is_empty() {
                    self.rungs.push(Rung::Packet { from, packet: shown(&packet), fate });
                }
                let flight = |passes| Flight { from, passes, packet: packet.clone(), fate };
                self.under_way.extend(copies.into_iter().map(flight));
            }
        }
    }

    /// The next one that arrives: one that is late lets others pass, as long as there are any.
    fn arrives(&mut self) -> Option<Flight> {
        let ready = self.under_way.iter().position(|flight| flight.passes == 0).unwrap_or(0);
        self.under_way.iter_mut().take(ready).for_each(|flight| flight.passes -= 1);
        self.under_way.remove(ready)
    }

    fn deliver(&mut self, Flight { from, packet, fate, .. }: Flight) {
        self.rungs.push(Rung::Packet { from, packet: shown(&packet), fate });
        let side = if from == Role::Client { &mut self.server } else { &mut self.client };
        side.receive(packet);
    }

    /// What has happened, line by line. What comes again and again is shown twice.
    pub fn ladder(&self) -> String {
        let kinds: Vec<String> = self.rungs.iter().map(Rung::kind).collect();
        let mut lines = vec![format!("{:<1$}{2}", "client", WIDTH - 6, "server")];
        let mut at = 0;
        while at < kinds.len() {
            let (period, times) = repeated(&kinds[at..]);
            let block = |at: usize| self.rungs[at..at + period].iter().map(Rung::line);
            lines.extend(block(at));
            if times > 1 {
                lines.push(format!("      … {} times more …", times - 2));
                lines.extend(block(at + period * (times - 1)));
            }
            at += period * times;
        }
        let left_out = lines.len().saturating_sub(LINES);
        if left_out > 0 {
            lines.splice(LINES / 2..LINES / 2 + left_out, [format!("      … {left_out} lines …")]);
        }
        lines.iter().map(|line| format!("  {line}\n")).collect()
    }
}

/// How many lines come again and again, and how many times they are there: once, or more than twice.
fn repeated(kinds: &[String]) -> (usize, usize) {
    let times = |period: usize| kinds.chunks_exact(period).take_while(|block| *block == &kinds[..period]).count();
    let mut all = (1..=LONGEST.min(kinds.len())).map(|period| (period, times(period)));
    all.find(|(_, times)| *times > 2).unwrap_or((1, 1))
}

impl Rung {
    /// What it is, without its numbers.
    fn kind(&self) -> String {
        let text = match self {
            Rung::Packet { packet, fate, .. } => format!("{packet}{fate}"),
            Rung::Decision(said) => said.clone(),
            Rung::Time(_) => "time".to_owned(),
        };
        text.replace(|letter: char| letter.is_ascii_digit(), "")
    }

    fn line(&self) -> String {
        match self {
            Rung::Packet { from: Role::Client, packet, fate } => {
                let end = if *fate == "✗ lost" { "──✗" } else { "──▶" };
                format!("{:─^1$}{end} {fate}", format!(" {packet} "), WIDTH - 3).trim_end().to_owned()
            }
            Rung::Packet { from: Role::Server, packet, fate } => {
                let end = if *fate == "✗ lost" { "✗──" } else { "◀──" };
                format!("{end}{:─^1$} {fate}", format!(" {packet} "), WIDTH - 3).trim_end().to_owned()
            }
            Rung::Decision(said) => format!("      It decided: {said}"),
            Rung::Time(wait) if wait.as_millis() > 0 => format!("      {} ms pass", wait.as_millis()),
            Rung::Time(wait) => format!("      {} µs pass", wait.as_micros()),
        }
    }
}

/// Whether a decision only says that a packet goes out: the ladder has that packet.
fn is_sending(said: &str) -> bool {
    said.starts_with("requester: PSN") && said.matches(':').count() == 1
}

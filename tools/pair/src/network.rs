//! Senders and one receiver, each a NIC in memory, at the switch of the crate `run`: nothing here takes real time.

use crate::{attributes, End, Setup, OURS, PEERS};
use nic::completion::{Completion, Status};
use nic::congestion::{Link, Parameters};
use nic::datagram;
use nic::memory::Access;
use nic::qp::{Attributes, Limits, Qp, Service, State};
use nic::time::Time;
use nic::work::Work;
use run::plot::Parts;
use run::switch::{Event, Out, Switch, What};
use std::time::Duration;

/// The paper's numbers (DCQCN, section 5.2): 40 Gbit/s, Kmin 5 KB, Kmax 200 KB, Pmax 1 %, and the parameters that are the default.
pub const PAPER: &str = "link 40 Gbit/s 1 us; queue 4 MB; ecn 5..200 KB at 1 %; dcqcn";
/// The receiver is the first node.
const RECEIVER: usize = 0;
/// The queue pairs at both ends of the first flow; those of the others follow.
const AT_SENDER: u32 = 0x100;
const AT_RECEIVER: u32 = 0x200;
/// A message, and how many of each sender are posted at a time.
pub const MESSAGE: usize = 64 << 10;
const POSTED: usize = 32;
const ETHERNET: usize = 14;
/// Preamble, checksum and gap on the cable.
const AROUND: u64 = 24;

/// One direction from a sender to the receiver.
struct Flow {
    sender: End,
    receiver: End,
    begins: Duration,
    next: u64,
}

pub struct Network {
    switch: Switch,
    flows: Vec<Flow>,
    /// The receiver READs what the senders have; else they WRITE.
    reads: bool,
    pub now: Duration,
    /// When a message of which sender was complete.
    pub complete: Vec<(Duration, usize)>,
    /// When a packet of which sender came to the switch, and how many bytes that was on the cable.
    pub passed: Vec<(Duration, usize, u64)>,
    /// Bytes that wait for the receiver, from each of these times on.
    pub queue: Vec<(Duration, u64)>,
    /// Packets that met congestion, CNPs, packets lost, and pauses.
    pub marks: usize,
    pub cnps: usize,
    pub drops: usize,
    pub pauses: usize,
    /// How queue pairs have failed.
    pub broken: Vec<Status>,
    /// A sum over all that was delivered, and when.
    pub trace: u64,
}

impl Network {
    /// A switch as it is written, and senders that begin at these times and always have something to send.
    pub fn new(wire: &str, mtu: u32, begins: &[Duration]) -> Result<Network, String> {
        let names: Vec<String> = (0..=begins.len()).map(|node| format!("node {node}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let switch = Switch::parse(wire, &names).map_err(|error| format!("{error:#}"))?.ok_or("no switch")?;
        let dcqcn = switch.settings.dcqcn.as_deref().map(Parameters::parse).transpose()?;
        let link = Link::new(switch.settings.rate, dcqcn);
        // DSCP 26 is priority 3.
        let reads = Attributes { max_rd_atomic: 16, max_dest_rd_atomic: 16, ..attributes(0, 0, 7, 7) };
        let attributes = Attributes { mtu, class: 26 << 2, timeout: 8, ..reads };
        let side = |number, peer| {
            let limits = Limits { send: 64, receive: 64, send_sge: 1, receive_sge: 1, inline: 0 };
            let (service, size, access) = (Service::Rc, MESSAGE, Access(15));
            let end = End::new(Setup { service, number, peer, size, access, limits, uses_shared: false }, &attributes);
            End { link: Some(link.clone()), talks: false, ..end }
        };
        let flows = begins.iter().zip(0..).map(|(begins, number)| Flow {
            sender: side(AT_SENDER + number, AT_RECEIVER + number),
            receiver: side(AT_RECEIVER + number, AT_SENDER + number),
            begins: *begins,
            next: 0,
        });
        Ok(Network {
            switch,
            flows: flows.collect(),
            reads: false,
            now: Duration::ZERO,
            complete: Vec::new(),
            passed: Vec::new(),
            queue: vec![(Duration::ZERO, 0)],
            marks: 0,
            cnps: 0,
            drops: 0,
            pauses: 0,
            broken: Vec::new(),
            trace: 0,
        })
    }

    /// The same, but the receiver asks for what comes.
    pub fn reading(wire: &str, mtu: u32, begins: &[Duration]) -> Result<Network, String> {
        Ok(Network { reads: true, ..Network::new(wire, mtu, begins)? })
    }

    /// Lets all happen until then.
    pub fn run(&mut self, until: Duration) {
        loop {
            let next = self.next();
            if next > until {
                self.now = until;
                return;
            }
            self.now = next;
            for (time, out) in self.switch.advance(next) {
                self.take(time, out);
            }
            for flow in 0..self.flows.len() {
                self.turn(flow);
            }
        }
    }

    /// A sender is told to stand still, as long as can be said.
    pub fn pause(&mut self, flow: usize) {
        if let Some(link) = &mut self.flows[flow].sender.link {
            link.pause.heard(&roce::pause::Frame::about(3, u16::MAX), link.rate, Time::START + self.now);
        }
    }

    fn next(&self) -> Duration {
        let ends = self.flows.iter().flat_map(|flow| [&flow.sender, &flow.receiver]);
        let due = |side: &End| if side.qp.is_busy() { Some(side.now) } else { side.qp.deadline() };
        let timers = ends.filter_map(due).map(|due| due.since(Time::START));
        let begins = self.flows.iter().filter(|flow| flow.next == 0).map(|flow| flow.begins);
        timers.chain(self.switch.next()).chain(begins).min().unwrap_or(Duration::MAX).max(self.now)
    }

    fn take(&mut self, time: Duration, out: Out) {
        match out {
            Out::Deliver { to, frame } => self.deliver(time, to, &frame),
            Out::Passed { from, frame, comment, .. } => {
                self.marks += usize::from(comment.is_some_and(|comment| comment.starts_with("lab: marked")));
                let sender = from.and_then(|from| from.checked_sub(RECEIVER + 1));
                self.passed.extend(sender.map(|sender| (time, sender, frame.len() as u64 + AROUND)));
            }
            Out::Tell(Event { what: What::Queue(bytes), port }) if port == "node 0" => self.queue.push((time, bytes)),
            Out::Tell(Event { what: What::Drop(_), .. }) => self.drops += 1,
            Out::Tell(Event { what: What::Pause(_), .. }) => self.pauses += 1,
            Out::Tell(_) => {}
        }
    }

    fn deliver(&mut self, time: Duration, to: usize, frame: &[u8]) {
        let now = Time::START + time;
        self.trace = frame.iter().fold(self.trace ^ time.as_nanos() as u64, |sum, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        });
        if let Some(pause) = roce::pause::Frame::decode(frame) {
            if to != RECEIVER {
                let side = &mut self.flows[to - 1].sender;
                side.link.iter_mut().for_each(|link| link.pause.heard(&pause, link.rate, now));
            }
            return;
        }
        let Some(packet) = datagram::open_ip(&frame[ETHERNET..]) else { return };
        self.cnps += usize::from(packet.opcode == nic::packet::code::CNP);
        let flow = (packet.dest_qp & 0xff) as usize;
        let flow = &mut self.flows[flow];
        let side = if to == RECEIVER { &mut flow.receiver } else { &mut flow.sender };
        side.now = now;
        side.receive(packet);
    }

    /// A flow's turn: both ends look at their clocks, who asks posts what fits, and what they send goes on the cable.
    fn turn(&mut self, number: usize) {
        let (now, time) = (Time::START + self.now, self.now);
        let flow = &mut self.flows[number];
        let is_due = |side: &End| side.qp.is_busy() || side.qp.deadline().is_some_and(|due| due <= now);
        let (asks, other) = match self.reads {
            true => (&mut flow.receiver, &flow.sender),
            false => (&mut flow.sender, &flow.receiver),
        };
        let done: Vec<Completion> = std::mem::take(&mut asks.sent);
        let good = done.iter().filter(|wc| wc.status == Status::Success);
        self.complete.extend(good.map(|_| (time, number)));
        self.broken.extend(done.iter().map(|wc| wc.status).find(|status| *status != Status::Success));
        let is_begun = flow.begins <= time && asks.qp.state() == State::Rts;
        let mut posts = false;
        while is_begun && asks.qp.waiting().0 < POSTED {
            let remote = other.remote(0);
            let work = if self.reads { Work::Read(remote) } else { Work::Write(remote) };
            if asks.post(flow.next, work, 0, MESSAGE).is_err() {
                break;
            }
            (flow.next, posts) = (flow.next + 1, true);
        }
        for (side, from, to, always) in
            [(&mut flow.sender, number + 1, RECEIVER, posts), (&mut flow.receiver, RECEIVER, number + 1, posts)]
        {
            side.now = now;
            if always || is_due(side) {
                side.act(Qp::tick);
            }
            for packet in side.take_out() {
                let ip = datagram::seal(OURS, PEERS, &packet);
                let frame = [&[0; 12][..], &[8, 0], &ip].concat();
                self.switch.send(time, from, Some(to), frame);
            }
        }
    }

    /// Bits per second on each sender's cable, in parts of the time.
    pub fn rates(&self, parts: &Parts) -> Vec<Vec<f64>> {
        let of_flow = |number| {
            let passed = self.passed.iter().filter(|(_, of, _)| *of == number);
            parts.rates(passed.map(|(time, _, bytes)| (time.as_nanos() as u64, *bytes)))
        };
        (0..self.flows.len()).map(of_flow).collect()
    }

    /// Gigabits per second of each sender, of whole messages, between two times.
    pub fn goodput(&self, from: Duration, to: Duration) -> Vec<f64> {
        let complete =
            |number| self.complete.iter().filter(|(time, of)| *of == number && *time >= from && *time < to).count();
        let bits = |number| (complete(number) * MESSAGE * 8) as f64;
        (0..self.flows.len()).map(|number| bits(number) / (to - from).as_secs_f64() / 1e9).collect()
    }

    /// The mean of the queue to the receiver between two times, in bytes.
    pub fn mean_queue(&self, from: Duration, to: Duration) -> f64 {
        let ends = self.queue.iter().skip(1).map(|(time, _)| *time).chain([to]);
        let spans =
            self.queue.iter().zip(ends).map(|((begin, bytes), end)| {
                end.min(to).saturating_sub((*begin).max(from)).as_secs_f64() * *bytes as f64
            });
        spans.sum::<f64>() / (to - from).as_secs_f64()
    }
}

/// Jain's index: 1 if all have the same, 1/n if one has all (Jain, Chiu, Hawe, 1984).
pub fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), share| (sum + share, squares + share * share));
    sum * sum / (shares.len() as f64 * squares)
}

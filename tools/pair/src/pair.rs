//! Two ends and the wire between them; and a clock that stands still until nothing else can happen.

use crate::{End, Fault, Wire, CLIENT, SERVER};
use nic::packet::Packet;
use nic::qp::Qp;
use nic::time::Time;
use std::collections::BTreeMap;
use std::time::Duration;

/// Steps after which something goes in circles.
const STEPS: usize = 200_000;

/// What has happened, in its order.
#[derive(Clone, Debug)]
pub enum Happened {
    /// A packet has arrived, or has been lost. By whom it was sent.
    Packet(usize, Packet, Option<Fault>),
    Decision(String),
    /// So much time has passed.
    Time(Duration),
}

/// What carries packets between two ends.
pub trait Carrier {
    /// Takes a packet from an end. Gives what happens to it, if the carrier knows.
    fn send(&mut self, from: usize, packet: &Packet) -> Option<Fault>;

    /// The next packet that arrives: at which end, and what has happened to it.
    fn take(&mut self) -> Option<(usize, Option<Fault>, Packet)>;

    /// Whether nothing would arrive now.
    fn is_empty(&self) -> bool;

    /// When something happens on it by itself.
    fn due(&self) -> Option<Time> {
        None
    }

    /// It's this time now.
    fn goes_on(&mut self, _now: Time) {}

    /// An end's program or its device says something.
    fn says(&mut self, _end: usize, _program: &str, _text: &str) {}
}

impl Carrier for Wire<Packet> {
    fn send(&mut self, from: usize, packet: &Packet) -> Option<Fault> {
        Wire::send(self, 1 - from, packet.clone())
    }

    fn take(&mut self) -> Option<(usize, Option<Fault>, Packet)> {
        Wire::take(self)
    }

    fn is_empty(&self) -> bool {
        Wire::is_empty(self)
    }
}

#[derive(Debug)]
pub struct Pair<C = Wire<Packet>> {
    pub client: End,
    pub server: End,
    pub wire: C,
    /// What has happened, each with its time, if it is to be kept.
    pub happened: Option<Vec<(Time, Happened)>>,
    /// Steps after which it's given up.
    pub patience: usize,
}

impl Pair {
    pub fn new(client: End, server: End, faults: BTreeMap<usize, Fault>) -> Pair {
        Pair::on(Wire::new(faults), client, server)
    }
}

impl<C: Carrier> Pair<C> {
    /// Two ends of this wire.
    pub fn on(wire: C, client: End, server: End) -> Pair<C> {
        Pair { client, server, wire, happened: None, patience: STEPS }
    }

    /// Lets happen what can happen, and time go on when nothing can. Before time goes on, `idle` may do more. False if that has no
    /// end.
    pub fn run(&mut self, mut idle: impl FnMut(&mut Pair<C>)) -> bool {
        for _ in 0..self.patience {
            self.collect();
            if let Some((to, fault, packet)) = self.wire.take() {
                self.note(|| Happened::Packet(1 - to, packet.clone(), fault));
                self.end(to).receive(packet);
                continue;
            }
            idle(self);
            [SERVER, CLIENT].into_iter().for_each(|end| self.end(end).act(Qp::tick));
            self.collect();
            if !self.wire.is_empty() || self.client.qp.is_busy() || self.server.qp.is_busy() {
                continue;
            }
            let dues = [self.client.qp.deadline(), self.server.qp.deadline(), self.wire.due()];
            match dues.into_iter().flatten().min() {
                None => return true,
                Some(next) => {
                    let wait = next.since(self.client.now).max(Duration::from_micros(1));
                    self.note(|| Happened::Time(wait));
                    self.goes_on(self.client.now + wait);
                }
            }
        }
        false
    }

    /// Both clocks say this now.
    pub fn goes_on(&mut self, now: Time) {
        (self.client.now, self.server.now) = (now, now);
        self.wire.goes_on(now);
    }

    pub fn end(&mut self, end: usize) -> &mut End {
        if end == SERVER {
            &mut self.server
        } else {
            &mut self.client
        }
    }

    /// Takes what both have sent and decided.
    fn collect(&mut self) {
        for from in [CLIENT, SERVER] {
            if self.happened.is_some() {
                let said = std::mem::take(&mut self.end(from).said);
                for said in said {
                    self.wire.says(from, "device", &said);
                    self.note(|| Happened::Decision(said));
                }
            }
            for packet in self.end(from).take_out() {
                let fault = self.wire.send(from, &packet);
                if fault == Some(Fault::Lose) {
                    self.note(|| Happened::Packet(from, packet, fault));
                }
            }
        }
    }

    fn note(&mut self, what: impl FnOnce() -> Happened) {
        if let Some(happened) = &mut self.happened {
            happened.push((self.client.now, what()));
        }
    }
}

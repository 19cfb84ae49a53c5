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

#[derive(Debug)]
pub struct Pair {
    pub client: End,
    pub server: End,
    pub wire: Wire<Packet>,
    /// What has happened, each with its time, if it is to be kept.
    pub happened: Option<Vec<(Time, Happened)>>,
    /// Steps after which it's given up.
    pub patience: usize,
}

impl Pair {
    pub fn new(client: End, server: End, faults: BTreeMap<usize, Fault>) -> Pair {
        Pair { client, server, wire: Wire::new(faults), happened: None, patience: STEPS }
    }

    /// Lets happen what can happen, and time go on when nothing can. Before time goes on, `idle` may do more. False if that has no
    /// end.
    pub fn run(&mut self, mut idle: impl FnMut(&mut Pair)) -> bool {
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
            match [self.client.qp.deadline(), self.server.qp.deadline()].into_iter().flatten().min() {
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
                said.into_iter().for_each(|said| self.note(|| Happened::Decision(said)));
            }
            for packet in self.end(from).take_out() {
                let fault = self.wire.send(1 - from, packet.clone());
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

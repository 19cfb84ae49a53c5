//! Two connection managers in memory, joined by the same wire, and what the program on each side is told and does about it.

use super::{Faults, Wire, CLIENT, OURS, PEERS, SERVER};
use nic::cm::{Cm, CmEffect, Event, Mad};
use nic::psn::Psn;
use nic::time::Time;
use std::net::IpAddr;
use std::time::Duration;

/// The server's, the client's.
pub const ADDRESSES: [IpAddr; 2] = [OURS, PEERS];
pub const PORT: u16 = 7471;

/// What a program does about an event.
type React<P> = fn(&mut World<P>, usize, &Event);

pub struct World<P> {
    pub cms: [Cm; 2],
    pub wire: Wire<Vec<u8>>,
    pub told: [Vec<Event>; 2],
    pub programs: P,
    react: React<P>,
    now: Time,
    random: u64,
}

impl<P> World<P> {
    pub fn new(faults: Faults, programs: P, react: React<P>) -> World<P> {
        let (cms, wire, told) = (ADDRESSES.map(Cm::new), Wire::new(faults), Default::default());
        World { cms, wire, told, programs, react, now: Time::START, random: 0x1234_5678_9abc_def0 }
    }

    pub fn act(&mut self, side: usize, act: impl FnOnce(&mut Cm, Time, &mut Vec<CmEffect>)) {
        let mut effects = Vec::new();
        act(&mut self.cms[side], self.now, &mut effects);
        for effect in effects {
            match effect {
                CmEffect::Send(_, mad) => {
                    self.wire.send(1 - side, bytes(&mad));
                }
                CmEffect::Event(event) => {
                    self.told[side].push(event.clone());
                    (self.react)(self, side, &event);
                }
                CmEffect::Say(_) => {}
            }
        }
    }

    /// Lets all happen, to the end of the last timer.
    pub fn run(&mut self) {
        for _ in 0..10_000 {
            self.arrive();
            let Some(next) = self.cms.iter().filter_map(Cm::deadline).min() else { return };
            self.now = next.max(self.now + Duration::from_millis(1));
            [SERVER, CLIENT].into_iter().for_each(|side| self.act(side, |cm, now, out| cm.tick(now, out)));
        }
        panic!("it never ends: {:?}", self.told);
    }

    /// Lets what is on the wire arrive, and what comes of that.
    fn arrive(&mut self) {
        while let Some((side, _, bytes)) = self.wire.take() {
            self.random = self.random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let random = self.random;
            self.act(side, |cm, now, out| cm.receive(ADDRESSES[1 - side], &bytes, random, now, out));
        }
    }

    /// The same. Gives what the programs were told since they were asked last.
    pub fn delivered(&mut self) -> [Vec<Event>; 2] {
        self.arrive();
        std::mem::take(&mut self.told)
    }

    /// Lets time go on to a side's next timer.
    pub fn wait(&mut self, side: usize) {
        self.now = self.cms[side].deadline().unwrap();
        self.act(side, |cm, now, out| cm.tick(now, out));
    }

    /// How many connections are left on both sides.
    pub fn count(&self) -> usize {
        self.cms.iter().map(Cm::count).sum()
    }
}

/// The bytes of a message, as they cross the wire.
pub fn bytes(mad: &Mad) -> Vec<u8> {
    mad.packet(Psn::new(0)).payload
}

/// Fewer than sixteen in a row are lost: what is said sixteen times arrives.
pub const FEW: usize = 14;

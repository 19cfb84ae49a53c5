//! The rim of the device: one per process, made by the first verb that needs it. Tables by number, one lock around them, a
//! socket, and a thread that serves packets, doorbells and timers.
//!
//! Programs hold pointers to C structs, faces of what is in the tables; the device never trusts what stands in a face but
//! its number. Completion queues have locks of their own: a program that polls in a loop must not starve the thread.

pub mod bell;
#[allow(unsafe_code)]
pub mod port;
mod serve;
pub mod tap;

use bell::{locked, Bell, BellQueue, Unacked};
use nic::cm::{Cm, CmEffect, Event};
use nic::completion::{Completion, CompletionQueue, Pushed};
use nic::memory::Memory;
use nic::outside::{AsyncEvent, Ctx, Effect};
use nic::packet::Packet;
use nic::psn::Psn;
use nic::qp::Qp;
use nic::work::ReceiveQueue;
use port::Port;
use std::collections::hash_map::RandomState;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock};
use std::time::Instant;

/// An object that a program holds: the address of its face. The device hands it back, and never looks behind it.
pub type Face = usize;

/// A completion queue with its lock and its channel.
#[derive(Debug)]
pub struct Cq {
    pub queue: Mutex<CompletionQueue>,
    /// Where its events go: a queue of faces.
    pub channel: Option<Arc<BellQueue<Face>>>,
    pub face: Face,
    /// Events that the program has got.
    pub unacked: Unacked,
}

/// A queue pair with what it is connected to inside the device.
#[derive(Debug)]
pub struct QpEntry {
    pub qp: Qp,
    pub send_cq: Arc<Cq>,
    pub receive_cq: Arc<Cq>,
    pub srq: Option<u32>,
    pub face: Face,
}

#[derive(Debug)]
pub struct Srq {
    pub queue: ReceiveQueue,
    pub max_sge: u32,
    pub face: Face,
}

/// An async event, and the face of what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raised {
    pub event: AsyncEvent,
    pub face: Face,
}

#[derive(Debug)]
pub struct Nic {
    pub port: Port,
    pub memory: Memory,
    pub qps: BTreeMap<u32, QpEntry>,
    pub srqs: BTreeMap<u32, Srq>,
    pub cm: Cm,
    /// Connection manager events that a face has not taken yet.
    pub cm_events: Vec<Event>,
    next_number: u32,
    next_qp: u32,
    cm_psn: Psn,
}

/// What is in reach without the device's lock.
#[derive(Debug)]
pub struct Device {
    nic: Mutex<Nic>,
    doorbell: Bell,
    /// Async events: `ibv_context`'s descriptor.
    pub raised: BellQueue<Raised>,
    /// Async events that the program has got, by the face of what they are about.
    raised_unacked: Mutex<BTreeMap<Face, Arc<Unacked>>>,
}

static DEVICE: OnceLock<Option<Device>> = OnceLock::new();

/// The device of this process, which hands what happens to `deliver`; None if there can be none. Why not is said once, on standard error.
pub fn device(deliver: fn(&mut Nic)) -> Option<&'static Device> {
    static SERVED: Once = Once::new();
    let told = |error: String| eprintln!("device: {error}");
    let device = DEVICE.get_or_init(|| Device::start().map_err(told).ok()).as_ref()?;
    SERVED.call_once(|| serve::start(device, deliver));
    Some(device)
}

impl Device {
    fn start() -> Result<Device, String> {
        let port = Port::open()?;
        let cm = Cm::new(port.address());
        // Numbers begin somewhere else each time: a peer may still rest from the last program that ran here.
        let first_qp = 17 + random() as u32 % 0xff_0000;
        let nic = Nic {
            cm,
            port,
            memory: Memory::default(),
            qps: BTreeMap::new(),
            srqs: BTreeMap::new(),
            cm_events: Vec::new(),
            next_number: 0,
            next_qp: first_qp,
            cm_psn: Psn::default(),
        };
        let no_bell = |error| format!("cannot make an eventfd: {error}");
        let (doorbell, raised) = (Bell::door().map_err(no_bell)?, BellQueue::new().map_err(no_bell)?);
        Ok(Device { nic: Mutex::new(nic), doorbell, raised, raised_unacked: Mutex::default() })
    }

    /// The async events about an object that the program has got.
    pub fn unacked(&self, face: Face) -> Arc<Unacked> {
        Arc::clone(locked(&self.raised_unacked).entry(face).or_default())
    }

    /// Forgets the async events about an object that is being destroyed, and waits for those that the program has got.
    pub fn settle(&self, face: Face) {
        self.raised.take_out(|raised| raised.face == face);
        self.unacked(face).wait_for_all();
        locked(&self.raised_unacked).remove(&face);
    }

    pub fn lock(&self) -> MutexGuard<'_, Nic> {
        locked(&self.nic)
    }

    /// Tells the thread that there is something new to send.
    pub fn ring(&self) {
        self.doorbell.ring();
    }
}

impl Nic {
    /// Our address, which is also the only GID.
    pub fn address(&self) -> IpAddr {
        self.port.address()
    }

    /// A number that no other object of this device has.
    pub fn number(&mut self) -> u32 {
        self.next_number += 1;
        self.next_number
    }

    /// A number for a queue pair: 24 bits, never 0 or 1, never one in use.
    pub fn qp_number(&mut self) -> u32 {
        loop {
            self.next_qp = (self.next_qp + 1) & 0xff_ffff;
            if self.next_qp > 16 && !self.qps.contains_key(&self.next_qp) {
                return self.next_qp;
            }
        }
    }

    /// Does something with a queue pair, and carries out the effects. None if there is no such queue pair.
    pub fn with_qp<R>(&mut self, number: u32, act: impl FnOnce(&mut Qp, &mut Ctx) -> R) -> Option<R> {
        let entry = self.qps.get_mut(&number)?;
        let mut out = Ctx::new(Instant::now(), &self.memory);
        out.talks = self.port.tap.talks;
        out.shared = entry.srq.and_then(|srq| self.srqs.get_mut(&srq)).map(|srq| &mut srq.queue);
        let result = act(&mut entry.qp, &mut out);
        let effects = out.effects;
        self.carry_out(number, effects);
        Some(result)
    }

    fn carry_out(&mut self, number: u32, effects: Vec<Effect>) {
        let Some(entry) = self.qps.get(&number) else { return };
        let mut is_lost = false;
        for effect in effects {
            match effect {
                Effect::Send(packet) => {
                    if let Some(peer) = entry.qp.attributes().peer {
                        self.port.send(peer, &packet);
                    }
                }
                Effect::Sent(completion) => is_lost |= !complete(&entry.send_cq, completion),
                Effect::Received(completion) => is_lost |= !complete(&entry.receive_cq, completion),
                Effect::Raise(event) => {
                    let srq = entry.srq.and_then(|srq| self.srqs.get(&srq));
                    let about_srq = srq.filter(|_| event == AsyncEvent::SrqLimitReached);
                    raise(event, about_srq.map_or(entry.face, |srq| srq.face));
                }
                Effect::Say(decision) => self.port.tap.say(|| decision),
            }
        }
        if is_lost {
            self.with_qp(number, Qp::lost_completion);
        }
    }

    /// Does something with the connection manager, and carries out the effects. Events are left in [`Nic::cm_events`].
    pub fn with_cm<R>(&mut self, act: impl FnOnce(&mut Cm, Instant, &mut Vec<CmEffect>) -> R) -> R {
        let mut effects = Vec::new();
        let result = act(&mut self.cm, Instant::now(), &mut effects);
        for effect in effects {
            match effect {
                CmEffect::Send(to, mad) => {
                    self.port.send(to, &mad.packet(self.cm_psn));
                    self.cm_psn = self.cm_psn.plus(1);
                }
                CmEffect::Event(event) => self.cm_events.push(event),
                CmEffect::Say(decision) => self.port.tap.say(|| decision),
            }
        }
        result
    }

    /// Takes a packet from the network.
    fn receive(&mut self, from: IpAddr, packet: Packet) {
        if packet.dest_qp == nic::cm::QP1 {
            if packet.deth.qkey == nic::cm::QKEY {
                self.with_cm(|cm, now, out| cm.receive(from, &packet.payload, random(), now, out));
            }
            return;
        }
        let (number, name) = (packet.dest_qp, packet.row().name);
        match self.qps.get(&number) {
            Some(entry) if entry.qp.attributes().peer == Some(from) => {
                self.with_qp(number, |qp, out| qp.receive(packet, out));
            }
            Some(_) => {
                self.port.tap.say(|| format!("port: {name} from {from}, which is not the peer of QP {number}; dropped"))
            }
            None => {
                self.port.tap.say(|| format!("port: {name} from {from} for QP {number}, which is not here; dropped"))
            }
        }
    }

    /// Does all that is due.
    fn turn(&mut self) {
        let numbers: Vec<u32> = self.qps.keys().copied().collect();
        for number in numbers {
            self.with_qp(number, Qp::tick);
        }
        self.with_cm(Cm::tick);
    }

    fn deadline(&self) -> Option<Instant> {
        let qps = self.qps.values().filter_map(|entry| entry.qp.deadline());
        qps.chain(self.cm.deadline()).min()
    }

    fn is_busy(&self) -> bool {
        self.qps.values().any(|entry| entry.qp.is_busy())
    }
}

/// Puts a completion in its queue, and wakes the program if it has asked for that. False if it is lost.
fn complete(cq: &Arc<Cq>, completion: Completion) -> bool {
    let pushed = locked(&cq.queue).push(completion);
    match (pushed, &cq.channel) {
        (Pushed::Ring, Some(channel)) => channel.push(cq.face),
        (Pushed::Overflow, _) => raise(AsyncEvent::CqError, cq.face),
        _ => {}
    }
    !matches!(pushed, Pushed::Overflow | Pushed::Lost)
}

fn raise(event: AsyncEvent, face: Face) {
    if let Some(Some(device)) = DEVICE.get() {
        device.raised.push(Raised { event, face });
    }
}

/// 64 bits that nobody can guess: the keys of Rust's hash tables are.
pub fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

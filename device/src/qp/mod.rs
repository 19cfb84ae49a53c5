//! A queue pair for reliable connections: a requester, which sends what is posted, and a responder, which carries out what
//! the peer's requester asks for (specification, volume 1, chapter 9 and 10.3).
//!
//! It is a machine without input and output: [`Qp::receive`] takes a packet, [`Qp::post_send`] and [`Qp::post_receive`] work
//! requests, [`Qp::tick`] the time; each leaves [effects](crate::outside::Effect) behind. The two halves share nothing but
//! the state: packets that ask are the responder's, packets that answer the requester's, each with PSNs of its own.

mod answers;
mod duplicates;
mod request;
mod requester;
mod responder;
mod state;

pub use state::{mask, Attributes, State};

use crate::completion::{Completion, Done, Status};
use crate::outside::{AsyncEvent, Effect, Outside};
use crate::packet::Packet;
use crate::work::{Local, ReceiveQueue, ReceiveRequest, SendRequest, Work};
use libc::c_int;
use requester::Requester;
use responder::Responder;
use std::net::IpAddr;
use std::time::Instant;
use wire::opcode::Service;

/// How much a queue pair holds: `ibv_qp_cap`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub send: u32,
    pub receive: u32,
    pub send_pieces: u32,
    pub receive_pieces: u32,
    /// Bytes that can be posted inline.
    pub inline: u32,
}

/// What a queue pair is made with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    pub number: u32,
    pub domain: u32,
    pub limits: Limits,
    pub signal_all: bool,
    pub uses_shared: bool,
}

#[derive(Debug)]
pub struct Qp {
    settings: Settings,
    state: State,
    attributes: Attributes,
    receives: ReceiveQueue,
    requester: Requester,
    responder: Responder,
}

impl Qp {
    /// The longest message in bytes: its packets must fit in half of the circle of PSNs, at every MTU.
    pub const LONGEST: u32 = 1 << 30;

    pub fn new(settings: Settings) -> Qp {
        Qp {
            settings,
            state: State::Reset,
            attributes: Attributes::default(),
            receives: ReceiveQueue::new(settings.limits.receive as usize, settings.domain),
            requester: Requester::default(),
            responder: Responder::default(),
        }
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn state(&self) -> State {
        self.state
    }

    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// Where its packets go: it takes none from elsewhere.
    pub fn peer(&self) -> Option<IpAddr> {
        self.attributes.peer
    }

    /// Posts to the send queue. Nothing is sent yet: that is [`Qp::tick`]'s, as with a NIC, which is told by a doorbell.
    ///
    /// # Errors
    /// The `errno` that `ibv_post_send` gives.
    pub fn post_send(&mut self, request: SendRequest, out: &mut Outside) -> Result<(), c_int> {
        let Limits { send, send_pieces, inline, .. } = self.settings.limits;
        let fits = match &request.local {
            Local::Inline(bytes) => bytes.len() <= inline as usize && !request.work.wants_answer(),
            Local::Pieces(pieces) => pieces.len() <= send_pieces as usize,
        };
        let wrong_length = request.length > Qp::LONGEST || (request.work.is_atomic() && request.length != 8);
        if !fits || wrong_length || matches!(self.state, State::Reset | State::Init | State::Rtr) {
            return Err(libc::EINVAL);
        }
        if self.requester.waiting() >= send as usize {
            return Err(libc::ENOMEM);
        }
        if self.state == State::Err {
            self.sent(&request, Status::WrFlushErr, out);
        } else {
            self.requester.post(request);
        }
        Ok(())
    }

    /// Posts to the receive queue.
    ///
    /// # Errors
    /// The `errno` that `ibv_post_recv` gives.
    pub fn post_receive(&mut self, request: ReceiveRequest, out: &mut Outside) -> Result<(), c_int> {
        let too_many = request.pieces.len() > self.settings.limits.receive_pieces as usize;
        if self.settings.uses_shared || too_many || self.state == State::Reset {
            return Err(libc::EINVAL);
        }
        if self.state == State::Err {
            self.received(&request, Status::WrFlushErr, out);
        } else if !self.receives.post(request) {
            return Err(libc::ENOMEM);
        }
        Ok(())
    }

    /// Takes a packet for this queue pair. Packets that come in a state that does not take them are dropped in silence.
    pub fn receive(&mut self, packet: Packet, out: &mut Outside) {
        if packet.row().service != Service::Rc {
            out.say(|| format!("QP {}: {} is of another service; dropped", self.settings.number, packet.row().name));
        } else if packet.row().is_response() {
            if matches!(self.state, State::Rts | State::Sqd) {
                self.answer(packet, out);
            }
        } else if matches!(self.state, State::Rtr | State::Rts | State::Sqd) {
            if self.state == State::Rtr && !std::mem::replace(&mut self.responder.heard, true) {
                out.push(Effect::Raise(AsyncEvent::CommunicationEstablished));
            }
            self.request(packet, out);
        }
    }

    /// Does what time, or a new request, makes possible: timers, requests, answers that had to wait.
    pub fn tick(&mut self, out: &mut Outside) {
        self.timers(out);
        self.send_answers(out);
        self.transmit(out);
    }

    /// When [`Qp::tick`] has to be called again at the latest.
    pub fn deadline(&self) -> Option<Instant> {
        self.requester.deadline()
    }

    /// Whether [`Qp::tick`] has more to do at once.
    pub fn is_busy(&self) -> bool {
        self.responder.is_busy()
    }

    /// A completion did not fit into its queue: nobody learns any more how its requests end.
    pub fn lost_completion(&mut self, out: &mut Outside) {
        if !matches!(self.state, State::Reset | State::Err) {
            out.push(Effect::Raise(AsyncEvent::QpFatal));
            self.enter(State::Err, out);
        }
    }

    /// The cause of an error first, then its echoes: every other one that is not finished comes back.
    fn flush(&mut self, out: &mut Outside) {
        let (sends, receive) = (self.requester.take_all(), self.responder.stop());
        let mut receives: Vec<_> = receive.into_iter().collect();
        receives.extend(std::iter::from_fn(|| self.receives.take()));
        let (sent, received, number) = (sends.len(), receives.len(), self.settings.number);
        if sent + received > 0 {
            out.say(|| format!("QP {number}: ERR, {sent} sends and {received} receives are flushed"));
        }
        sends.iter().for_each(|request| self.sent(request, Status::WrFlushErr, out));
        receives.iter().for_each(|request| self.received(request, Status::WrFlushErr, out));
        if self.settings.uses_shared {
            out.push(Effect::Raise(AsyncEvent::LastWqeReached));
        }
    }

    /// Completes a send request. A success nobody asked to hear of is not told.
    fn sent(&self, request: &SendRequest, status: Status, out: &mut Outside) {
        if status == Status::Success && !request.signaled && !self.settings.signal_all {
            return;
        }
        let length = if request.work.wants_answer() { request.length } else { 0 };
        out.push(Effect::Sent(Completion { length, ..self.completion(request.wr_id, status, request.work.done()) }));
    }

    /// Completes a receive that brought nothing.
    fn received(&self, request: &ReceiveRequest, status: Status, out: &mut Outside) {
        out.push(Effect::Received(self.completion(request.wr_id, status, Done::Receive)));
    }

    fn completion(&self, wr_id: u64, status: Status, done: Done) -> Completion {
        let (qp, src_qp) = (self.settings.number, self.attributes.dest_qp);
        Completion { wr_id, status, done, length: 0, immediate: None, qp, src_qp, solicited: false }
    }
}

/// Packets that a message of so many bytes takes; a message without bytes takes one.
fn packets(length: u32, mtu: u32) -> u32 {
    length.div_ceil(mtu).max(1)
}

/// The words for a work request in decisions.
fn name(work: Work) -> &'static str {
    match work {
        Work::Send => "SEND",
        Work::Write(_) => "WRITE",
        Work::Read(_) => "READ",
        Work::CompareSwap { .. } => "compare and swap",
        Work::FetchAdd { .. } => "fetch and add",
    }
}

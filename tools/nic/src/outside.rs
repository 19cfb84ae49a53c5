//! What a queue pair sees of the world, and what it wants done there.
//!
//! The core of the device does no input or output and reads no clock: whoever calls it hands in what it may look at, and
//! carries out the effects afterwards, in their order. So two queue pairs can be joined by a test's wire, and the order in
//! which things must happen is written down in one place: an ACK goes out *before* the completion that lets the program
//! end, for with the program this device ends.

use crate::completion::Completion;
use crate::congestion::Link;
use crate::fact::Fact;
use crate::memory::Memory;
use crate::packet::Packet;
use crate::time::Time;
use crate::work::{ReceiveQueue, ReceiveRequest};
use std::net::IpAddr;

/// Something to be done for a queue pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send this there: to a machine, or to a multicast group.
    Send(IpAddr, Packet),
    /// Put this in the queue for completions of sends.
    Sent(Completion),
    /// Put this in the queue for completions of receives.
    Received(Completion),
    /// Tell the program of something that no work request is about.
    Raise(AsyncEvent),
    Say(Fact),
}

/// Events that no work request is about (specification, volume 1, 10.10.2.3): the numbers of `ibv_event_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsyncEvent {
    /// A completion queue was full: completions are lost.
    CqError = 0,
    /// A queue pair has gone to ERR, for its completions are lost.
    QpFatal = 1,
    /// A request of the peer broke a rule.
    QpRequestError = 2,
    /// A request of the peer asked for memory that it may not touch.
    QpAccessError = 3,
    /// A packet has come before the queue pair was told that the connection stands.
    CommunicationEstablished = 4,
    /// The send queue stands still, as asked for.
    SendQueueDrained = 5,
    /// A shared receive queue holds fewer receives than its limit.
    SrqLimitReached = 15,
    /// A queue pair in ERR will take no more receives from its shared queue.
    LastWqeReached = 16,
}

/// The world, while one thing is handled.
#[derive(Debug)]
pub struct Ctx<'a> {
    pub now: Time,
    pub memory: &'a mut Memory,
    /// The shared receive queue, if the queue pair takes its receives there.
    pub shared: Option<&'a mut ReceiveQueue>,
    /// The link that all is sent on. None: as fast as it is read, and nobody minds congestion.
    pub link: Option<&'a Link>,
    /// Whether anybody listens to decisions.
    pub talks: bool,
    pub effects: Vec<Effect>,
}

impl<'a> Ctx<'a> {
    /// The world without a shared receive queue, and nothing to be done yet.
    pub fn new(now: Time, memory: &'a mut Memory) -> Ctx<'a> {
        Ctx { now, memory, shared: None, link: None, talks: false, effects: Vec::new() }
    }

    pub fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Tells a decision, if anybody listens.
    pub fn say<F: Into<Fact>>(&mut self, decision: impl FnOnce() -> F) {
        if self.talks {
            self.effects.push(Effect::Say(decision().into()));
        }
    }

    /// Takes the next receive, from the shared queue if there is one, else from the queue pair's own.
    pub(crate) fn take_receive(&mut self, own: &mut ReceiveQueue) -> Option<ReceiveRequest> {
        let Some(shared) = &mut self.shared else { return own.take() };
        let taken = shared.take();
        if shared.reached_limit() {
            self.effects.push(Effect::Raise(AsyncEvent::SrqLimitReached));
        }
        taken
    }
}

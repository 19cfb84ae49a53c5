//! What a queue pair sees of the world, and what it wants done there.
//!
//! The core of the device does no input or output and reads no clock. Its caller hands in whatever it may look at, and afterwards
//! carries out the effects in their order. That's what lets a test join two queue pairs by a wire of its own. It also means that
//! the order in which things must happen is written down in one place: an ACK goes out *before* the completion, because the
//! program that gets the completion may exit, and this device with it.

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
    /// Send this packet to a machine or a multicast group.
    Send(IpAddr, Packet),
    /// Put this into the completion queue for sends.
    Sent(Completion),
    /// Put this into the completion queue for receives.
    Received(Completion),
    /// Tell the program about something that concerns no work request.
    Raise(AsyncEvent),
    Say(Fact),
}

/// Events that concern no work request (specification, volume 1, 10.10.2.3), with the numbers of `ibv_event_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsyncEvent {
    /// A completion queue was full, so completions were lost.
    CqError = 0,
    /// A queue pair has gone to ERR because its completions were lost.
    QpFatal = 1,
    /// A request of the peer broke a rule.
    QpRequestError = 2,
    /// A request of the peer asked for memory that it may not touch.
    QpAccessError = 3,
    /// A packet came before the queue pair was told that the connection is up.
    CommunicationEstablished = 4,
    /// The send queue has come to rest, as the program asked.
    SendQueueDrained = 5,
    /// A shared receive queue holds fewer receives than its limit.
    SrqLimitReached = 15,
    /// A queue pair in ERR will take no more receives from its shared queue.
    LastWqeReached = 16,
}

/// The world as it is while one call or packet is handled.
#[derive(Debug)]
pub struct Ctx<'a> {
    pub now: Time,
    pub memory: &'a mut Memory,
    /// The shared receive queue, if the queue pair takes its receives from one.
    pub shared: Option<&'a mut ReceiveQueue>,
    /// The link that everything is sent on. With None, packets leave as fast as they're taken, and nobody cares about congestion.
    pub link: Option<&'a Link>,
    /// Whether anybody listens to decisions.
    pub talks: bool,
    pub effects: Vec<Effect>,
}

impl<'a> Ctx<'a> {
    /// A world without a shared receive queue, in which nothing needs to be done yet.
    pub fn new(now: Time, memory: &'a mut Memory) -> Ctx<'a> {
        Ctx { now, memory, shared: None, link: None, talks: false, effects: Vec::new() }
    }

    pub fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Logs a decision, if anybody listens.
    pub fn say<F: Into<Fact>>(&mut self, decision: impl FnOnce() -> F) {
        if self.talks {
            self.effects.push(Effect::Say(decision().into()));
        }
    }

    /// Takes the next receive, from the shared queue if there is one and otherwise from the queue pair's own.
    pub(crate) fn take_receive(&mut self, own: &mut ReceiveQueue) -> Option<ReceiveRequest> {
        let Some(shared) = &mut self.shared else { return own.take() };
        let taken = shared.take();
        if shared.reached_limit() {
            self.effects.push(Effect::Raise(AsyncEvent::SrqLimitReached));
        }
        taken
    }
}

//! The responder carries out what the peer's requester asks for, in the order of the PSNs, and answers (specification, volume 1,
//! 9.7.4 and 9.7.5; errors 9.9.3).
//!
//! It answers Send, RDMA Write, RDMA Read Request, Compare Swap, Fetch Add, Atomic Write and Flush. Each packet passes the same
//! gates, in this order: psn, sequence, length, access, resource, memory. The first gate that's shut decides the answer.

use super::responses::Response;
use super::verdict::{Fault, Nak};
use super::{Broken, State, View};
use crate::completion::Completion;
use crate::congestion::pace::Pace;
use crate::fact::Fact;
use crate::outside::{AsyncEvent, Ctx, Effect};
use crate::packet::{Packet, Reth};
use crate::psn::Psn;
use crate::work::{ReceiveQueue, ReceiveRequest};
use roce::aeth::Syndrome;
use roce::opcode::Operation;
use std::collections::VecDeque;

/// How far a message of several packets has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming {
    /// Where a WRITE goes; None for a SEND.
    pub write: Option<Reth>,
    /// Bytes that have arrived.
    pub arrived: u32,
}

#[derive(Debug, Default)]
pub(super) struct Responder {
    pub(super) expected: Psn,
    pub(super) msn: u32,
    /// The first request has come.
    heard: bool,
    /// A gap or a missing receive has been reported, and once is enough.
    nak_sent: bool,
    pub(super) message: Option<Incoming>,
    /// The receive that a SEND under way is filling.
    pub(super) receive: Option<ReceiveRequest>,
    /// What must not be carried out again if it's asked for again: atomics, with what they found, and the other operations that
    /// have an answer of their own.
    pub(super) atomics: VecDeque<(Psn, u64)>,
    /// What remains to be sent, in the order of PSNs.
    pub(super) responses: VecDeque<Response>,
    /// When READ responses may go out, considering the rate of the link and what it has heard of congestion.
    pub(super) pace: Pace,
}

/// Receiving requests.
impl Responder {
    pub(super) fn start(&mut self, first: Psn) {
        self.expected = first;
    }

    /// Receives and answers nothing any more. Returns the receive that was being filled.
    pub(super) fn stop(&mut self) -> Option<ReceiveRequest> {
        self.message = None;
        // A NAK is the last word, but what was queued before it is still sent.
        let is_nak = |response: &Response| matches!(response, Response::Packet(last) if last.aeth.syndrome != Syndrome::ACK.byte());
        if !self.responses.back().is_some_and(is_nak) {
            self.responses.clear();
        }
        self.receive.take()
    }

    pub(super) fn receive_request(
        &mut self,
        packet: Packet,
        qp: &View,
        receives: &mut ReceiveQueue,
        ctx: &mut Ctx,
    ) -> Result<(), Broken> {
        if qp.state == State::Rtr && !std::mem::replace(&mut self.heard, true) {
            ctx.push(Effect::Raise(AsyncEvent::CommunicationEstablished));
        }
        match packet.psn.since(self.expected) {
            0 => self.nak_sent = false,
            1.. => return self.gap(packet.psn, qp, ctx),
            _ => return self.duplicate(packet, qp, ctx),
        }
        let done = match packet.row().operation {
            Operation::Send | Operation::Write => self.carry(&packet, qp, receives, ctx),
            Operation::ReadRequest => self.read(&packet, qp, ctx),
            Operation::CompareSwap | Operation::FetchAdd => self.atomic(&packet, qp, ctx),
            Operation::AtomicWrite => self.atomic_write(&packet, qp, ctx),
            Operation::Flush => self.flush(&packet, qp, ctx),
            _ => Err(Nak::NotSupported),
        };
        match done {
            Ok(completes) => self.answer(completes, qp, ctx),
            Err(nak) => self.refuse(packet.psn, packet.row().name, &nak, qp, ctx),
        }
    }

    /// The psn gate is shut: a packet before this one is missing.
    fn gap(&mut self, psn: Psn, qp: &View, ctx: &mut Ctx) -> Result<(), Broken> {
        let expected = self.expected;
        if std::mem::replace(&mut self.nak_sent, true) {
            return Ok(());
        }
        ctx.say(|| Fact::new("gap").with("psn", psn).with("expected", expected));
        self.send_ack(expected, Syndrome::Nak(roce::aeth::Nak::PsnSequence), qp, ctx)
    }

    /// Sends what the request has queued. Afterwards, a message that's whole completes its receive.
    pub(super) fn answer(&mut self, completes: Option<Completion>, qp: &View, ctx: &mut Ctx) -> Result<(), Broken> {
        // The ACK comes first, because a program that has seen the completion may exit, and its device with it.
        self.send_responses(qp, ctx)?;
        if let Some(completion) = completes {
            self.receive = None;
            ctx.push(Effect::Received(completion));
        }
        Ok(())
    }

    /// The request is carried out, and the next one will have this PSN.
    pub(super) fn advance(&mut self, next: Psn, ends_message: bool) {
        self.expected = next;
        self.msn = (self.msn + u32::from(ends_message)) & 0xff_ffff;
    }

    /// Logs what was done for the expected request, if anybody listens.
    pub(super) fn tell(&self, packet: &Packet, ends_message: bool, ctx: &mut Ctx, done: impl FnOnce() -> Fact) {
        let (psn, name, msn) = (packet.psn, packet.row().name, ends_message.then_some(self.msn));
        ctx.say(|| done().with("psn", psn).with("packet", name).maybe("msn", msn));
    }

    /// Answers a request that can't be carried out. Only a missing receive leaves the queue pair as it was.
    pub(super) fn refuse(&mut self, psn: Psn, name: &str, nak: &Nak, qp: &View, ctx: &mut Ctx) -> Result<(), Broken> {
        let (syndrome, fault) = nak.judge();
        let refused = || Fact::new("refused").with("psn", psn).with("packet", name).refused(nak);
        ctx.say(|| refused().with("cause", nak.cause()).with("answer", syndrome));
        self.send_ack(psn, syndrome, qp, ctx)?;
        match fault {
            Fault::Nobodys => {
                // The packets after it are already on their way, and they're dropped without a word.
                self.nak_sent = true;
                return Ok(());
            }
            Fault::Receive(status) => {
                self.receive.take().iter().for_each(|receive| qp.complete_unfilled(receive, status, ctx));
            }
            Fault::Peer(event) => ctx.push(Effect::Raise(event)),
        }
        Err(Broken)
    }
}

//! What the two halves of a queue pair see of it: its settings, and where its completions go.

use super::{Attributes, State};
use crate::completion::{Completion, Status, WcOpcode};
use crate::congestion::{ecn, Link};
use crate::memory::{Access, Claim};
use crate::outside::{Ctx, Effect};
use crate::packet::{Packet, Reth};
use crate::work::{ReceiveRequest, SendRequest};
use roce::opcode::Service;

#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub attributes: Attributes,
    pub number: u32,
    pub pd: u32,
    pub service: Service,
    pub signal_all: bool,
    pub state: State,
}

impl View {
    /// Sends a packet to the peer, which a connected queue pair knows as soon as it can send.
    pub fn send(&self, packet: Packet, ctx: &mut Ctx) {
        let packet = Packet { class: self.class(ctx.link), ..packet };
        ctx.effects.extend(self.attributes.peer.map(|peer| Effect::Send(peer, packet)));
    }

    /// The traffic class of packets to the peer. If we react to marks, it allows switches to mark them.
    pub fn class(&self, link: Option<&Link>) -> u8 {
        match link.is_some_and(|link| link.dcqcn.is_some()) {
            true => self.attributes.class & !ecn::BITS | ecn::CAPABLE,
            false => self.attributes.class,
        }
    }

    /// The claim on our memory that a RETH of the peer's makes.
    pub fn claim(&self, reth: Reth, needed: Access) -> Claim {
        Claim { pd: self.pd, qp: Some(self.number), key: reth.rkey, address: reth.va, length: reth.length, needed }
    }

    /// Completes a send request. A success that nobody asked to hear of isn't reported.
    pub fn complete_send(&self, request: &SendRequest, status: Status, ctx: &mut Ctx) {
        if status == Status::Success && !request.signaled && !self.signal_all {
            return;
        }
        let length = if request.work.wants_response() { request.length } else { 0 };
        let completion = self.completion(request.wr_id, status, request.work.opcode());
        ctx.push(Effect::Sent(Completion { length, ..completion }));
    }

    /// Completes a receive that nothing has filled.
    pub fn complete_unfilled(&self, request: &ReceiveRequest, status: Status, ctx: &mut Ctx) {
        ctx.push(Effect::Received(self.completion(request.wr_id, status, WcOpcode::Recv)));
    }

    pub fn completion(&self, wr_id: u64, status: Status, opcode: WcOpcode) -> Completion {
        let (qp, src_qp) = (self.number, self.attributes.dest_qp);
        let (length, immediate, invalidated, grh, solicited) = (0, None, None, false, false);
        Completion { wr_id, status, opcode, length, immediate, invalidated, qp, src_qp, grh, solicited }
    }
}

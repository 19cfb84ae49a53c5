//! What the responder does with a request that it has already carried out. Either the answer was lost, or the requester was
//! impatient (specification, volume 1, 9.7.5.1, C9-105).
//!
//! A SEND or WRITE isn't placed again, only acknowledged again. A READ is answered once more. An atomic operation must not be
//! carried out twice, so what it found is kept, for as many atomics as the peer may have under way.

use super::responder::Responder;
use super::{packets, Broken, Qp, View};
use crate::fact::Fact;
use crate::memory::Access;
use crate::outside::Ctx;
use crate::packet::Packet;
use roce::aeth::Syndrome;
use roce::opcode::Operation;

impl Responder {
    /// Answers a request with a PSN before the expected one.
    pub(super) fn duplicate(&mut self, packet: Packet, qp: &View, ctx: &mut Ctx) -> Result<(), Broken> {
        let (psn, row) = (packet.psn, packet.row());
        let what = match row.operation {
            Operation::ReadRequest => self.read_again(&packet, qp, ctx),
            Operation::CompareSwap | Operation::FetchAdd | Operation::AtomicWrite | Operation::Flush => {
                self.atomic_again(&packet, qp)
            }
            _ if packet.ack_request => {
                self.queue_ack(self.expected.before(), Syndrome::ACK, qp);
                "placed before, acknowledged again"
            }
            _ => "placed before",
        };
        ctx.say(|| Fact::new("duplicate").with("psn", psn).with("packet", row.name).with("why", what));
        self.send_responses(qp, ctx)
    }

    fn read_again(&mut self, packet: &Packet, qp: &View, ctx: &Ctx) -> &'static str {
        if !self.may_be_read_again(packet, qp, ctx) {
            "dropped: no such READ was allowed"
        } else if !self.queue_read_again(packet.reth, packet.psn, qp) {
            "dropped: as many READs as agreed on are under way"
        } else {
            "answered again"
        }
    }

    /// Whether this can be a READ that came before, or the end of one.
    fn may_be_read_again(&self, packet: &Packet, qp: &View, ctx: &Ctx) -> bool {
        let (reth, needed) = (packet.reth, Access::REMOTE_READ);
        let end = packet.psn.plus(packets(reth.length, qp.attributes.mtu));
        reth.length <= Qp::LONGEST
            && end.since(self.expected) <= 0
            && qp.attributes.access.allow(needed)
            && ctx.memory.check(qp.claim(reth, needed)).is_ok()
    }

    fn atomic_again(&mut self, packet: &Packet, qp: &View) -> &'static str {
        match self.atomics.iter().find(|(done, _)| *done == packet.psn) {
            Some(&(_, original)) => {
                match packet.row().operation {
                    Operation::AtomicWrite | Operation::Flush => self.queue_done(packet.psn, qp),
                    _ => self.queue_atomic_response(packet.psn, original, qp),
                }
                "carried out before, answered again"
            }
            None => "dropped: too long ago",
        }
    }
}

//! The responder, when a request comes that it has carried out before: its answer was lost, or the requester was impatient
//! (specification, volume 1, 9.7.5.1.4 and 9.7.5.1.5, "duplicate requests").
//!
//! A SEND or WRITE is not placed again, only acknowledged again. A READ is answered anew. An atomic operation must not be
//! carried out twice: what it gave is kept, for as many as the peer may have under way.

use super::{packets, Qp};
use crate::memory::{Claim, Rights};
use crate::outside::Outside;
use crate::packet::{code, syndrome, Packet};
use wire::opcode::Operation;

impl Qp {
    /// Answers a request with a PSN before the expected one.
    pub(super) fn duplicate(&mut self, packet: Packet, out: &mut Outside) {
        let (psn, name) = (packet.psn, packet.row().name);
        let what = match packet.row().operation {
            Operation::ReadRequest if self.may_be_read_again(&packet, out) => {
                if self.queue_read_again(packet.reth, psn) {
                    "answered again"
                } else {
                    "dropped: as many READs as agreed on are under way"
                }
            }
            Operation::ReadRequest => "dropped: no such READ was allowed",
            Operation::CompareSwap | Operation::FetchAdd => {
                match self.responder.atomics.iter().find(|(done, _)| *done == psn) {
                    Some(&(_, original)) => {
                        let response = Packet { original, ..self.response(code::ATOMIC_ACKNOWLEDGE, psn) };
                        self.reply(response, out);
                        "carried out before, answered again"
                    }
                    None => "dropped: too long ago",
                }
            }
            _ if packet.ack_request => {
                let last = self.responder.expected.before();
                self.acknowledge(last, syndrome::ACK, out);
                "placed before, acknowledged again"
            }
            _ => "placed before",
        };
        out.say(|| format!("responder: PSN {psn}, {name}: a duplicate, {what}"));
        self.send_answers(out);
    }

    /// Whether this can be a READ of before, or the end of one.
    fn may_be_read_again(&self, packet: &Packet, out: &Outside) -> bool {
        let (reth, domain, needed) = (packet.reth, self.settings.domain, Rights::REMOTE_READ);
        let claim = Claim { domain, key: reth.rkey, address: reth.va, length: reth.length, needed };
        let end = packet.psn.plus(packets(reth.length, self.attributes.mtu));
        reth.length <= Qp::LONGEST
            && end.since(self.responder.expected) <= 0
            && self.attributes.access.allow(needed)
            && out.memory.check(claim).is_ok()
    }
}

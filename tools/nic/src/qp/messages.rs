//! What the responder does with a SEND or WRITE, gate by gate (specification, volume 1, 9.7.4 and 9.9.3).

use super::responder::{Incoming, Responder};
use super::verdict::Nak;
use super::{Qp, View};
use crate::completion::{Completion, Status, WcOpcode};
use crate::fact::Fact;
use crate::memory::{Access, Claim};
use crate::outside::Ctx;
use crate::packet::{Packet, Reth};
use crate::work::{ReceiveQueue, ReceiveRequest};
use roce::aeth::Syndrome;
use roce::opcode::{Operation, Part};

impl Responder {
    /// Places the bytes of one packet of a SEND or WRITE. The last packet may complete a receive.
    pub(super) fn carry(
        &mut self,
        packet: &Packet,
        qp: &View,
        receives: &mut ReceiveQueue,
        ctx: &mut Ctx,
    ) -> Result<Option<Completion>, Nak> {
        let row = packet.row();
        let ends = matches!(row.part, Part::Last | Part::Only);
        self.check_sequence(row.operation, row.part)?;
        check_length(row.part, packet.payload.len(), qp.attributes.mtu)?;
        check_access(row.operation, qp)?;
        self.take_resource(packet, qp, receives, ctx)?;
        // Only a WRITE's first packet says where the bytes go.
        let write = (row.operation == Operation::Write).then_some(packet.reth);
        let before = self.message.unwrap_or(Incoming { write, arrived: 0 });
        match before.write {
            Some(reth) => place_write(reth, before.arrived, ends, packet, qp, ctx)?,
            None => self.place_send(before.arrived, packet, qp, ctx)?,
        }
        if packet.brings_invalidate() {
            let key = packet.invalidate;
            ctx.memory.invalidate(key, qp.number).map_err(|refusal| Nak::Invalidate(key, refusal))?;
        }
        let message = Incoming { arrived: before.arrived + packet.payload.len() as u32, ..before };
        self.message = (!ends).then_some(message);
        self.advance(packet.psn.plus(1), ends);
        let is_answered = packet.ack_request && qp.service.is_reliable();
        if is_answered {
            self.queue_ack(packet.psn, Syndrome::ACK, qp);
        }
        // A WRITE needs this test because with an unreliable service, a receive may still be waiting for the next SEND.
        let fills = write.is_none() || packet.brings_immediate();
        let filled = self.receive.as_ref().filter(|_| ends && fills);
        self.tell(packet, ends, ctx, || {
            let placed = self.placed(message).maybe("answer", is_answered.then_some("ACK"));
            placed.maybe("completes", filled.map(|receive| receive.wr_id))
        });
        Ok(filled.map(|receive| completion(receive, packet, message.arrived, qp)))
    }

    /// Says where the bytes of a packet went, and how much of the message has come.
    fn placed(&self, Incoming { write, arrived }: Incoming) -> Fact {
        match (write, &self.receive) {
            (Some(Reth { rkey, length, .. }), _) => Fact::new("written")
                .with("rkey", format_args!("{rkey:#x}"))
                .with("arrived", arrived)
                .with("length", length),
            (None, Some(receive)) => {
                let (wr_id, room) = (receive.wr_id, receive.room());
                Fact::new("received").with("wr_id", wr_id).with("arrived", arrived).with("room", room)
            }
            (None, None) => Fact::new("received"),
        }
    }

    /// The sequence gate: does this packet continue what came before?
    fn check_sequence(&self, operation: Operation, part: Part) -> Result<(), Nak> {
        let begins = matches!(part, Part::First | Part::Only);
        let continues = match self.message {
            Some(Incoming { write, .. }) => !begins && write.is_some() == (operation == Operation::Write),
            None => begins,
        };
        continues.then_some(()).ok_or(Nak::Sequence)
    }

    /// The resource gate: a SEND needs a receive, and so does a WRITE with immediate.
    pub(super) fn take_resource(
        &mut self,
        packet: &Packet,
        qp: &View,
        receives: &mut ReceiveQueue,
        ctx: &mut Ctx,
    ) -> Result<(), Nak> {
        let begins = matches!(packet.row().part, Part::First | Part::Only);
        let begins_send = begins && packet.row().operation == Operation::Send;
        if self.receive.is_none() && (begins_send || packet.brings_immediate()) {
            let taken = ctx.take_receive(receives);
            self.receive = Some(taken.ok_or(Nak::NotReady { timer: qp.attributes.min_rnr_timer })?);
        }
        Ok(())
    }

    /// The memory gate of a SEND, which is its receive.
    pub(super) fn place_send(&self, at: u32, packet: &Packet, qp: &View, ctx: &Ctx) -> Result<(), Nak> {
        let Some(receive) = &self.receive else { return Err(Nak::Sequence) };
        let (sum, room) = (u64::from(at) + packet.payload.len() as u64, receive.room());
        if sum > Qp::LONGEST.into() {
            return Err(Nak::TooLong);
        }
        if sum > room {
            return Err(Nak::NoRoom { arrived: sum, room });
        }
        // A shared receive queue needn't be in the same protection domain as its queue pairs.
        let pd = ctx.shared.as_ref().map_or(qp.pd, |shared| shared.pd());
        ctx.memory.scatter(pd, &receive.sge, at, &packet.payload).map_err(Nak::OwnMemory)
    }
}

/// The length gate: every packet but the last must be full.
fn check_length(part: Part, length: usize, mtu: u32) -> Result<(), Nak> {
    let mtu = mtu as usize;
    let fits = match part {
        Part::First | Part::Middle => length == mtu,
        Part::Last => (1..=mtu).contains(&length),
        Part::Only => length <= mtu,
    };
    fits.then_some(()).ok_or(Nak::Payload(length))
}

/// The access gate: may the peer do this at all?
fn check_access(operation: Operation, qp: &View) -> Result<(), Nak> {
    let is_allowed = operation != Operation::Write || qp.attributes.access.allow(Access::REMOTE_WRITE);
    is_allowed.then_some(()).ok_or(Nak::NotAllowed("WRITE"))
}

/// The memory gate of a WRITE, which is its key. The whole message is checked with every packet, so that a WRITE that doesn't fit
/// changes nothing.
fn place_write(reth: Reth, at: u32, ends: bool, packet: &Packet, qp: &View, ctx: &Ctx) -> Result<(), Nak> {
    if reth.length > Qp::LONGEST {
        return Err(Nak::TooLong);
    }
    let arrived = at + packet.payload.len() as u32;
    if arrived > reth.length || (ends && arrived != reth.length) {
        return Err(Nak::Announced { arrived, announced: reth.length });
    }
    let whole = qp.claim(reth, Access::REMOTE_WRITE);
    let here = Claim { address: reth.va.wrapping_add(at.into()), ..whole };
    let placed = ctx.memory.check(whole).and_then(|()| ctx.memory.write(here, &packet.payload));
    placed.map_err(|refusal| Nak::Memory { reth, refusal })
}

/// How a receive completes when the last packet of its message has come.
pub(super) fn completion(receive: &ReceiveRequest, last: &Packet, length: u32, qp: &View) -> Completion {
    let is_write = last.row().operation == Operation::Write;
    let opcode = if is_write { WcOpcode::RecvRdmaWithImm } else { WcOpcode::Recv };
    let immediate = last.brings_immediate().then_some(last.immediate);
    let invalidated = last.brings_invalidate().then_some(last.invalidate);
    let solicited = last.solicited;
    Completion { length, immediate, invalidated, solicited, ..qp.completion(receive.wr_id, Status::Success, opcode) }
}

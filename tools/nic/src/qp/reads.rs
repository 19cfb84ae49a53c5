//! What the responder does with a READ or an atomic operation, whose answers bring bytes (specification, volume 1, 9.4.4 and
//! 9.4.5), and with an ATOMIC WRITE or a FLUSH, which also have answers of their own (annex A19).

use super::responder::Responder;
use super::verdict::Nak;
use super::{packets, Qp, View};
use crate::completion::Completion;
use crate::fact::Fact;
use crate::memory::Access;
use crate::outside::Ctx;
use crate::packet::{code, Packet, Reth};
use crate::psn::Psn;

impl Responder {
    /// Queues a READ's responses. They use up the PSNs after the request's.
    pub(super) fn read(&mut self, packet: &Packet, qp: &View, ctx: &mut Ctx) -> Result<Option<Completion>, Nak> {
        self.may_read(packet, Access::REMOTE_READ, qp)?;
        let (psn, reth) = (packet.psn, packet.reth);
        if reth.length > Qp::LONGEST {
            return Err(Nak::TooLong);
        }
        let responses = packets(reth.length, qp.attributes.mtu);
        self.advance(psn.plus(responses), true);
        self.queue_read(reth, psn, false);
        let Reth { rkey, length, .. } = reth;
        self.tell(packet, true, ctx, || {
            Fact::new("read").with("rkey", format_args!("{rkey:#x}")).with("bytes", length).with("responses", responses)
        });
        Ok(None)
    }

    /// Carries out an atomic operation, once.
    pub(super) fn atomic(&mut self, packet: &Packet, qp: &View, ctx: &mut Ctx) -> Result<Option<Completion>, Nak> {
        self.may_read(packet, Access::REMOTE_ATOMIC, qp)?;
        let asked = packet.atomic;
        if asked.va % 8 != 0 {
            return Err(Nak::Unaligned);
        }
        let reth = Reth { va: asked.va, rkey: asked.rkey, length: 8 };
        let claim = qp.claim(reth, Access::REMOTE_ATOMIC);
        let changed = if packet.opcode == code::FETCH_ADD {
            ctx.memory.update(claim, |old| Some(old.wrapping_add(asked.swap_add)))
        } else {
            ctx.memory.update(claim, |old| (old == asked.compare).then_some(asked.swap_add))
        };
        let original = changed.map_err(|refusal| Nak::Memory { reth, refusal })?;
        self.carried_out(packet.psn, original, qp);
        self.queue_atomic_response(packet.psn, original, qp);
        self.tell(packet, true, ctx, || {
            Fact::new("atomic")
                .with("rkey", format_args!("{:#x}", asked.rkey))
                .with("original", format_args!("{original:#x}"))
        });
        Ok(None)
    }

    /// Replaces eight bytes, once.
    pub(super) fn atomic_write(
        &mut self,
        packet: &Packet,
        qp: &View,
        ctx: &mut Ctx,
    ) -> Result<Option<Completion>, Nak> {
        self.may_read(packet, Access::REMOTE_WRITE, qp)?;
        let reth = packet.reth;
        if reth.length != 8 || packet.payload.len() != 8 {
            return Err(Nak::Payload(packet.payload.len()));
        }
        if reth.va % 8 != 0 {
            return Err(Nak::Unaligned);
        }
        let placed = ctx.memory.write(qp.claim(reth, Access::REMOTE_WRITE), &packet.payload);
        placed.map_err(|refusal| Nak::Memory { reth, refusal })?;
        self.carried_out(packet.psn, 0, qp);
        self.queue_done(packet.psn, qp);
        self.tell(packet, true, ctx, || Fact::new("replaced").with("rkey", format_args!("{:#x}", reth.rkey)));
        Ok(None)
    }

    /// Everything that was written before is globally visible already, so there's nothing left to do but to check who's asking,
    /// and answer.
    pub(super) fn flush(&mut self, packet: &Packet, qp: &View, ctx: &mut Ctx) -> Result<Option<Completion>, Nak> {
        // From bit 8 on, the access rights have the bits of the placement type.
        let needed = Access(u32::from(packet.feth.placement) << 8);
        self.may_read(packet, needed, qp)?;
        let whole = ctx.memory.get(packet.reth.rkey).filter(|_| packet.feth.level == 1);
        let reth = whole.map_or(packet.reth, |region| Reth { va: region.va, length: 1, ..packet.reth });
        let checked = ctx.memory.check(qp.claim(reth, needed));
        checked.map_err(|refusal| Nak::Memory { reth, refusal })?;
        self.carried_out(packet.psn, 0, qp);
        self.queue_done(packet.psn, qp);
        self.tell(packet, true, ctx, || Fact::new("visible").with("rkey", format_args!("{:#x}", reth.rkey)));
        Ok(None)
    }

    /// Remembers that such an operation was carried out, and what it found, since it must not be carried out again.
    fn carried_out(&mut self, psn: Psn, original: u64, qp: &View) {
        self.advance(psn.plus(1), true);
        self.atomics.push_back((psn, original));
        if self.atomics.len() > usize::from(qp.attributes.max_dest_rd_atomic) {
            self.atomics.pop_front();
        }
    }

    /// The sequence, access and resource gates of READs and atomics. Their resource is room for the responses.
    fn may_read(&mut self, packet: &Packet, needed: Access, qp: &View) -> Result<(), Nak> {
        if self.message.is_some() {
            return Err(Nak::Sequence);
        }
        if !qp.attributes.access.allow(needed) || qp.attributes.max_dest_rd_atomic == 0 {
            return Err(Nak::NotAllowed(packet.row().name));
        }
        if !self.has_room_for_read(qp) {
            return Err(Nak::TooManyReads);
        }
        Ok(())
    }
}

//! The responder of the services without answers, unreliable connection and unreliable datagram (specification, volume 1, 9.8;
//! errors 9.9.3, classes D and E).
//!
//! Whatever is wrong is dropped, and its sender never hears of it. The receive that it would have filled is filled by the next
//! message. A receive from a shared queue comes back with an error instead, because otherwise the other queue pairs would miss
//! it.

use super::messages::completion;
use super::responder::Responder;
use super::verdict::Nak;
use super::{Broken, View};
use crate::completion::{Completion, Status};
use crate::datagram::Route;
use crate::fact::Fact;
use crate::outside::Ctx;
use crate::packet::Packet;
use crate::work::ReceiveQueue;

impl Responder {
    /// A packet of an unreliable connection. If its PSN wasn't expected, one before it was lost. The rest of that message is then
    /// lost as well, and the next message starts afresh.
    pub(super) fn receive_unanswered(
        &mut self,
        packet: Packet,
        qp: &View,
        receives: &mut ReceiveQueue,
        ctx: &mut Ctx,
    ) -> Result<(), Broken> {
        if packet.psn != self.expected {
            let (psn, expected) = (packet.psn, self.expected);
            ctx.say(|| Fact::new("skipped").with("psn", psn).with("expected", expected));
            self.message = None;
        }
        match self.carry(&packet, qp, receives, ctx) {
            Ok(completes) => self.answer(completes, qp, ctx),
            Err(nak) => self.forgo(&packet, &nak, qp, ctx),
        }
    }

    /// A datagram. Its receive also gets the header of the packet that brought it.
    pub(super) fn receive_datagram(
        &mut self,
        route: Route,
        mut packet: Packet,
        qp: &View,
        receives: &mut ReceiveQueue,
        ctx: &mut Ctx,
    ) -> Result<(), Broken> {
        let grh = route.grh(&packet);
        packet.payload.splice(..0, grh);
        match self.place_datagram(&packet, qp, receives, ctx) {
            Ok(completes) => {
                let (src_qp, Completion { wr_id, length, .. }) = (packet.deth.src_qp, completes);
                ctx.say(|| Fact::new("datagram").with("bytes", length).with("from", src_qp).with("completes", wr_id));
                self.answer(Some(completes), qp, ctx)
            }
            Err(nak) => self.forgo(&packet, &nak, qp, ctx),
        }
    }

    /// The gates of a datagram: its key, a receive, and room in it.
    fn place_datagram(
        &mut self,
        packet: &Packet,
        qp: &View,
        receives: &mut ReceiveQueue,
        ctx: &mut Ctx,
    ) -> Result<Completion, Nak> {
        if packet.deth.qkey != qp.attributes.qkey {
            return Err(Nak::Qkey(packet.deth.qkey));
        }
        self.take_resource(packet, qp, receives, ctx)?;
        self.place_send(0, packet, qp, ctx)?;
        let Some(receive) = &self.receive else { return Err(Nak::Sequence) };
        let filled = completion(receive, packet, packet.payload.len() as u32, qp);
        Ok(Completion { src_qp: packet.deth.src_qp, grh: true, ..filled })
    }

    /// Drops a packet, and its message with it. Only a receive whose own memory is out of reach breaks the queue pair, since it
    /// would stop every message.
    fn forgo(&mut self, packet: &Packet, nak: &Nak, qp: &View, ctx: &mut Ctx) -> Result<(), Broken> {
        let (psn, name) = (packet.psn, packet.row().name);
        ctx.say(|| Fact::new("dropped").with("psn", psn).with("packet", name).refused(nak));
        self.message = None;
        self.expected = psn.plus(1);
        let (status, done) = match nak {
            Nak::OwnMemory(_) => (Status::LocProtErr, Err(Broken)),
            _ if ctx.shared.is_some() => (Status::RemInvReqErr, Ok(())),
            _ => return Ok(()),
        };
        self.receive.take().iter().for_each(|receive| qp.complete_unfilled(receive, status, ctx));
        done
    }
}

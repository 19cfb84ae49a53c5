//! A queue pair on a link with a rate: it keeps its pace, reports marks, and slows down when it's told to (see
//! [`congestion`](crate::congestion)).

use super::{Qp, View};
use crate::congestion::pace::Pace;
use crate::congestion::pause::priority;
use crate::congestion::{ecn, notification, Link};
use crate::datagram::bytes_of_link;
use crate::fact::Fact;
use crate::outside::{Ctx, Effect};
use crate::packet::Packet;

impl Qp {
    /// A packet of the peer's has come. If it met congestion on its way, its sender must find out.
    pub(super) fn tell_if_marked(&mut self, packet: &Packet, ctx: &mut Ctx) {
        let Some(parameters) = ctx.link.and_then(|link| link.dcqcn.as_ref()) else { return };
        let is_marked = packet.class & ecn::BITS == ecn::EXPERIENCED;
        let Some(peer) = self.attributes.peer.filter(|_| is_marked) else { return };
        if self.notification.marked(parameters, ctx.now) {
            let number = self.settings.number;
            ctx.say(|| Fact::new("marked").with("qp", number).with("psn", packet.psn));
            ctx.push(Effect::Send(peer, notification::packet(self.attributes.dest_qp)));
        }
    }

    /// A CNP has come.
    pub(super) fn slow_down(&mut self, ctx: &mut Ctx) {
        let rate = ctx.link.and_then(|link| {
            self.responder.pace.notified(link, ctx.now);
            self.requester.pace.notified(link, ctx.now)
        });
        let number = self.settings.number;
        ctx.say(|| match rate {
            Some(rate) => Fact::new("slower").with("qp", number).with("rate", rate / 1_000_000),
            None => Fact::new("unmoved").with("qp", number),
        });
    }
}

impl View {
    /// Whether the next packet of this pace must wait for its time.
    pub(super) fn has_to_wait(&self, pace: &mut Pace, ctx: &Ctx) -> bool {
        ctx.link.is_some_and(|link| pace.has_to_wait(self.class(ctx.link), link, ctx.now))
    }

    /// Whether the switch has told this queue pair to wait.
    pub(super) fn is_paused(&self, ctx: &Ctx) -> bool {
        let until = |link: &Link| link.pause.until(priority(self.class(ctx.link)), ctx.now);
        ctx.link.and_then(until).is_some()
    }

    /// A packet goes out, and the link is busy with it for a while.
    pub(super) fn keep_pace(&self, pace: &mut Pace, packet: &Packet, ctx: &Ctx) {
        if let (Some(link), Some(peer)) = (ctx.link, self.attributes.peer) {
            pace.sent(bytes_of_link(peer, packet), link, ctx.now);
        }
    }
}

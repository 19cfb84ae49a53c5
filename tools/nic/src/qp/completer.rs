//! What the requester does when a response comes: what it completes, and what must have been lost (specification, volume 1,
//! 9.7.6).
//!
//! It takes Acknowledge (ACK, RNR NAK, NAK), RDMA Read Response and Atomic Acknowledge. A response to one request answers all
//! requests before it, except for READs and atomics. Those either have brought their bytes, or must be asked for again.

use super::requester::{Requester, Wqe};
use super::{Broken, View};
use crate::completion::Status;
use crate::fact::Fact;
use crate::outside::Ctx;
use crate::packet::{code, Packet};
use crate::psn::Psn;
use crate::work::{Local, Work};
use roce::aeth::{Nak, Syndrome};
use roce::opcode::{Operation, Part};
use std::time::Duration;

/// The number of RNR retries that stands for "for ever".
const FOR_EVER: u8 = 7;

impl Requester {
    pub(super) fn receive_response(&mut self, packet: Packet, qp: &View, ctx: &mut Ctx) -> Result<(), Broken> {
        let psn = packet.psn;
        if psn.since(self.unacked) < 0 || psn.since(self.next) >= 0 {
            ctx.say(|| Fact::new("old").with("psn", psn).with("packet", packet.row().name));
            return Ok(());
        }
        match (packet.opcode, packet.aeth.verdict()) {
            (code::ACKNOWLEDGE, Syndrome::Ack { .. }) => self.ack_received(psn, qp, ctx),
            (code::ACKNOWLEDGE, Syndrome::RnrNak { timer_us }) => {
                self.ack_received(psn.before(), qp, ctx);
                self.not_ready(psn, Duration::from_micros(timer_us.into()), qp, ctx)?;
            }
            (code::ACKNOWLEDGE, Syndrome::Nak(nak)) => {
                self.ack_received(psn.before(), qp, ctx);
                self.nak_received(psn, nak, qp, ctx)?;
            }
            (code::ACKNOWLEDGE, Syndrome::Reserved(_)) => {}
            _ => self.bytes_received(packet, qp, ctx)?,
        }
        self.transmit(qp, ctx)
    }

    /// Everything up to this PSN has arrived. But the response to a READ or an atomic brings bytes, so if it hasn't come by now,
    /// it was lost.
    fn ack_received(&mut self, psn: Psn, qp: &View, ctx: &mut Ctx) {
        let before = self.unacked;
        while let Some(front) = self.begun.front().filter(|wqe| psn.since(wqe.first) >= 0) {
            if front.request.work.wants_response() {
                ctx.say(|| Fact::new("lost").with("psn", self.unacked));
                self.go_back();
                break;
            }
            if psn.since(front.last) < 0 {
                self.unacked = psn.plus(1);
                break;
            }
            self.complete_oldest(qp, ctx);
        }
        if self.unacked != before {
            self.progress(qp, ctx);
        }
    }

    fn nak_received(&mut self, psn: Psn, nak: Nak, qp: &View, ctx: &mut Ctx) -> Result<(), Broken> {
        ctx.say(|| Fact::new("nak").with("psn", psn).with("answer", Syndrome::Nak(nak)));
        let status = match nak {
            Nak::PsnSequence => {
                self.went_back = false;
                return self.try_again(qp, ctx);
            }
            Nak::InvalidRequest => Status::RemInvReqErr,
            Nak::RemoteAccess => Status::RemAccessErr,
            _ => Status::RemOpErr,
        };
        if self.unacked != psn {
            return Ok(()); // A response before it was lost, and that must be mended first.
        }
        Err(self.fail(status, qp, ctx))
    }

    /// The peer had no receive posted for the packet with this PSN.
    fn not_ready(&mut self, psn: Psn, wait: Duration, qp: &View, ctx: &mut Ctx) -> Result<(), Broken> {
        if self.unacked != psn {
            return Ok(());
        }
        let mut left = "any number of".to_owned();
        if qp.attributes.rnr_retries != FOR_EVER {
            if self.rnr_retries == 0 {
                return Err(self.fail(Status::RnrRetryExcErr, qp, ctx));
            }
            left = self.rnr_retries.to_string();
            self.rnr_retries -= 1;
        }
        ctx.say(|| Fact::new("rnr").with("psn", psn).with("wait", format_args!("{wait:?}")).with("left", left));
        self.send = psn;
        self.timer = None;
        self.rnr_until = Some(ctx.now + wait);
        Ok(())
    }

    /// Takes the response to a READ or an atomic.
    fn bytes_received(&mut self, packet: Packet, qp: &View, ctx: &mut Ctx) -> Result<(), Broken> {
        let psn = packet.psn;
        if psn != self.unacked {
            self.ack_received(psn.before(), qp, ctx);
        }
        let Some(wqe) = self.begun.front().filter(|_| psn == self.unacked) else { return Ok(()) };
        if !is_response_to(wqe, &packet, qp) {
            ctx.say(|| Fact::new("unasked").with("psn", psn).with("packet", packet.row().name));
            return Err(self.fail(Status::BadRespErr, qp, ctx));
        }
        let number = packet.original.to_ne_bytes();
        let bytes = if wqe.request.work.is_atomic() { &number[..] } else { &packet.payload };
        let offset = psn.since(wqe.first) as u32 * qp.attributes.mtu;
        let placed = match &wqe.request.local {
            Local::SgList(sge) => ctx.memory.scatter(qp.pd, sge, offset, bytes),
            Local::Inline(_) => Ok(()), // It's an ATOMIC WRITE, whose answer brings no bytes.
        };
        if let Err(refusal) = placed {
            ctx.say(|| Fact::new("unplaced").with("psn", psn).refused(&refusal));
            return Err(self.fail(Status::LocProtErr, qp, ctx));
        }
        ctx.say(|| Fact::new("placed").with("psn", psn).with("bytes", bytes.len()).with("offset", offset));
        if psn == wqe.last {
            self.complete_oldest(qp, ctx);
        } else {
            self.unacked = psn.plus(1);
        }
        self.progress(qp, ctx);
        Ok(())
    }

    /// The oldest request is done.
    pub(super) fn complete_oldest(&mut self, qp: &View, ctx: &mut Ctx) {
        if let Some(wqe) = self.begun.pop_front() {
            self.unacked = wqe.last.plus(1);
            ctx.say(|| Fact::new("complete").with("psn", wqe.last).with("work", wqe.request.work));
            qp.complete_send(&wqe.request, Status::Success, ctx);
        }
    }
}

/// Whether a packet is a response to the READ or atomic that has its PSN: of the right kind, an ACK, and of the length that it
/// must have.
fn is_response_to(wqe: &Wqe, packet: &Packet, qp: &View) -> bool {
    let is_ack = matches!(packet.aeth.verdict(), Syndrome::Ack { .. });
    match wqe.request.work {
        Work::Read(_) => is_ack && is_part_of_read(wqe, packet, qp.attributes.mtu),
        work => {
            let answer = if work.is_atomic() { code::ATOMIC_ACKNOWLEDGE } else { code::READ_RESPONSE_ONLY };
            is_ack && work.is_one_packet() && packet.opcode == answer && packet.payload.is_empty()
        }
    }
}

/// Whether a packet can be the READ response in its place. Another message may begin in the middle of the request, namely the
/// answer to a READ of the rest. But where the request ends, the message must end as well.
fn is_part_of_read(wqe: &Wqe, packet: &Packet, mtu: u32) -> bool {
    let (begins, ends) = match packet.row().part {
        Part::First => (true, false),
        Part::Middle => (false, false),
        Part::Last => (false, true),
        Part::Only => (true, true),
    };
    let offset = packet.psn.since(wqe.first) as u32 * mtu;
    packet.row().operation == Operation::ReadResponse
        && (begins || packet.psn != wqe.first)
        && ends == (packet.psn == wqe.last)
        && packet.payload.len() == mtu.min(wqe.request.length - offset) as usize
}

//! The responder's answers: acknowledgements and READ responses, in the order of PSNs (specification, volume 1, 9.7.5.1 and
//! 9.7.5.2).
//!
//! What answers a request waits behind what answers the requests before it: an ACK that overtook a READ response would tell the
//! requester that the response was lost.

use super::request::part;
use super::responder::{No, Responder};
use super::{packets, Qp, State};
use crate::memory::{Claim, Rights};
use crate::outside::{Effect, Outside};
use crate::packet::{code, opcode_of, syndrome, Packet, Reth};
use crate::psn::Psn;
use wire::opcode::Operation;

/// So many packets of READ responses go out at a time, so that others have their turn and sockets do not overflow.
const BATCH: usize = 32;

/// What still has to be sent, in the order of PSNs.
#[derive(Debug)]
pub(super) enum Answer {
    /// One packet.
    Packet(Packet),
    /// READ responses, from the packet at this index on. Their bytes are read when they are sent.
    Read {
        reth: Reth,
        first: Psn,
        index: u32,
        msn: u32,
        /// It was asked for again.
        again: bool,
    },
}

impl Answer {
    fn psn(&self) -> Psn {
        match self {
            Answer::Packet(packet) => packet.psn,
            Answer::Read { first, index, .. } => first.plus(*index),
        }
    }

    /// Whether it is a READ to whose responses this PSN belongs.
    fn is_read_with(&self, psn: Psn, mtu: u32) -> bool {
        let Answer::Read { reth, first, .. } = self else { return false };
        (0..packets(reth.length, mtu) as i32).contains(&psn.since(*first))
    }
}

impl Responder {
    pub(super) fn is_busy(&self) -> bool {
        !self.answers.is_empty()
    }
}

impl Qp {
    /// Answers with an Acknowledge packet, behind what has to be sent before.
    pub(super) fn acknowledge(&mut self, psn: Psn, syndrome: u8, out: &mut Outside) {
        let packet = Packet { syndrome, ..self.response(code::ACKNOWLEDGE, psn) };
        self.reply(packet, out);
    }

    /// Answers, behind what has to be sent before.
    pub(super) fn reply(&mut self, packet: Packet, out: &mut Outside) {
        self.responder.answers.push_back(Answer::Packet(packet));
        self.send_answers(out);
    }

    pub(super) fn response(&self, opcode: u8, psn: Psn) -> Packet {
        let (dest_qp, msn) = (self.attributes.dest_qp, self.responder.msn);
        Packet { opcode, dest_qp, psn, syndrome: syndrome::ACK, msn, ..Packet::default() }
    }

    /// Puts a READ's responses in the queue. `again` says that it was asked for before.
    pub(super) fn queue_read(&mut self, reth: Reth, first: Psn, again: bool) {
        let (msn, answers) = (self.responder.msn, &mut self.responder.answers);
        // One that is asked for again comes before what waits behind it.
        let at = answers.iter().position(|answer| answer.psn().since(first) >= 0).unwrap_or(answers.len());
        answers.insert(at, Answer::Read { reth, first, index: 0, msn, again });
    }

    /// The same for a READ of before. What is left of it in the queue, it replaces: it is still one READ. False if there is
    /// no room.
    pub(super) fn queue_read_again(&mut self, reth: Reth, first: Psn) -> bool {
        let (mtu, answers) = (self.attributes.mtu, &mut self.responder.answers);
        if let Some(at) = answers.iter().position(|answer| answer.is_read_with(first, mtu)) {
            answers.remove(at);
        } else if !self.has_room_for_read() {
            return false;
        }
        self.queue_read(reth, first, true);
        true
    }

    /// Whether one more READ may be under way. If as many are as agreed on, one that was asked for again gives up its place:
    /// the requester may have got its bytes meanwhile, or else asks once more.
    pub(super) fn has_room_for_read(&mut self) -> bool {
        let answers = &mut self.responder.answers;
        let under_way = answers.iter().filter(|answer| matches!(answer, Answer::Read { .. })).count();
        if under_way < usize::from(self.attributes.max_dest_rd_atomic) {
            return true;
        }
        let dispensable = answers.iter().position(|answer| matches!(answer, Answer::Read { again: true, .. }));
        dispensable.and_then(|at| answers.remove(at)).is_some()
    }

    /// Sends answers in their order, READ responses a batch at a time.
    pub(super) fn send_answers(&mut self, out: &mut Outside) {
        for _ in 0..BATCH {
            let packet = match self.responder.answers.front_mut() {
                None => return,
                Some(Answer::Read { reth, first, index, msn, .. }) => {
                    let (reth, first, at, msn) = (*reth, *first, *index, *msn);
                    *index += 1;
                    match self.read_response(reth, first, at, msn, out) {
                        Ok(packet) => packet,
                        Err(no) => {
                            self.responder.answers.clear();
                            if self.state != State::Err {
                                self.refuse(first.plus(at), "RC RDMA Read Request", no, out);
                            }
                            return;
                        }
                    }
                }
                Some(Answer::Packet(packet)) => std::mem::take(packet),
            };
            let more = match self.responder.answers.front() {
                Some(Answer::Read { reth, index, .. }) => *index < packets(reth.length, self.attributes.mtu),
                _ => false,
            };
            if !more {
                self.responder.answers.pop_front();
            }
            out.push(Effect::Send(packet));
        }
    }

    /// The READ response at `index`. The memory is checked with each: it may have been deregistered in between.
    fn read_response(&self, reth: Reth, first: Psn, index: u32, msn: u32, out: &Outside) -> Result<Packet, No> {
        let (mtu, domain, needed) = (self.attributes.mtu, self.settings.domain, Rights::REMOTE_READ);
        let whole = Claim { domain, key: reth.rkey, address: reth.va, length: reth.length, needed };
        let offset = index * mtu;
        let length = mtu.min(reth.length - offset);
        let here = Claim { address: reth.va.wrapping_add(offset.into()), length, ..whole };
        let payload = out.memory.check(whole).and_then(|()| out.memory.read(here)).map_err(|refusal| {
            let why = format!("rkey {:#x}, {} bytes at {:#x}: {refusal}", reth.rkey, reth.length, reth.va);
            No::new(syndrome::REMOTE_ACCESS_ERROR, why)
        })?;
        let opcode = opcode_of(Operation::ReadResponse, part(index, packets(reth.length, mtu)), false);
        Ok(Packet { payload, msn, ..self.response(opcode, first.plus(index)) })
    }
}

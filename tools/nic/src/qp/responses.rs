//! What the responder sends: acknowledgements and READ responses, in the order of their PSNs (specification, volume 1, 9.7.5.1
//! and 9.7.5.2).
//!
//! The answer to a request waits for the answers to the requests before it. An ACK that overtook a READ response would make the
//! requester believe that the response was lost.

use super::responder::Responder;
use super::segment::part;
use super::verdict::Nak;
use super::{packets, Broken, State, View};
use crate::memory::{Access, Claim};
use crate::outside::Ctx;
use crate::packet::{code, opcode_of, Aeth, Packet, Reth};
use crate::psn::Psn;
use roce::aeth::Syndrome;
use roce::opcode::Operation;

/// How many packets of READ responses go out at a time, so that others get their turn and sockets don't overflow.
const BATCH: usize = 32;

/// Something that remains to be sent.
#[derive(Debug)]
pub(super) enum Response {
    /// One packet.
    Packet(Packet),
    Read(Read),
}

/// READ responses, from the packet at this index on. Their bytes are read at the moment when they're sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    reth: Reth,
    first: Psn,
    index: u32,
    msn: u32,
    /// It was asked for a second time.
    again: bool,
}

impl Response {
    fn psn(&self) -> Psn {
        match self {
            Response::Packet(packet) => packet.psn,
            Response::Read(read) => read.first.plus(read.index),
        }
    }

    fn read(&self) -> Option<&Read> {
        match self {
            Response::Packet(_) => None,
            Response::Read(read) => Some(read),
        }
    }
}

/// The queue.
impl Responder {
    pub(super) fn is_busy(&self) -> bool {
        !self.responses.is_empty() && self.pace.waits_until.is_none()
    }

    pub(super) fn queue_ack(&mut self, psn: Psn, syndrome: Syndrome, qp: &View) {
        let aeth = Aeth { syndrome: syndrome.byte(), msn: self.msn };
        let packet = Packet { aeth, ..self.response(code::ACKNOWLEDGE, psn, qp) };
        self.responses.push_back(Response::Packet(packet));
    }

    pub(super) fn queue_atomic_response(&mut self, psn: Psn, original: u64, qp: &View) {
        let packet = Packet { original, ..self.response(code::ATOMIC_ACKNOWLEDGE, psn, qp) };
        self.responses.push_back(Response::Packet(packet));
    }

    /// Answers a FLUSH or an ATOMIC WRITE: a READ response without bytes (annex A19).
    pub(super) fn queue_done(&mut self, psn: Psn, qp: &View) {
        let packet = self.response(code::READ_RESPONSE_ONLY, psn, qp);
        self.responses.push_back(Response::Packet(packet));
    }

    /// Queues a READ's responses. `again` says that it was asked for before.
    pub(super) fn queue_read(&mut self, reth: Reth, first: Psn, again: bool) {
        let (msn, responses) = (self.msn, &mut self.responses);
        // One that's asked for again goes in front of everything with later PSNs.
        let at = responses.iter().position(|response| response.psn().since(first) >= 0).unwrap_or(responses.len());
        responses.insert(at, Response::Read(Read { reth, first, index: 0, msn, again }));
    }

    /// The same for a READ that came before. It replaces what's left of that READ in the queue, because it's still one READ.
    /// False if there's no room.
    pub(super) fn queue_read_again(&mut self, reth: Reth, first: Psn, qp: &View) -> bool {
        let mtu = qp.attributes.mtu;
        let holds = |read: &Read| (0..packets(read.reth.length, mtu) as i32).contains(&first.since(read.first));
        if let Some(at) = self.responses.iter().position(|response| response.read().is_some_and(holds)) {
            self.responses.remove(at);
        } else if !self.has_room_for_read(qp) {
            return false;
        }
        self.queue_read(reth, first, true);
        true
    }

    /// Whether one more READ may be under way. If there are as many as were agreed on, one that was asked for again gives up its
    /// place. Its requester may have got the bytes in the meantime, or else it'll ask once more.
    pub(super) fn has_room_for_read(&mut self, qp: &View) -> bool {
        if self.responses.iter().filter_map(Response::read).count() < usize::from(qp.attributes.max_dest_rd_atomic) {
            return true;
        }
        let again = self.responses.iter().position(|response| response.read().is_some_and(|read| read.again));
        again.and_then(|at| self.responses.remove(at)).is_some()
    }

    /// A packet that answers, with nothing in it yet.
    fn response(&self, opcode: u8, psn: Psn, qp: &View) -> Packet {
        let aeth = Aeth { syndrome: Syndrome::ACK.byte(), msn: self.msn };
        Packet { opcode, dest_qp: qp.attributes.dest_qp, psn, aeth, ..Packet::default() }
    }
}

/// Sending.
impl Responder {
    /// Sends an Acknowledge packet (an ACK or a NAK), after everything that must be sent before it.
    pub(super) fn send_ack(&mut self, psn: Psn, syndrome: Syndrome, qp: &View, ctx: &mut Ctx) -> Result<(), Broken> {
        self.queue_ack(psn, syndrome, qp);
        self.send_responses(qp, ctx)
    }

    /// Sends responses in their order, a batch at a time. READ responses keep their pace, and so whatever is queued after them
    /// waits as well.
    pub(super) fn send_responses(&mut self, qp: &View, ctx: &mut Ctx) -> Result<(), Broken> {
        self.pace.waits_until = None;
        for _ in 0..BATCH {
            let reads = matches!(self.responses.front(), Some(Response::Read(_)));
            if reads && qp.has_to_wait(&mut self.pace, ctx) {
                return Ok(());
            }
            match self.responses.pop_front() {
                None => return Ok(()),
                Some(Response::Packet(packet)) => qp.send(packet, ctx),
                Some(Response::Read(read)) => self.send_read_response(read, qp, ctx)?,
            }
        }
        Ok(())
    }

    /// Sends the next response to a READ. If there are more, the READ goes back to the front of the queue.
    fn send_read_response(&mut self, read: Read, qp: &View, ctx: &mut Ctx) -> Result<(), Broken> {
        match self.read_response(read, qp, ctx) {
            Ok(packet) => {
                qp.keep_pace(&mut self.pace, &packet, ctx);
                qp.send(packet, ctx);
            }
            Err(nak) => {
                self.responses.clear();
                if qp.state == State::Err {
                    return Ok(());
                }
                return self.refuse(read.first.plus(read.index), "RC RDMA Read Request", &nak, qp, ctx);
            }
        }
        let index = read.index + 1;
        if index < packets(read.reth.length, qp.attributes.mtu) {
            self.responses.push_front(Response::Read(Read { index, ..read }));
        }
        Ok(())
    }

    /// Makes the next READ response. The memory is checked for each, since it may have been deregistered in between.
    fn read_response(&self, read: Read, qp: &View, ctx: &Ctx) -> Result<Packet, Nak> {
        let Read { reth, first, index, msn, .. } = read;
        let mtu = qp.attributes.mtu;
        let offset = index * mtu;
        let whole = qp.claim(reth, Access::REMOTE_READ);
        let here =
            Claim { address: reth.va.wrapping_add(offset.into()), length: mtu.min(reth.length - offset), ..whole };
        let payload = ctx.memory.check(whole).and_then(|()| ctx.memory.read(here));
        let payload = payload.map_err(|refusal| Nak::Memory { reth, refusal })?;
        let opcode = opcode_of(qp.service, Operation::ReadResponse, part(index, packets(reth.length, mtu)), None);
        Ok(Packet {
            payload,
            aeth: Aeth { syndrome: Syndrome::ACK.byte(), msn },
            ..self.response(opcode, first.plus(index), qp)
        })
    }
}

//! The peer's requests: they come, have to be answered as rdma_rxe answered them, and leave what they brought.

use super::{is_fatal, nak, name, rnr_timer, Fault, Incoming, Side};
use crate::doorbell::{LATER, PLACE, READ, RECEIVE, WRITE};
use crate::dump::{difference, differing};
use crate::talk::Frame;
use nic::memory::Access;
use nic::outside::Effect;
use nic::packet::{Packet, Reth};
use nic::psn::Psn;
use nic::work::ReceiveRequest;
use roce::aeth::{Nak, Syndrome};
use roce::opcode::Operation;

impl Side<'_> {
    pub(super) fn request_comes(&mut self, index: usize) -> Result<(), Fault> {
        let frame = &self.talk.frames[index];
        let (operation, answer) = (frame.packet.row().operation, self.answer_to(index));
        let is_ready = !answer.is_some_and(|answer| rnr_timer(answer).is_some());
        let is_refused = answer.is_some_and(is_fatal);
        if is_refused && operation == Operation::Send {
            // What was wrong with the receive, no packet tells.
            self.is_over = true;
            return Ok(());
        }
        let carries = matches!(operation, Operation::Send | Operation::Write);
        let is_new = frame.packet.psn == self.expected && is_ready && !is_refused;
        if is_new {
            self.take(index);
        }
        let key = frame.packet.reth.rkey;
        let reth = Reth { rkey: self.told.get(&key).map_or(key, |buffer| buffer.key), ..frame.packet.reth };
        self.hear(Packet { reth, ..frame.packet.clone() });
        let ends = is_new && carries && frame.ends();
        self.fills_receive(frame, ends && (operation == Operation::Send || frame.packet.brings_immediate()))?;
        if ends && operation == Operation::Write {
            self.placed(frame)?;
        }
        Ok(())
    }

    /// What has to be there before a request comes: a receive for a SEND, bytes for a READ.
    fn take(&mut self, index: usize) {
        let frame = &self.talk.frames[index];
        let packet = &frame.packet;
        let is_read = packet.row().operation == Operation::ReadRequest;
        self.expected = self.expected.plus(if is_read { self.packets(packet.reth.length) } else { 1 });
        if is_read {
            let bytes = self.brought(index);
            if let Some(buffer) = self.told.get(&packet.reth.rkey) {
                buffer.fill(packet.reth.va, &bytes);
            }
            return;
        }
        if frame.begins() {
            self.message = Incoming { reth: packet.reth, bytes: Vec::new() };
        }
        self.message.bytes.extend_from_slice(&packet.payload);
        if (frame.begins() && packet.row().operation == Operation::Send) || packet.brings_immediate() {
            let buffer = self.buffer(1 << 12, Access::LOCAL_WRITE);
            let request = ReceiveRequest { wr_id: self.buffers as u64, sge: vec![buffer.piece()] };
            // If it is refused, nothing is received, and that is told.
            let _ = self.act(|qp, out| qp.post_receive(request, out));
            self.receive = Some(buffer);
        }
    }

    /// Whether the program is told of a message, once it is whole.
    fn fills_receive(&mut self, frame: &Frame, has_to: bool) -> Result<(), Fault> {
        let came = format!("{}: {} came", frame.name(), name(&frame.packet));
        let at = |is_it: fn(&Effect) -> bool| self.effects.iter().position(is_it);
        let told = at(|effect| matches!(effect, Effect::Received(_)));
        let sent = at(|effect| matches!(effect, Effect::Send(..)));
        let decided = self.decided();
        match (has_to, told) {
            (false, None) => return Ok(()),
            (false, Some(_)) => {
                return Err((
                    RECEIVE,
                    format!("{came}: nothing for the program. Yours tells it about a message.{decided}"),
                ))
            }
            (true, None) => {
                let yours = if sent.is_some() { "only the answer" } else { "nothing" };
                let has_to = "it should be answered, and the program should hear of a message";
                // A WRITE has to be placed before.
                let hole = if frame.packet.row().operation == Operation::Write { WRITE } else { RECEIVE };
                return Err((hole, format!("{came}; {has_to}. Yours: {yours}.{decided}")));
            }
            (true, Some(told)) if sent.is_some_and(|sent| sent > told) => {
                let said = "yours tells the program first, and only then sends the ACK. A program that ends now takes its ACK with it";
                return Err((RECEIVE, format!("{came}; {said}.")));
            }
            _ => {}
        }
        if let (Operation::Send, Some(buffer)) = (frame.packet.row().operation, self.receive.take()) {
            let (wanted, yours) = (&self.message.bytes, buffer.bytes(buffer.address, self.message.bytes.len()));
            if let Some(at) = difference(wanted, &yours) {
                let dump = differing("rdma_rxe", wanted, &yours, at, " of the program's buffer");
                return Err((PLACE, format!("{came}; afterwards the receive holds:\n{dump}")));
            }
            if !buffer.guards_stand() {
                return Err((PLACE, format!("{came}; yours has written outside the receive.")));
            }
        }
        Ok(())
    }

    /// Whether a WRITE stands where it has to.
    fn placed(&self, frame: &Frame) -> Result<(), Fault> {
        let Incoming { reth, bytes } = &self.message;
        let Some(buffer) = self.told.get(&reth.rkey) else { return Ok(()) };
        let yours = buffer.bytes(reth.va, bytes.len());
        let Some(at) = difference(bytes, &yours) else { return Ok(()) };
        let dump = differing("rdma_rxe", bytes, &yours, at, " of the program's buffer");
        let came = format!("{}: {} came", frame.name(), name(&frame.packet));
        Err((WRITE, format!("{came}; afterwards memory holds:\n{dump}")))
    }

    /// rdma_rxe answered: ours has done so already.
    pub(super) fn has_to_answer(&mut self, frame: &Frame) -> Result<(), Fault> {
        let hole = match self.asked(frame) {
            Some(Operation::Write) => WRITE,
            Some(Operation::ReadRequest) => READ,
            _ => RECEIVE,
        };
        self.is_over = is_fatal(frame);
        self.skip_unasked(frame.packet.psn);
        let Some(ours) = self.answers.pop_front() else {
            let (place, wanted, decided) = (frame.name(), name(&frame.packet), self.decided());
            return Err((hole, format!("{place}: rdma_rxe answered {wanted}. Yours: nothing.{decided}")));
        };
        // Which NAK it is, lesson 19 says.
        let is_refused = self.is_over && matches!(ours.aeth.verdict(), Syndrome::Nak(_));
        self.compare(frame, &ours).map_err(|said| (if is_refused { LATER } else { hole }, said))
    }

    /// An ACK that nobody has asked for is no fault: it says what the peer will hear anyway. So those before this PSN are left out.
    pub(super) fn skip_unasked(&mut self, psn: Psn) {
        let is_unasked = |ours: &Packet| {
            let is_ack = matches!(ours.aeth.verdict(), Syndrome::Ack { .. });
            ours.row().operation == Operation::Acknowledge && is_ack && ours.psn.since(psn) < 0
        };
        while self.answers.front().is_some_and(is_unasked) {
            self.answers.pop_front();
        }
    }

    /// What this accepts, refuses or brings. A gap that it tells of is no answer.
    fn asked(&self, answer: &Frame) -> Option<Operation> {
        if answer.packet.row().operation == Operation::ReadResponse {
            return Some(Operation::ReadRequest);
        }
        let is_its = |frame: &&Frame| frame.from == self.peer.address && frame.packet.psn == answer.packet.psn;
        let asks = self.talk.frames.iter().find(is_its).filter(|_| nak(answer) != Some(Nak::PsnSequence));
        asks.map(|asks| asks.packet.row().operation)
    }

    /// The first answer to a request that comes behind it.
    pub(super) fn answer_to(&self, index: usize) -> Option<&Frame<'_>> {
        let asks = &self.talk.frames[index];
        let is_it = |frame: &&Frame| {
            frame.from != asks.from && frame.packet.row().is_response() && frame.packet.psn == asks.packet.psn
        };
        self.talk.frames[index..].iter().find(is_it)
    }
}

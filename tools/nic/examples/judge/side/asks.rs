//! Our requests: the program posts what the recorded one posted, and is told what is done.

use super::{is_fatal, name, Fault, Posted, Side};
use crate::doorbell::{ACK, BYTES, PACKET, SEND};
use crate::dump::{difference, differing};
use crate::talk::Frame;
use nic::completion::Status;
use nic::memory::Access;
use nic::packet::Packet;
use nic::qp::Qp;
use nic::work::{Local, Remote, SendRequest, Work};
use roce::aeth::Syndrome;
use roce::opcode::Operation;

impl Side<'_> {
    /// rdma_rxe asked: the program has posted something, or time has passed without an answer.
    pub(super) fn has_to_ask(&mut self, index: usize) -> Result<(), Fault> {
        let frame = &self.talk.frames[index];
        if self.requests.is_empty() {
            self.effects.clear();
            if frame.begins() {
                self.post(index);
            }
        }
        let is_read = frame.packet.row().operation == Operation::ReadRequest;
        self.next = self.next.plus(if is_read { self.packets(frame.packet.reth.length) } else { 1 });
        let ours = self.requests.pop_front();
        let Some(ours) = ours.clone().filter(|ours| ours.psn == frame.packet.psn) else {
            let (wanted, yours) = (name(&frame.packet), ours.as_ref().map_or("nothing".to_owned(), name));
            let said = format!("{}: rdma_rxe sent {wanted}. Yours: {yours}.{}", frame.name(), self.decided());
            return Err((SEND, said));
        };
        self.compare(frame, &ours).map_err(|said| (PACKET, said))?;
        if self.talk.timeout > 0 && self.qp.deadline().is_none() {
            let said = format!(
                "{}: {} is sent, and no timer runs: who notices if no answer comes?",
                frame.name(),
                name(&ours)
            );
            return Err((SEND, said));
        }
        let told = self.completed.len();
        if told > self.answered {
            let said = format!("{}: the program hears that {told} requests are done; ", frame.name());
            return Err((SEND, format!("{said}answers to {} have come.", self.answered)));
        }
        Ok(())
    }

    /// The program posts the message that begins there.
    fn post(&mut self, index: usize) {
        let frame = &self.talk.frames[index];
        let (first, reth) = (frame.packet.psn, frame.packet.reth);
        let remote = Remote { address: reth.va, rkey: reth.rkey };
        let work = match frame.packet.row().operation {
            Operation::ReadRequest => Work::Read(remote),
            Operation::Write => Work::Write(remote),
            _ => Work::Send,
        };
        let (mut bytes, mut last) = (Vec::new(), &frame.packet);
        let mut psn = first;
        for other in self.talk.frames[index..].iter().filter(|other| other.from == self.me.address) {
            if other.packet.psn == psn && !other.packet.row().is_response() {
                bytes.extend_from_slice(&other.packet.payload);
                (last, psn) = (&other.packet, psn.plus(1));
                if other.ends() {
                    break;
                }
            }
        }
        let mut brings = Vec::new();
        let mut end = last.psn;
        if let Work::Read(_) = work {
            brings = self.brought(index);
            bytes = vec![0; reth.length as usize];
            end = first.plus(self.packets(reth.length) - 1);
        }
        let buffer = self.buffer(bytes.len(), Access::LOCAL_WRITE);
        buffer.fill(buffer.address, &bytes);
        let request = SendRequest {
            wr_id: self.posted.len() as u64,
            work,
            local: Local::SgList(vec![buffer.piece()]),
            length: bytes.len() as u32,
            immediate: last.brings_immediate().then_some(last.immediate),
            signaled: true,
            solicited: last.solicited,
            fence: false,
        };
        self.posted.push(Posted { last: end, work, buffer, brings });
        // If it is refused, nothing is sent, and that is told.
        let _ = self.act(|qp, out| qp.post_send(request, out));
        self.act(Qp::tick);
    }

    /// The bytes that have answered a READ.
    pub(super) fn brought(&self, index: usize) -> Vec<u8> {
        let request = &self.talk.frames[index].packet;
        let mut bytes = vec![0; request.reth.length as usize];
        for (at, answer) in self.responses(index) {
            if let Some(place) = bytes.get_mut(at..at + answer.payload.len()) {
                place.copy_from_slice(&answer.payload);
            }
        }
        bytes
    }

    /// The READ responses to a request, each with the place of its bytes.
    fn responses(&self, index: usize) -> impl Iterator<Item = (usize, &Packet)> {
        let (asks, mtu) = (&self.talk.frames[index], self.talk.mtu);
        let count = self.packets(asks.packet.reth.length) as i32;
        self.talk.frames[index..].iter().filter_map(move |frame| {
            let at = frame.packet.psn.since(asks.packet.psn);
            let is_one = frame.from != asks.from && frame.packet.row().operation == Operation::ReadResponse;
            (is_one && (0..count).contains(&at)).then(|| (at as usize * mtu as usize, &frame.packet))
        })
    }

    /// The peer has answered: what it answers is complete.
    pub(super) fn answer_comes(&mut self, frame: &Frame) -> Result<(), Fault> {
        self.hear(frame.packet.clone());
        if is_fatal(frame) {
            self.is_over = true;
            return Ok(());
        }
        let before = self.answered;
        while self.posted.get(self.answered).is_some_and(|posted| is_answered(posted, frame)) {
            self.answered += 1;
        }
        let ends_read = self.posted[before..self.answered].iter().any(|posted| matches!(posted.work, Work::Read(_)));
        let is_ack = frame.packet.row().operation == Operation::Acknowledge;
        let hole = if ends_read || !is_ack { BYTES } else { ACK };
        let came = format!("{}: {} came", frame.name(), name(&frame.packet));
        let (has, told, decided) = (self.answered, self.completed.len(), self.decided());
        if told < has {
            let work = self.posted[told].work;
            let wr_id = format!("wr_id {told}, a {work}");
            return Err((
                hole,
                format!("{came}; the program should hear that {wr_id}, is done. Yours: nothing.{decided}"),
            ));
        }
        if told > has {
            return Err((
                hole,
                format!("{came}; yours tells the program of {told} requests, but only {has} are done.{decided}"),
            ));
        }
        for (at, completion) in self.completed.iter().enumerate().skip(before) {
            if (completion.wr_id, completion.status) != (at as u64, Status::Success) {
                let (wr_id, status) = (completion.wr_id, completion.status.name());
                return Err((hole, format!("{came}; wr_id {at} is done. Yours: wr_id {wr_id}, {status}.{decided}")));
            }
        }
        for posted in &self.posted[before..self.answered] {
            let yours = posted.buffer.bytes(posted.buffer.address, posted.brings.len());
            if let Some(at) = difference(&posted.brings, &yours) {
                let dump = differing("rdma_rxe", &posted.brings, &yours, at, " of the program's buffer");
                return Err((BYTES, format!("{came}; the READ is done, and has brought:\n{dump}")));
            }
        }
        Ok(())
    }
}

/// Whether a posted request is done with this answer: all before a NAK is, and a READ with its last response.
fn is_answered(posted: &Posted, frame: &Frame) -> bool {
    let is_ack = matches!(frame.packet.aeth.verdict(), Syndrome::Ack { .. });
    let is_response = frame.packet.row().operation == Operation::ReadResponse;
    let psn = if is_ack || is_response { frame.packet.psn } else { frame.packet.psn.before() };
    match posted.work {
        Work::Read(_) => is_response && psn == posted.last,
        _ => psn.since(posted.last) >= 0,
    }
}

//! The requester: sends what is posted, keeps it until it is answered, and sends it again when no answer comes
//! (specification, volume 1, 9.7.2, 9.7.5.1.3 and 9.9.2; retries 9.9.2.1.1).
//!
//! It answers to: Acknowledge (ACK, RNR NAK, NAK), RDMA Read Response, Atomic Acknowledge. PSNs are given to a request when
//! its first packet goes out; three of them tell all there is to know:
//!
//! ```text
//!   ───── answered ─────┬───── sent, not answered ─────┬──── sent before, to be sent again ────┬──── new ────
//!                    unacked                          send                                    next
//! ```
//!
//! `send` and `next` are one but after a loss: then `send` goes back to `unacked` ("go back N").

use super::{name, packets, Attributes, Qp, State};
use crate::completion::Status;
use crate::outside::{Effect, Outside};
use crate::packet::{code, syndrome, Packet};
use crate::psn::Psn;
use crate::work::{Local, SendRequest, Work};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use wire::aeth::Syndrome;
use wire::opcode::{Operation, Part};

/// So many packets may be under way without an answer: what the peer's socket has room for, even in a container.
const WINDOW: i32 = 64;
/// The number of RNR retries that means "for ever".
const FOR_EVER: u8 = 7;

/// A request of which packets have been sent (a "work queue element"), with its first and last PSN.
#[derive(Debug)]
pub(super) struct Wqe {
    pub request: SendRequest,
    pub first: Psn,
    pub last: Psn,
}

#[derive(Debug, Default)]
pub(super) struct Requester {
    /// Requests that have their PSNs, oldest first.
    begun: VecDeque<Wqe>,
    /// Requests that have none yet.
    posted: VecDeque<SendRequest>,
    unacked: Psn,
    send: Psn,
    next: Psn,
    /// Attempts left until something is answered.
    retries: u8,
    rnr_retries: u8,
    /// When to take what was sent for lost.
    timer: Option<Instant>,
    /// Nothing is sent before: the peer had no receive posted.
    rnr_until: Option<Instant>,
    /// It has gone back since the last progress: more signs of the same loss are no news.
    went_back: bool,
}

impl Requester {
    pub(super) fn start(&mut self, attributes: &Attributes) {
        let psn = attributes.sq_psn;
        (self.unacked, self.send, self.next) = (psn, psn, psn);
        (self.retries, self.rnr_retries) = (attributes.retries, attributes.rnr_retries);
    }

    pub(super) fn post(&mut self, request: SendRequest) {
        self.posted.push_back(request);
    }

    /// Requests that are not complete.
    pub(super) fn waiting(&self) -> usize {
        self.begun.len() + self.posted.len()
    }

    pub(super) fn has_begun(&self) -> bool {
        !self.begun.is_empty()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.timer.into_iter().chain(self.rnr_until).min()
    }

    /// Everything that is not complete, oldest first; nothing will be sent any more.
    pub(super) fn take_all(&mut self) -> Vec<SendRequest> {
        (self.timer, self.rnr_until) = (None, None);
        let begun = self.begun.drain(..).map(|wqe| wqe.request);
        begun.chain(self.posted.drain(..)).collect()
    }

    /// Sends all from the oldest unanswered packet on again. Signs of one loss do it once.
    fn go_back(&mut self) {
        if !self.went_back {
            self.went_back = true;
            self.send = self.unacked;
        }
    }
}

impl Qp {
    /// Sends what the state, the window and the limits allow.
    pub(super) fn transmit(&mut self, out: &mut Outside) {
        loop {
            let requester = &self.requester;
            let may_send = matches!(self.state, State::Rts | State::Sqd) && requester.rnr_until.is_none();
            if !may_send || requester.send.since(requester.unacked) >= WINDOW {
                return;
            }
            let at = requester.begun.iter().position(|wqe| wqe.last.since(requester.send) >= 0);
            let Some(at) = at.or_else(|| self.begin(out)) else { return };
            let (wqe, psn) = (&self.requester.begun[at], self.requester.send);
            match self.packet_with(wqe, psn, out) {
                Ok((packet, next)) => {
                    let again = psn.since(self.requester.next) < 0;
                    out.say(|| {
                        format!("requester: PSN {psn} {}{}", packet.row().name, if again { ", again" } else { "" })
                    });
                    out.push(Effect::Send(packet));
                    self.requester.send = next;
                    if next.since(self.requester.next) > 0 {
                        self.requester.next = next;
                    }
                    if self.requester.timer.is_none() {
                        self.start_timer(out);
                    }
                }
                // Its turn to fail comes when all before it is answered.
                Err(status) if at == 0 => return self.fail(status, out),
                Err(_) => return,
            }
        }
    }

    /// Gives the next posted request its PSNs, if it may begin now, and says where it stands.
    fn begin(&mut self, out: &mut Outside) -> Option<usize> {
        let requester = &mut self.requester;
        let request = requester.posted.front()?;
        let under_way = requester.begun.iter().filter(|wqe| wqe.request.work.wants_answer()).count();
        let limit = usize::from(self.attributes.max_rd_atomic);
        if self.state == State::Sqd || (request.fence && under_way > 0) {
            return None;
        }
        if request.work.wants_answer() && under_way >= limit {
            if limit == 0 && requester.begun.is_empty() {
                out.say(|| format!("requester: no {} may be under way: max_rd_atomic is 0", name(request.work)));
                self.fail(Status::LocQpOpErr, out);
            }
            return None;
        }
        let count = if request.work.is_atomic() { 1 } else { packets(request.length, self.attributes.mtu) };
        let (first, last) = (requester.next, requester.next.plus(count - 1));
        if last.since(requester.unacked) < 0 {
            return None; // Half of the circle is under way.
        }
        let request = requester.posted.pop_front()?;
        requester.begun.push_back(Wqe { request, first, last });
        Some(requester.begun.len() - 1)
    }

    fn start_timer(&mut self, out: &Outside) {
        self.requester.timer = acknowledge_timeout(self.attributes.timeout).map(|time| out.now + time);
    }

    /// What is due: the end of a wait for the peer's receive, or for an answer.
    pub(super) fn timers(&mut self, out: &mut Outside) {
        let requester = &mut self.requester;
        if requester.rnr_until.is_some_and(|time| time <= out.now) {
            requester.rnr_until = None;
        }
        if requester.timer.is_some_and(|time| time <= out.now) {
            let (left, unacked) = (requester.retries, requester.unacked);
            out.say(|| format!("requester: no answer to PSN {unacked} in time, {left} retries left"));
            requester.timer = None;
            requester.went_back = false;
            self.try_again(out);
        }
    }

    /// Goes back, if an attempt is left.
    fn try_again(&mut self, out: &mut Outside) {
        if self.requester.retries == 0 {
            return self.fail(Status::RetryExcErr, out);
        }
        self.requester.retries -= 1;
        self.requester.go_back();
    }

    /// Something was answered: attempts and timer begin anew.
    fn progress(&mut self, out: &Outside) {
        let requester = &mut self.requester;
        (requester.retries, requester.rnr_retries) = (self.attributes.retries, self.attributes.rnr_retries);
        (requester.went_back, requester.timer) = (false, None);
        if requester.send.since(requester.unacked) < 0 {
            requester.send = requester.unacked;
        }
        if requester.next != requester.unacked {
            self.start_timer(out);
        }
    }

    /// Takes an answer.
    pub(super) fn answer(&mut self, packet: Packet, out: &mut Outside) {
        let requester = &self.requester;
        if packet.psn.since(requester.unacked) < 0 || packet.psn.since(requester.next) >= 0 {
            out.say(|| format!("requester: {} of PSN {}: an old one", packet.row().name, packet.psn));
            return;
        }
        let before = packet.psn.before();
        match (packet.opcode, Syndrome::from(packet.syndrome)) {
            (code::ACKNOWLEDGE, Syndrome::Ack { .. }) => self.acknowledged(packet.psn, out),
            (code::ACKNOWLEDGE, Syndrome::RnrNak { timer_us }) => {
                self.acknowledged(before, out);
                self.not_ready(packet.psn, Duration::from_micros(timer_us.into()), out);
            }
            (code::ACKNOWLEDGE, Syndrome::Nak(_)) => {
                self.acknowledged(before, out);
                out.say(|| format!("requester: PSN {}: {}", packet.psn, Syndrome::from(packet.syndrome)));
                match packet.syndrome {
                    syndrome::PSN_SEQUENCE_ERROR => {
                        self.requester.went_back = false;
                        self.try_again(out);
                    }
                    _ if self.requester.unacked != packet.psn => {} // An answer before it was lost: that comes first.
                    syndrome::INVALID_REQUEST => self.fail(Status::RemInvReqErr, out),
                    syndrome::REMOTE_ACCESS_ERROR => self.fail(Status::RemAccessErr, out),
                    _ => self.fail(Status::RemOpErr, out),
                }
            }
            (code::ACKNOWLEDGE, Syndrome::Reserved(_)) => {}
            _ => self.bytes(packet, out),
        }
        self.tell_if_drained(out);
        self.transmit(out);
    }

    /// All up to this PSN has arrived. But a READ's or atomic's answer brings bytes, and one that did not come was lost.
    fn acknowledged(&mut self, psn: Psn, out: &mut Outside) {
        let before = self.requester.unacked;
        while let Some(front) = self.requester.begun.front().filter(|wqe| psn.since(wqe.first) >= 0) {
            if front.request.work.wants_answer() {
                out.say(|| format!("requester: the answer to PSN {} was lost", self.requester.unacked));
                self.requester.go_back();
                break;
            }
            if psn.since(front.last) < 0 {
                self.requester.unacked = psn.plus(1);
                break;
            }
            self.complete(out);
        }
        if self.requester.unacked != before {
            self.progress(out);
        }
    }

    /// The oldest request is done.
    fn complete(&mut self, out: &mut Outside) {
        if let Some(wqe) = self.requester.begun.pop_front() {
            self.requester.unacked = wqe.last.plus(1);
            out.say(|| format!("requester: PSN {}: {} complete", wqe.last, name(wqe.request.work)));
            self.sent(&wqe.request, Status::Success, out);
        }
    }

    /// The peer had no receive posted for the packet with this PSN.
    fn not_ready(&mut self, psn: Psn, wait: Duration, out: &mut Outside) {
        let left = self.requester.rnr_retries;
        if self.requester.unacked != psn {
            return;
        }
        if self.attributes.rnr_retries != FOR_EVER {
            if left == 0 {
                return self.fail(Status::RnrRetryExcErr, out);
            }
            self.requester.rnr_retries -= 1;
        }
        let left = if self.attributes.rnr_retries == FOR_EVER { "any number of".into() } else { left.to_string() };
        out.say(|| format!("requester: PSN {psn}: no receive was posted; again in {wait:?}, {left} retries left"));
        (self.requester.send, self.requester.timer) = (psn, None);
        self.requester.rnr_until = Some(out.now + wait);
    }

    /// Takes the bytes of a READ's or atomic's answer.
    fn bytes(&mut self, packet: Packet, out: &mut Outside) {
        if packet.psn != self.requester.unacked {
            self.acknowledged(packet.psn.before(), out);
        }
        let psn = packet.psn;
        let Some(wqe) = self.requester.begun.front().filter(|_| psn == self.requester.unacked) else { return };
        let offset = psn.since(wqe.first) as u32 * self.attributes.mtu;
        let expected =
            if wqe.request.work.is_atomic() { 0 } else { self.attributes.mtu.min(wqe.request.length - offset) };
        let fits = match wqe.request.work {
            Work::Read(_) => is_part_of_read(&packet, psn == wqe.first, psn == wqe.last),
            work => work.is_atomic() && packet.opcode == code::ATOMIC_ACKNOWLEDGE,
        };
        let is_ack = matches!(Syndrome::from(packet.syndrome), Syndrome::Ack { .. });
        let is_answer = fits && is_ack && packet.payload.len() == expected as usize;
        if !is_answer {
            out.say(|| format!("requester: PSN {psn}: {} is no answer to it", packet.row().name));
            return self.fail(Status::BadRespErr, out);
        }
        let number = packet.original.to_ne_bytes();
        let bytes = if wqe.request.work.is_atomic() { &number[..] } else { &packet.payload };
        let Local::Pieces(pieces) = &wqe.request.local else { return };
        if let Err(refusal) = out.memory.scatter(self.settings.domain, pieces, offset, bytes) {
            out.say(|| format!("requester: PSN {psn}: its own memory: {refusal}"));
            return self.fail(Status::LocProtErr, out);
        }
        let count = bytes.len();
        out.say(|| format!("requester: PSN {psn}: {count} bytes placed at offset {offset}"));
        if psn == wqe.last {
            self.complete(out);
        } else {
            self.requester.unacked = psn.plus(1);
        }
        self.progress(out);
    }

    /// The oldest request fails, and with it the queue pair.
    fn fail(&mut self, status: Status, out: &mut Outside) {
        let mut requests = self.requester.take_all().into_iter();
        if let Some(cause) = requests.next() {
            out.say(|| format!("requester: {} fails: {}", name(cause.work), status.name()));
            self.sent(&cause, status, out);
        }
        requests.for_each(|request| self.requester.post(request));
        self.enter(State::Err, out);
    }
}

/// Whether a packet can be the READ response in this place. In the middle of the request another message may begin: it answers
/// a READ of the rest. Where it ends, the message ends, too.
fn is_part_of_read(packet: &Packet, is_first: bool, is_last: bool) -> bool {
    let (begins, ends) = match packet.row().part {
        Part::First => (true, false),
        Part::Middle => (false, false),
        Part::Last => (false, true),
        Part::Only => (true, true),
    };
    packet.row().operation == Operation::ReadResponse && ends == is_last && (begins || !is_first)
}

/// 4.096 µs × 2^code; 0 is for ever.
fn acknowledge_timeout(code: u8) -> Option<Duration> {
    (code != 0).then(|| Duration::from_nanos(4096 << code.min(31)))
}

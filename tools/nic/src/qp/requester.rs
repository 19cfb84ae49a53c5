//! The requester sends what's posted, keeps it until it's answered, and sends it again when no answer comes (specification,
//! volume 1, 9.7; time-outs and retries 9.7.6.1.3).
//!
//! A request gets its PSNs when its first packet goes out. Three PSNs are all there is to remember:
//!
//! ```text
//!   ───── answered ─────┬───── sent, not answered ─────┬──── sent before, to be sent again ────┬──── new ────
//!                    unacked                          send                                    next
//! ```
//!
//! `send` and `next` are equal as long as nothing is lost. After a loss, `send` goes back to `unacked`, which is called
//! go-back-N.

use super::segment::segment;
use super::{packets, Attributes, Broken, State, View};
use crate::completion::Status;
use crate::congestion::pace::Pace;
use crate::fact::Fact;
use crate::outside::{Ctx, Effect};
use crate::packet::Packet;
use crate::psn::Psn;
use crate::time::Time;
use crate::work::{SendRequest, Work};
use std::collections::VecDeque;
use std::time::Duration;

/// How many packets may be under way without an answer. The peer's socket has room for as many, even in a container.
const WINDOW: i32 = 64;
/// The same on a link with a rate, where it's what a fast link holds. A NIC has no such limit; it sends as long as it has
/// something to send.
const PACED_WINDOW: i32 = 4096;

/// A request that has begun to be sent (a "work queue element"), with its first and last PSN.
#[derive(Debug)]
pub(super) struct Wqe {
    pub request: SendRequest,
    pub first: Psn,
    pub last: Psn,
}

#[derive(Debug, Default)]
pub(super) struct Requester {
    /// Requests that have their PSNs, oldest first.
    pub(super) begun: VecDeque<Wqe>,
    /// Requests that haven't got any yet.
    pub(super) posted: VecDeque<SendRequest>,
    pub(super) unacked: Psn,
    pub(super) send: Psn,
    pub(super) next: Psn,
    /// How many attempts are left. Any answer restores them.
    retries: u8,
    pub(super) rnr_retries: u8,
    /// When to consider what was sent lost.
    pub(super) timer: Option<Time>,
    /// Nothing is sent before this time, because the peer had no receive posted.
    pub(super) rnr_until: Option<Time>,
    /// When it may send, considering the rate of the link and what it has heard of congestion.
    pub(super) pace: Pace,
    /// It has gone back since the last answer, so further signs of the same loss mean nothing new.
    pub(super) went_back: bool,
}

/// Posting and sending.
impl Requester {
    pub(super) fn start(&mut self, attributes: &Attributes) {
        let psn = attributes.sq_psn;
        self.unacked = psn;
        self.send = psn;
        self.next = psn;
        self.retries = attributes.retries;
        self.rnr_retries = attributes.rnr_retries;
    }

    pub(super) fn post(&mut self, request: SendRequest) {
        self.posted.push_back(request);
    }

    /// How many requests aren't complete.
    pub(super) fn waiting(&self) -> usize {
        self.begun.len() + self.posted.len()
    }

    /// Whether there's more to send right away. With a reliable service, the window and the answers decide that.
    pub(super) fn is_busy(&self, qp: &View) -> bool {
        let ready = if qp.state == State::Rts { self.waiting() } else { self.begun.len() };
        !qp.service.is_reliable() && self.may_send(qp) && ready > 0
    }

    pub(super) fn has_begun(&self) -> bool {
        !self.begun.is_empty()
    }

    /// Takes out everything that isn't complete, oldest first, so nothing will be sent any more.
    pub(super) fn take_all(&mut self) -> Vec<SendRequest> {
        self.timer = None;
        self.rnr_until = None;
        self.pace.waits_until = None;
        let begun = self.begun.drain(..).map(|wqe| wqe.request);
        begun.chain(self.posted.drain(..)).collect()
    }

    /// Sends what the state, the window and the limits allow.
    pub(super) fn transmit(&mut self, qp: &View, ctx: &mut Ctx) -> Result<(), Broken> {
        self.pace.waits_until = None;
        for _ in 0..WINDOW {
            if !self.may_send(qp) || self.is_window_full(ctx) {
                return Ok(());
            }
            self.do_local(qp, ctx)?;
            let Some(at) = self.wqe_to_send(qp, ctx)? else { return Ok(()) };
            if qp.has_to_wait(&mut self.pace, ctx) {
                // If switches wait for each other, a pause never ends. So the time for an answer keeps running.
                if qp.is_paused(ctx) && self.timer.is_none() && self.next != self.unacked {
                    self.start_timer(qp, ctx);
                }
                return Ok(());
            }
            match segment(&self.begun[at], self.send, qp, ctx) {
                Ok((packet, next)) => {
                    qp.keep_pace(&mut self.pace, &packet, ctx);
                    self.send(at, packet, next, qp, ctx);
                }
                Err(status) if at == 0 => return Err(self.fail(status, qp, ctx)),
                // It has to fail, but not before everything ahead of it is answered.
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    fn may_send(&self, qp: &View) -> bool {
        matches!(qp.state, State::Rts | State::Sqd) && self.rnr_until.is_none() && self.pace.waits_until.is_none()
    }

    fn is_window_full(&self, ctx: &Ctx) -> bool {
        let window = if ctx.link.is_some() { PACED_WINDOW } else { WINDOW };
        self.send.since(self.unacked) >= window
    }

    /// The position of the request whose packet is sent next: one that has begun, or else the first one posted, if it may begin.
    fn wqe_to_send(&mut self, qp: &View, ctx: &mut Ctx) -> Result<Option<usize>, Broken> {
        let begun = self.begun.iter().position(|wqe| wqe.last.since(self.send) >= 0);
        let Some(request) = self.posted.front().filter(|_| begun.is_none()) else { return Ok(begun) };
        if !self.may_begin(request, qp) {
            return Ok(None);
        }
        if request.work.wants_response() && qp.attributes.max_rd_atomic == 0 {
            ctx.say(|| Fact::new("unposted").with("work", request.work));
            return Err(self.fail(Status::LocQpOpErr, qp, ctx));
        }
        let last = self.last_psn(request, qp);
        self.begun.extend(self.posted.pop_front().map(|request| Wqe { request, first: self.next, last }));
        Ok(Some(self.begun.len() - 1))
    }

    /// Whether this request may begin. If the queue pair allows none of its kind at all, it may begin once everything before it
    /// is answered, so that it can fail instead of waiting for ever.
    fn may_begin(&self, request: &SendRequest, qp: &View) -> bool {
        let most = usize::from(qp.attributes.max_rd_atomic);
        let under_way = self.begun.iter().filter(|wqe| wqe.request.work.wants_response()).count();
        let is_sent = request.work.is_offered_by(qp.service) && !request.work.is_local();
        let has_room = under_way < most || (most == 0 && self.begun.is_empty());
        let is_fenced = request.fence && under_way > 0;
        // More than half of the circle would be under way.
        let is_too_far = self.last_psn(request, qp).since(self.unacked) < 0;
        qp.state != State::Sqd && is_sent && !is_fenced && !is_too_far && (has_room || !request.work.wants_response())
    }

    /// The last PSN of a request that begins now. A READ uses up one for each packet of its response.
    fn last_psn(&self, request: &SendRequest, qp: &View) -> Psn {
        let count = if request.work.is_one_packet() { 1 } else { packets(request.length, qp.attributes.mtu) };
        self.next.plus(count - 1)
    }

    /// Sends a packet of the request at this position. The packet after it has the PSN `next`.
    fn send(&mut self, at: usize, packet: Packet, next: Psn, qp: &View, ctx: &mut Ctx) {
        let (psn, name) = (packet.psn, packet.row().name);
        let again = (psn.since(self.next) < 0).then_some("again");
        ctx.say(|| Fact::new("sent").with("psn", psn).with("packet", name).maybe("again", again));
        let request = &self.begun[at].request;
        match request.work {
            // A datagram is a single packet. If it's too long for one, nothing is sent, and that isn't an error (C10-93.1.1).
            Work::Datagram(_) if request.length > qp.attributes.mtu => {}
            Work::Datagram(to) => ctx.push(Effect::Send(to.address, packet)),
            _ => qp.send(packet, ctx),
        }
        self.send = next;
        if next.since(self.next) > 0 {
            self.next = next;
        }
        if !qp.service.is_reliable() {
            self.count_as_answered(next, qp, ctx);
        } else if self.timer.is_none() {
            self.start_timer(qp, ctx);
        }
    }

    /// An unreliable service has no answers, so a request is complete when its last packet has gone out (9.8).
    fn count_as_answered(&mut self, next: Psn, qp: &View, ctx: &mut Ctx) {
        self.unacked = next;
        if self.begun.front().is_some_and(|wqe| next == wqe.last.plus(1)) {
            self.complete_oldest(qp, ctx);
        }
    }

    /// The oldest request fails, and with it the queue pair.
    pub(super) fn fail(&mut self, status: Status, qp: &View, ctx: &mut Ctx) -> Broken {
        let begun = self.begun.pop_front().map(|wqe| wqe.request);
        if let Some(cause) = begun.or_else(|| self.posted.pop_front()) {
            ctx.say(|| Fact::new("fails").with("work", cause.work).with("status", status.name()));
            qp.complete_send(&cause, status, ctx);
        }
        Broken
    }
}

/// Time, and trying again.
impl Requester {
    pub(super) fn deadline(&self) -> Option<Time> {
        self.timer.into_iter().chain(self.rnr_until).chain(self.pace.waits_until).min()
    }

    fn start_timer(&mut self, qp: &View, ctx: &Ctx) {
        self.timer = acknowledge_timeout(qp.attributes.timeout).map(|time| ctx.now + time);
    }

    /// Handles what's due: the end of the wait for the peer's receive, or for an answer.
    pub(super) fn timers(&mut self, qp: &View, ctx: &mut Ctx) -> Result<(), Broken> {
        if self.rnr_until.is_some_and(|time| time <= ctx.now) {
            self.rnr_until = None;
        }
        if self.timer.is_some_and(|time| time <= ctx.now) {
            let (left, unacked) = (self.retries, self.unacked);
            ctx.say(|| Fact::new("late").with("psn", unacked).with("left", left));
            self.timer = None;
            self.went_back = false;
            self.try_again(qp, ctx)?;
        }
        Ok(())
    }

    /// Goes back, if an attempt is left.
    pub(super) fn try_again(&mut self, qp: &View, ctx: &mut Ctx) -> Result<(), Broken> {
        if self.retries == 0 {
            return Err(self.fail(Status::RetryExcErr, qp, ctx));
        }
        self.retries -= 1;
        self.go_back();
        Ok(())
    }

    /// Sends everything from the oldest unanswered packet on again, but only once for all the signs of a single loss.
    pub(super) fn go_back(&mut self) {
        if !self.went_back {
            self.went_back = true;
            self.send = self.unacked;
        }
    }

    /// Something was answered, so the count of attempts and the timer start afresh.
    pub(super) fn progress(&mut self, qp: &View, ctx: &Ctx) {
        self.retries = qp.attributes.retries;
        self.rnr_retries = qp.attributes.rnr_retries;
        self.went_back = false;
        self.timer = None;
        if self.send.since(self.unacked) < 0 {
            self.send = self.unacked;
        }
        if self.next != self.unacked {
            self.start_timer(qp, ctx);
        }
    }
}

/// 4.096 µs × 2^code. Code 0 means for ever.
fn acknowledge_timeout(code: u8) -> Option<Duration> {
    (code != 0).then(|| Duration::from_nanos(4096 << code.min(31)))
}

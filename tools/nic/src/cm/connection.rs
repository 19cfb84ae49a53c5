//! One connection: its phases, and what each message of the peer's does in them (specification, volume 1, 12.9; the figures with
//! the active and the passive side).
//!
//! It answers a REP with an RTU (which is left to the program's library), a DREQ with a DREP, a repeated REQ with an MRA or a
//! REP, and a repeated REP with an RTU.

use super::message::{Mad, Space};
use super::{CmEffect, Event, EventKind, Param};
use crate::errno::Errno;
use crate::fact::Fact;
use crate::memory::Access;
use crate::psn::Psn;
use crate::qp::Attributes;
use crate::time::Time;
use roce::cm::{mra, rej, rep, req, Kind, LOCAL_ID};
use roce::field::Field;
use std::net::IpAddr;
use std::time::Duration;

/// How long a side waits for an answer, 4.096 µs × 2^20, and how often it asks. Linux puts the same numbers into a REQ.
pub(super) const RESPONSE_TIMEOUT: u8 = 20;
pub(super) const MAX_RETRIES: u32 = 15;
/// How long an MRA asks the peer to wait for a program that's slow: 4.096 µs × 2^24, as with Linux.
const MRA_TIMEOUT: u8 = 24;
/// How long ids and queue pair numbers stay out of use after the end, since packets of the old connection may still be on their
/// way.
const TIME_WAIT: Duration = Duration::from_millis(2_200);

/// How far a connection has come, in the specification's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing has been said yet, or everything is over.
    Idle,
    /// Active side: we've asked.
    ReqSent,
    /// Active side: the peer has agreed, and our program has to say RTU.
    RepReceived,
    /// Passive side: the peer has asked, and our program has to accept or reject.
    ReqReceived,
    /// Passive side: we've agreed, and wait for the RTU.
    RepSent,
    /// Both know that both are ready.
    Established,
    /// We have said goodbye.
    DreqSent,
    /// The peer has said goodbye, and our program has to answer.
    DreqReceived,
    /// It's over, and its numbers rest.
    TimeWait,
    /// Client of datagrams: we've asked for the queue pair.
    SidrReqSent,
    /// Server of datagrams: the peer has asked, and our program has to accept or reject.
    SidrReqReceived,
    /// The queue pair is known. There's nothing more to do, because datagrams need no connection.
    SidrAnswered,
}

/// A message that wants an answer.
#[derive(Clone, Debug)]
struct Question {
    again_at: Time,
    attempts_left: u32,
    mad: Mad,
}

/// A connection, as one side sees it.
#[derive(Debug)]
pub struct Connection {
    /// The program's id, or None after it was destroyed.
    pub owner: Option<u64>,
    pub phase: Phase,
    pub peer: IpAddr,
    /// The port space in which the peer listens, if it's asked for a connection.
    pub space: Space,
    /// At the server, the client's port.
    pub peer_port: u16,
    /// Our number for it (LocalCommID).
    pub local: u32,
    /// The peer's number for it.
    pub remote: u32,
    pub(super) transaction_id: u64,
    pub qpn: u32,
    /// What our queue pair needs to know about the peer's, as far as the messages have said it.
    pub attributes: Attributes,
    pub param: Param,
    /// How many READs and atomics the peer wants to have under way. If it wants none, it gets no right to them, whatever we
    /// accept.
    pub(super) peer_reads: u8,
    /// What answers a SIDR_REQ, as far as that's known.
    pub(super) answer: Option<Mad>,
    question: Option<Question>,
    rest_until: Option<Time>,
}

impl Connection {
    pub(super) fn new(owner: Option<u64>, peer: IpAddr, local: u32, psn: Psn, transaction_id: u64) -> Connection {
        Connection {
            owner,
            phase: Phase::Idle,
            peer,
            space: Space::Tcp,
            peer_port: 0,
            local,
            remote: 0,
            transaction_id,
            qpn: 0,
            attributes: Attributes {
                peer: Some(peer),
                mtu: 1024,
                rq_psn: psn,
                timeout: super::ACK_TIMEOUT,
                ..Attributes::default()
            },
            param: Param::default(),
            peer_reads: 0,
            answer: None,
            question: None,
            rest_until: None,
        }
    }

    /// Whether it's being made, or is up. Only then is there anything to know about it.
    pub fn is_alive(&self) -> bool {
        use Phase::*;
        matches!(self.phase, ReqSent | RepReceived | ReqReceived | RepSent | Established)
    }

    /// What both sides have agreed on so far, for the queue pair.
    pub fn attributes(&self) -> Attributes {
        let reads = if self.peer_reads > 0 { Access::REMOTE_READ.0 | Access::REMOTE_ATOMIC.0 } else { 0 };
        Attributes {
            access: Access(Access::REMOTE_WRITE.0 | reads),
            retries: self.param.retries,
            max_rd_atomic: self.param.initiator_depth,
            max_dest_rd_atomic: self.param.responder_resources,
            ..self.attributes
        }
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.question.as_ref().map(|question| question.again_at).into_iter().chain(self.rest_until).min()
    }

    /// Sends a message, and repeats it until [`Connection::enter`].
    pub(super) fn ask(&mut self, phase: Phase, mad: Mad, now: Time, out: &mut Vec<CmEffect>) {
        self.enter(phase, now);
        out.push(CmEffect::Send(self.peer, mad.clone()));
        self.question = Some(Question { again_at: now + response_timeout(), attempts_left: MAX_RETRIES, mad });
    }

    /// Sends a message that wants no answer.
    pub(super) fn tell(&self, mad: Mad, out: &mut Vec<CmEffect>) {
        out.push(CmEffect::Send(self.peer, mad));
    }

    pub(super) fn enter(&mut self, phase: Phase, now: Time) {
        self.phase = phase;
        self.question = None;
        self.rest_until = (phase == Phase::TimeWait).then(|| now + TIME_WAIT);
    }

    /// A message to the peer that has both ids.
    pub(super) fn message(&self, kind: Kind) -> Mad {
        Mad::between(kind, self.transaction_id, self.local, self.remote)
    }

    pub(super) fn receive(&mut self, mad: &Mad, now: Time, out: &mut Vec<CmEffect>) {
        match (mad.kind(), self.phase) {
            (Kind::ConnectReply, Phase::ReqSent) => {
                self.enter(Phase::RepReceived, now);
                self.learn(mad);
                self.report(EventKind::ConnectResponse, 0, mad.private_data(), out);
            }
            // Our RTU was lost.
            (Kind::ConnectReply, Phase::Established) => self.tell(self.message(Kind::ReadyToUse), out),
            (Kind::ReadyToUse, Phase::RepSent) => {
                self.turn(Phase::Established, EventKind::Established, now, out);
            }
            // The peer has our question, and needs longer: it says how long.
            (Kind::MsgRcptAck, Phase::ReqSent | Phase::RepSent) => {
                if let Some(question) = &mut self.question {
                    question.again_at = now + Duration::from_nanos(4096 << (mad.get(&mra::SERVICE_TIMEOUT) & 0x1f));
                }
            }
            // The peer doesn't wait for us any more. Our program hasn't answered yet, so it hears of that when it does.
            (Kind::ConnectReject, Phase::ReqReceived) => self.enter(Phase::Idle, now),
            (Kind::ConnectReject, Phase::ReqSent | Phase::RepSent | Phase::RepReceived | Phase::Established) => {
                let is_made = self.phase == Phase::Established;
                self.enter(if is_made { Phase::TimeWait } else { Phase::Idle }, now);
                self.report(EventKind::Rejected, mad.get(&rej::REASON) as i32, mad.private_data(), out);
            }
            // Our REP is on its way, or our program hasn't decided yet.
            (Kind::ConnectRequest, Phase::RepSent) => {
                if let Some(question) = &self.question {
                    self.tell(question.mad.clone(), out);
                }
            }
            (Kind::ConnectRequest, Phase::ReqReceived) => {
                let wait = self.message(Kind::MsgRcptAck).with(&mra::SERVICE_TIMEOUT, MRA_TIMEOUT.into());
                self.tell(wait, out);
            }
            (Kind::DisconnectRequest, Phase::Established | Phase::RepSent | Phase::RepReceived) => {
                self.transaction_id = mad.transaction_id();
                self.turn(Phase::DreqReceived, EventKind::Disconnected, now, out);
            }
            // Either both have said goodbye at once and each answers the other, or our DREP was lost. The peer may ask again even
            // after our rest is over, because whoever says goodbye gets an answer.
            (Kind::DisconnectRequest, Phase::DreqSent | Phase::TimeWait | Phase::Idle) => {
                self.transaction_id = mad.transaction_id();
                self.tell(self.message(Kind::DisconnectReply), out);
                if self.phase == Phase::DreqSent {
                    self.turn(Phase::TimeWait, EventKind::Disconnected, now, out);
                }
            }
            (Kind::DisconnectReply, Phase::DreqSent) => {
                self.turn(Phase::TimeWait, EventKind::Disconnected, now, out);
            }
            (kind, phase) => {
                let local = self.local;
                out.push(CmEffect::Say(
                    Fact::new("cm_unexpected")
                        .with("connection", format_args!("{local:#x}"))
                        .with("message", kind.short())
                        .with("state", format_args!("{phase:?}")),
                ));
            }
        }
    }

    /// Handles what's due: a question that must be asked again or given up, or the end of the rest.
    pub(super) fn tick(&mut self, now: Time, out: &mut Vec<CmEffect>) {
        if self.rest_until.is_some_and(|time| time <= now) {
            self.turn(Phase::Idle, EventKind::TimewaitExit, now, out);
        }
        let (local, phase) = (self.local, self.phase);
        let Some(question) = self.question.as_mut().filter(|question| question.again_at <= now) else { return };
        let kind = question.mad.kind().short();
        if question.attempts_left > 0 {
            question.attempts_left -= 1;
            question.again_at = now + response_timeout();
            let left = question.attempts_left;
            out.push(CmEffect::Say(
                Fact::new("cm_again")
                    .with("connection", format_args!("{local:#x}"))
                    .with("message", kind)
                    .with("left", left),
            ));
            out.push(CmEffect::Send(self.peer, question.mad.clone()));
            return;
        }
        out.push(CmEffect::Say(
            Fact::new("cm_gives_up").with("connection", format_args!("{local:#x}")).with("message", kind),
        ));
        let (next, told) = match phase {
            Phase::DreqSent => (Phase::TimeWait, EventKind::Disconnected),
            // The question was a REQ, a REP or a SIDR_REQ.
            _ => (Phase::Idle, EventKind::Unreachable),
        };
        self.enter(next, now);
        self.report(told, -i32::from(Errno::ETIMEDOUT), &[], out);
    }

    /// Learns what a REQ or a REP says about the peer. How many READs it's willing to serve is how many we may ask for, and the
    /// other way round.
    pub(super) fn learn(&mut self, mad: &Mad) {
        let is_reply = mad.kind() == Kind::ConnectReply;
        let get = |in_req: &Field, in_rep: &Field| mad.get(if is_reply { in_rep } else { in_req });
        self.remote = mad.get(&LOCAL_ID) as u32;
        if !is_reply {
            // Answers have the same traffic class as the questions.
            self.attributes.class = mad.get(&req::PRIMARY_TRAFFIC_CLASS) as u8;
        }
        self.attributes.dest_qp = get(&req::LOCAL_QPN, &rep::LOCAL_QPN) as u32;
        self.attributes.sq_psn = Psn::new(get(&req::STARTING_PSN, &rep::STARTING_PSN) as u32);
        self.attributes.rnr_retries = get(&req::RNR_RETRY, &rep::RNR_RETRY) as u8;
        self.peer_reads = get(&req::INITIATOR_DEPTH, &rep::INITIATOR_DEPTH) as u8;
        self.param.responder_resources = self.peer_reads;
        self.param.initiator_depth = get(&req::RESPONDER_RESOURCES, &rep::RESPONDER_RESOURCES) as u8;
    }

    /// Goes to a phase, and tells the program.
    pub(super) fn turn(&mut self, phase: Phase, kind: EventKind, now: Time, out: &mut Vec<CmEffect>) {
        self.enter(phase, now);
        self.report(kind, 0, &[], out);
    }

    pub(super) fn report(&self, kind: EventKind, status: i32, private: &[u8], out: &mut Vec<CmEffect>) {
        if let Some(owner) = self.owner {
            out.push(CmEffect::Event(self.event(owner, kind, status, private)));
        }
    }

    /// An event for an id, with what's known about the connection.
    pub(super) fn event(&self, owner: u64, kind: EventKind, status: i32, private: &[u8]) -> Event {
        let (param, private, Attributes { dest_qp, qkey, .. }) = (self.param, private.to_vec(), self.attributes);
        Event { owner, kind, status, private, param, peer_qpn: dest_qp, qkey, connection: self.local }
    }
}

fn response_timeout() -> Duration {
    Duration::from_nanos(4096 << RESPONSE_TIMEOUT)
}

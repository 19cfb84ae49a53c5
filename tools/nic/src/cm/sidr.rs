//! Service ID resolution: how a program that wants to send datagrams learns which queue pair to send them to, and with which key
//! (specification, volume 1, chapter 12, tables 119 and 120). There's one question, SIDR_REQ, and one answer, SIDR_REP.

use super::connection::{Connection, Phase};
use super::message::{Mad, Space};
use super::{Cm, CmEffect, EventKind};
use crate::fact::Fact;
use crate::time::Time;
use roce::cm::{sidr_rep, sidr_req, Kind};
use std::net::IpAddr;

/// The key that Linux gives to all queue pairs of `RDMA_PS_UDP`, `RDMA_UDP_QKEY`.
pub const UDP_QKEY: u32 = 0x0123_4567;
/// A SIDR_REP's answer (table 120): here's the queue pair.
pub(super) const VALID: u64 = 0;
/// Another answer: nobody listens there.
const UNSUPPORTED: u64 = 1;
/// Another answer: the program has said no.
pub(super) const REJECTED: u64 = 2;

impl Cm {
    /// Sends a SIDR_REQ to a port, from a port. The answer is the event Established, with queue pair and key, or Unreachable.
    pub fn resolve(&mut self, local: u32, to: u16, from: u16, private: &[u8], now: Time, out: &mut Vec<CmEffect>) {
        let address = self.address;
        let Some(connection) = self.connections.get_mut(&local) else { return };
        let mad = Mad::new(Kind::ServiceRequest, connection.transaction_id)
            .with(&sidr_req::REQUEST_ID, local.into())
            .with(&sidr_req::P_KEY, 0xffff)
            .with(&sidr_req::SERVICE_ID, Space::Udp.service(to))
            .with_addresses(address, from, connection.peer)
            .with_private(private);
        connection.ask(Phase::SidrReqSent, mad, now, out);
    }

    /// A SIDR_REQ has come.
    pub(super) fn questioned(&mut self, from: IpAddr, mad: &Mad, random: u64, now: Time, out: &mut Vec<CmEffect>) {
        let remote = mad.get(&sidr_req::REQUEST_ID);
        let same = |c: &&Connection| c.peer == from && u64::from(c.remote) == remote && c.answer.is_some();
        if let Some(connection) = self.connections.values().find(same) {
            // If our program has answered already, that answer was lost.
            let answer = connection.answer.clone().filter(|_| connection.phase == Phase::SidrAnswered);
            return out.extend(answer.map(|answer| CmEffect::Send(from, answer)));
        }
        let answer = Mad::new(Kind::ServiceReply, mad.transaction_id())
            .with(&sidr_rep::REQUEST_ID, remote)
            .with(&sidr_rep::SERVICE_ID, mad.get(&sidr_req::SERVICE_ID));
        let Some(listener) = mad.port().and_then(|port| self.listeners.get_mut(&port)) else {
            out.push(CmEffect::Say(Fact::new("cm_sidr_refused")));
            return out.push(CmEffect::Send(from, answer.with(&sidr_rep::STATUS, UNSUPPORTED)));
        };
        let Some(owner) = listener.admit(out) else { return };
        let local = self.open(None, from, random);
        let Some(connection) = self.connections.get_mut(&local) else { return };
        connection.enter(Phase::SidrReqReceived, now);
        (connection.remote, connection.peer_port) = (remote as u32, mad.source_port());
        (connection.answer, connection.attributes.qkey) = (Some(answer), UDP_QKEY);
        out.push(CmEffect::Event(connection.event(owner, EventKind::ConnectRequest, 0, mad.private_data())));
    }

    /// A SIDR_REP has come.
    pub(super) fn answered(&mut self, from: IpAddr, mad: &Mad, now: Time, out: &mut Vec<CmEffect>) {
        let local = mad.get(&sidr_rep::REQUEST_ID) as u32;
        let asked = |connection: &&mut Connection| connection.peer == from && connection.phase == Phase::SidrReqSent;
        let Some(connection) = self.connections.get_mut(&local).filter(asked) else {
            return out.push(CmEffect::Say(Fact::new("cm_sidr_unasked")));
        };
        let status = mad.get(&sidr_rep::STATUS);
        let (phase, told) = match status {
            VALID => (Phase::SidrAnswered, EventKind::Established),
            _ => (Phase::Idle, EventKind::Unreachable),
        };
        connection.enter(phase, now);
        connection.attributes.dest_qp = mad.get(&sidr_rep::QPN) as u32;
        connection.attributes.qkey = mad.get(&sidr_rep::Q_KEY) as u32;
        connection.report(told, status as i32, mad.private_data(), out);
    }
}

impl Connection {
    /// Sends the program's answer to a SIDR_REQ, and keeps it, because it may be lost.
    pub(super) fn answer_question(&mut self, status: u64, private: &[u8], now: Time, out: &mut Vec<CmEffect>) {
        let Some(mut answer) = self.answer.take() else { return };
        answer = answer.with(&sidr_rep::STATUS, status).with_private(private);
        if status == VALID {
            let (qpn, key) = (self.qpn.into(), self.attributes.qkey.into());
            answer = answer.with(&sidr_rep::QPN, qpn).with(&sidr_rep::Q_KEY, key);
        }
        self.enter(Phase::SidrAnswered, now);
        self.tell(answer.clone(), out);
        self.answer = Some(answer);
    }
}

//! The passive side: who listens where, and what a peer's REQ begins (specification, volume 1, 12.9.8).

use super::connection::{Connection, Phase};
use super::message::{Mad, Space};
use super::{Cm, CmEffect, EventKind};
use crate::errno::Errno;
use crate::fact::Fact;
use crate::time::Time;
use roce::cm::{rej, req, Kind, LOCAL_ID};
use std::net::IpAddr;

/// A reason for a REJ (12.6.7.2): nobody listens there.
const INVALID_SERVICE_ID: u64 = 8;
/// Another reason: the peer seems to have forgotten a connection of the same queue pair.
const STALE_CONNECTION: u64 = 10;
/// The longest backlog that Linux allows unless somebody changes it (net.rdma_ucm.max_backlog).
const MAX_BACKLOG: usize = 1024;

#[derive(Debug)]
pub(super) struct Listener {
    pub(super) owner: u64,
    /// How many more REQs may wait for the program to fetch them.
    room: usize,
}

impl Listener {
    /// Who gets one more REQ, or None if too many already wait for the program.
    pub(super) fn admit(&mut self, out: &mut Vec<CmEffect>) -> Option<u64> {
        let Some(room) = self.room.checked_sub(1) else {
            out.push(CmEffect::Say(Fact::new("cm_backlog")));
            return None;
        };
        self.room = room;
        Some(self.owner)
    }
}

impl Cm {
    /// Listens for REQs or SIDR_REQs on a port. `backlog` is how many of them may wait for the program, and 0 is as many as
    /// possible.
    ///
    /// # Errors
    /// `EADDRINUSE`: another id listens there.
    pub fn listen(&mut self, space: Space, port: u16, owner: u64, backlog: usize) -> Result<(), Errno> {
        if self.is_taken(space, port) {
            return Err(Errno::EADDRINUSE);
        }
        let room = if backlog == 0 { MAX_BACKLOG } else { backlog.min(MAX_BACKLOG) };
        self.listeners.insert((space, port), Listener { owner, room });
        Ok(())
    }

    /// The program has fetched a ConnectRequest of this listener, so one more REQ may wait.
    pub fn fetched(&mut self, owner: u64) {
        if let Some(listener) = self.listeners.values_mut().find(|listener| listener.owner == owner) {
            listener.room += 1;
        }
    }

    pub fn is_taken(&self, space: Space, port: u16) -> bool {
        self.listeners.contains_key(&(space, port))
    }

    /// A REQ has come.
    pub(super) fn requested(&mut self, from: IpAddr, mad: &Mad, random: u64, now: Time, out: &mut Vec<CmEffect>) {
        let (remote, qpn) = (mad.get(&LOCAL_ID) as u32, mad.get(&req::LOCAL_QPN) as u32);
        let same = |c: &&mut Connection| c.peer == from && c.remote == remote && c.phase != Phase::Idle;
        if let Some(connection) = self.connections.values_mut().find(same) {
            return connection.receive(mad, now, out);
        }
        let refuse = |reason: u64, out: &mut Vec<CmEffect>| {
            let answer = Mad::between(Kind::ConnectReject, mad.transaction_id(), 0, remote).with(&rej::REASON, reason);
            out.push(CmEffect::Send(from, answer));
        };
        let is_alive = |c: &&Connection| c.peer == from && c.attributes.dest_qp == qpn && c.phase == Phase::Established;
        if let Some(old) = self.connections.values().find(is_alive).map(|c| c.local) {
            out.push(CmEffect::Say(Fact::new("cm_stale").with("qp", format_args!("{qpn:#x}"))));
            refuse(STALE_CONNECTION, out);
            self.disconnect(old, now, out);
            return;
        }
        let Some(listener) = mad.port().and_then(|port| self.listeners.get_mut(&port)) else {
            out.push(CmEffect::Say(Fact::new("cm_no_service")));
            return refuse(INVALID_SERVICE_ID, out);
        };
        let Some(owner) = listener.admit(out) else { return };
        let local = self.open(None, from, random);
        let Some(connection) = self.connections.get_mut(&local) else { return };
        connection.enter(Phase::ReqReceived, now);
        connection.learn(mad);
        connection.transaction_id = mad.transaction_id();
        connection.peer_port = mad.source_port();
        connection.attributes.timeout = mad.get(&req::LOCAL_ACK_TIMEOUT) as u8;
        connection.attributes.mtu = 128 << mad.get(&req::PATH_MTU).clamp(1, 5);
        connection.param.retries = mad.get(&req::RETRY_COUNT) as u8;
        connection.param.rnr_retries = connection.attributes.rnr_retries;
        out.push(CmEffect::Event(connection.event(owner, EventKind::ConnectRequest, 0, mad.private_data())));
    }
}

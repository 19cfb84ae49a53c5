//! The connection manager: who listens where, which connections there are, and the messages on QP 1 between them
//! (specification, volume 1, chapter 12; IP addressing: annex A11).
//!
//! A connection is a queue pair on each side and what both have agreed on. Three messages make it (REQ, REP, RTU), two end it
//! (DREQ, DREP), and one refuses it (REJ). Datagrams need no connection; two messages (SIDR_REQ, SIDR_REP) find out which queue
//! pair to send them to. Like the rest of the core, this does no input or output.

mod connection;
mod listen;
mod message;
mod sidr;

use crate::fact::Fact;
pub use connection::{Connection, Phase};
use listen::Listener;
pub use message::{address_in, gid, Mad, Space, QKEY, QP1};
pub use message::{REJ_PRIVATE, REP_PRIVATE, REQ_PRIVATE, SIDR_REP_PRIVATE, SIDR_REQ_PRIVATE};
pub use sidr::UDP_QKEY;

use crate::errno::Errno;
use crate::psn::Psn;
use crate::time::Time;
use roce::cm::{dreq, rej, rep, req, Kind, LOCAL_ID, REMOTE_ID};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A reason for a REJ (12.6.7.2): whoever asked doesn't wait any longer.
const TIMEOUT: u64 = 4;
/// Another reason: the program at the other end has said no.
const CONSUMER_REJECT: u64 = 28;
/// How long a requester waits for an ACK, unless the program says otherwise: 4.096 µs × 2^19, or 2.1 s.
const ACK_TIMEOUT: u8 = 19;
/// How long an answer may take, according to Linux.
const TARGET_ACK_DELAY: u64 = 15;

/// What both sides agree on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Param {
    /// How many READs and atomics of the peer's we serve at a time.
    pub responder_resources: u8,
    pub initiator_depth: u8,
    pub retries: u8,
    pub rnr_retries: u8,
}

/// What happened, with the numbers of `rdma_cm_event_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    AddrResolved = 0,
    AddrError = 1,
    RouteResolved = 2,
    ConnectRequest = 4,
    ConnectResponse = 5,
    ConnectError = 6,
    Unreachable = 7,
    Rejected = 8,
    Established = 9,
    Disconnected = 10,
    TimewaitExit = 15,
}

/// Something that a program must be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The id that it's about. For a ConnectRequest that's the one that listens.
    pub owner: u64,
    pub kind: EventKind,
    /// 0, a reject reason, the status of a SIDR_REP, or a negative errno.
    pub status: i32,
    pub private: Vec<u8>,
    pub param: Param,
    pub peer_qpn: u32,
    /// The key that datagrams to the peer must bring.
    pub qkey: u32,
    pub connection: u32,
}

impl Event {
    /// An event that no peer's message has caused.
    pub fn plain(owner: u64, kind: EventKind, status: i32) -> Event {
        let (private, param, peer_qpn, qkey, connection) = (Vec::new(), Param::default(), 0, 0, 0);
        Event { owner, kind, status, private, param, peer_qpn, qkey, connection }
    }
}

/// Something that the connection manager wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CmEffect {
    Send(IpAddr, Mad),
    Event(Event),
    Say(Fact),
}

/// All connections and listeners of the device.
#[derive(Debug)]
pub struct Cm {
    address: IpAddr,
    connections: BTreeMap<u32, Connection>,
    listeners: BTreeMap<(Space, u16), Listener>,
}

impl Cm {
    pub fn new(address: IpAddr) -> Cm {
        Cm { address, connections: BTreeMap::new(), listeners: BTreeMap::new() }
    }

    /// This device's number in messages (its "CA GUID"). It's made from the address so that no two devices have the same.
    /// Otherwise a REQ whose pair of GUID and queue pair is still in use would be refused as stale.
    pub fn guid(address: IpAddr) -> u64 {
        match address {
            IpAddr::V4(address) => 0x0200_00ff_0000_0000 | u64::from(u32::from(address)),
            IpAddr::V6(address) => u128::from(address) as u64,
        }
    }

    /// Makes a connection in Idle. Its id and its first PSN come from `random`, half of the 64 bits each.
    pub fn open(&mut self, owner: Option<u64>, peer: IpAddr, random: u64) -> u32 {
        let mut local = (random >> 32) as u32;
        while local == 0 || self.connections.contains_key(&local) {
            local = local.wrapping_add(1);
        }
        let transaction_id = random & 0xffff_ffff_0000_0000 | u64::from(local);
        let psn = Psn::new(random as u32);
        self.connections.insert(local, Connection::new(owner, peer, local, psn, transaction_id));
        local
    }

    pub fn get(&mut self, local: u32) -> Option<&mut Connection> {
        self.connections.get_mut(&local)
    }

    /// How many connections there are, including those at rest.
    pub fn count(&self) -> usize {
        self.connections.len()
    }

    /// Sends a REQ to a port, from a port.
    pub fn connect(&mut self, local: u32, to: u16, from: u16, private: &[u8], now: Time, out: &mut Vec<CmEffect>) {
        let address = self.address;
        let Some(connection) = self.connections.get_mut(&local) else { return };
        let Param { responder_resources, initiator_depth, retries, rnr_retries } = connection.param;
        connection.peer_reads = responder_resources;
        let timeout = u64::from(connection::RESPONSE_TIMEOUT);
        let mad = Mad::new(Kind::ConnectRequest, connection.transaction_id)
            .with(&LOCAL_ID, local.into())
            .with(&req::SERVICE_ID, connection.space.service(to))
            .with(&req::LOCAL_CA_GUID, Cm::guid(address))
            .with(&req::LOCAL_QPN, connection.qpn.into())
            .with(&req::RESPONDER_RESOURCES, responder_resources.into())
            .with(&req::INITIATOR_DEPTH, initiator_depth.into())
            .with(&req::REMOTE_CM_TIMEOUT, timeout)
            .with(&req::STARTING_PSN, connection.attributes.rq_psn.get().into())
            .with(&req::LOCAL_CM_TIMEOUT, timeout)
            .with(&req::RETRY_COUNT, u64::from(retries & 7))
            .with(&req::P_KEY, 0xffff)
            // The MTU as a code, where 1 is 256 bytes.
            .with(&req::PATH_MTU, (connection.attributes.mtu >> 7).trailing_zeros().into())
            .with(&req::RNR_RETRY, u64::from(rnr_retries & 7))
            .with(&req::MAX_CM_RETRIES, connection::MAX_RETRIES.into())
            // Ethernet has no LIDs, so this is the reserved "permissive" one.
            .with(&req::PRIMARY_LOCAL_LID, 0xffff)
            .with(&req::PRIMARY_REMOTE_LID, 0xffff)
            .with_gid(&req::PRIMARY_LOCAL_GID, address)
            .with_gid(&req::PRIMARY_REMOTE_GID, connection.peer)
            .with(&req::PRIMARY_TRAFFIC_CLASS, connection.attributes.class.into())
            .with(&req::PRIMARY_HOP_LIMIT, 64)
            .with(&req::LOCAL_ACK_TIMEOUT, connection.attributes.timeout.into())
            .with_addresses(address, from, connection.peer)
            .with_private(private);
        connection.ask(Phase::ReqSent, mad, now, out);
    }

    /// The connection with this number, if it's in the phase in which the program's call makes sense.
    pub fn expect(&mut self, local: u32, phase: Phase) -> Result<&mut Connection, Errno> {
        self.connections.get_mut(&local).filter(|connection| connection.phase == phase).ok_or(Errno::EINVAL)
    }

    /// Sends a REP, or a SIDR_REP.
    ///
    /// # Errors
    /// `EINVAL`: no REQ is waiting for this, or the peer has gone since.
    pub fn accept(&mut self, local: u32, private: &[u8], now: Time, out: &mut Vec<CmEffect>) -> Result<(), Errno> {
        let guid = Cm::guid(self.address);
        if let Ok(connection) = self.expect(local, Phase::SidrReqReceived) {
            connection.answer_question(sidr::VALID, private, now, out);
            return Ok(());
        }
        let connection = self.expect(local, Phase::ReqReceived)?;
        let Param { responder_resources, initiator_depth, rnr_retries, .. } = connection.param;
        let mad = connection
            .message(Kind::ConnectReply)
            .with(&rep::LOCAL_QPN, connection.qpn.into())
            .with(&rep::STARTING_PSN, connection.attributes.rq_psn.get().into())
            .with(&rep::RESPONDER_RESOURCES, responder_resources.into())
            .with(&rep::INITIATOR_DEPTH, initiator_depth.into())
            .with(&rep::TARGET_ACK_DELAY, TARGET_ACK_DELAY)
            .with(&rep::RNR_RETRY, u64::from(rnr_retries & 7))
            .with(&rep::LOCAL_CA_GUID, guid)
            .with_private(private);
        connection.ask(Phase::RepSent, mad, now, out);
        Ok(())
    }

    /// Sends an RTU.
    ///
    /// # Errors
    /// `EINVAL`: no REP has come, or the peer has gone since.
    pub fn ready_to_use(&mut self, local: u32, now: Time, out: &mut Vec<CmEffect>) -> Result<(), Errno> {
        let connection = self.expect(local, Phase::RepReceived)?;
        connection.enter(Phase::Established, now);
        connection.tell(connection.message(Kind::ReadyToUse), out);
        Ok(())
    }

    /// The queue pair has heard from the peer's before the RTU came, so the connection is up.
    ///
    /// # Errors
    /// `EINVAL`: we aren't waiting for an RTU.
    pub fn establish(&mut self, local: u32, now: Time, out: &mut Vec<CmEffect>) -> Result<(), Errno> {
        self.expect(local, Phase::RepSent)?.turn(Phase::Established, EventKind::Established, now, out);
        Ok(())
    }

    /// Sends a REJ because the program has said no to a REQ or a REP, or takes back its own REP. The answer to a SIDR_REQ is a
    /// SIDR_REP.
    ///
    /// # Errors
    /// `EINVAL`: there's nothing to say no to.
    pub fn reject(&mut self, local: u32, private: &[u8], now: Time, out: &mut Vec<CmEffect>) -> Result<(), Errno> {
        use Phase::{RepReceived, RepSent, ReqReceived, SidrReqReceived};
        let is_asked = |connection: &&Connection| {
            matches!(connection.phase, RepReceived | RepSent | ReqReceived | SidrReqReceived)
        };
        self.connections.get(&local).filter(is_asked).ok_or(Errno::EINVAL)?;
        self.turn_away(local, private, now, out);
        Ok(())
    }

    /// Ends something that isn't connected yet, with a REJ.
    fn turn_away(&mut self, local: u32, private: &[u8], now: Time, out: &mut Vec<CmEffect>) {
        let Some(mut connection) = self.connections.remove(&local) else { return };
        let (reason, what) = match connection.phase {
            Phase::SidrReqReceived => return connection.answer_question(sidr::REJECTED, private, now, out),
            Phase::ReqReceived => (CONSUMER_REJECT, 0),
            Phase::RepReceived => (CONSUMER_REJECT, 1),
            Phase::ReqSent => (TIMEOUT, 2),
            _ => (CONSUMER_REJECT, 2),
        };
        let mut mad =
            connection.message(Kind::ConnectReject).with(&rej::REASON, reason).with(&rej::MESSAGE_REJECTED, what);
        if reason == TIMEOUT {
            // The peer hasn't given us a number, and ours means something to it only together with our device's.
            let guid = Cm::guid(self.address).to_be_bytes();
            mad = mad.with(&rej::REJECT_INFO_LENGTH, guid.len() as u64).with_bytes(&rej::INFO, &guid);
        }
        connection.tell(mad.with_private(private), out);
    }

    /// Sends a DREQ or answers the peer's, if there's something to end.
    pub fn disconnect(&mut self, local: u32, now: Time, out: &mut Vec<CmEffect>) {
        let Some(connection) = self.connections.get_mut(&local) else { return };
        match connection.phase {
            Phase::Established | Phase::RepSent | Phase::RepReceived => {
                connection.transaction_id = connection.transaction_id.wrapping_add(1 << 32);
                let mad = connection
                    .message(Kind::DisconnectRequest)
                    .with(&dreq::REMOTE_QPN, connection.attributes.dest_qp.into());
                connection.ask(Phase::DreqSent, mad, now, out);
            }
            Phase::DreqReceived => {
                connection.tell(connection.message(Kind::DisconnectReply), out);
                connection.enter(Phase::TimeWait, now);
            }
            _ => {}
        }
    }

    /// The program destroys the id. The connection is ended as its phase demands, and goes on by itself until that's done.
    pub fn close(&mut self, owner: u64, local: u32, now: Time, out: &mut Vec<CmEffect>) {
        self.listeners.retain(|_, listener| listener.owner != owner);
        let Some(connection) = self.connections.get_mut(&local) else { return };
        match connection.phase {
            Phase::Idle | Phase::SidrReqSent | Phase::SidrAnswered => drop(self.connections.remove(&local)),
            Phase::ReqSent | Phase::ReqReceived | Phase::RepSent | Phase::RepReceived | Phase::SidrReqReceived => {
                self.turn_away(local, &[], now, out);
            }
            _ => {
                connection.owner = None;
                self.disconnect(local, now, out);
            }
        }
    }

    pub fn receive(&mut self, from: IpAddr, payload: &[u8], random: u64, now: Time, out: &mut Vec<CmEffect>) {
        let Some(mad) = Mad::read(payload) else { return };
        match mad.kind() {
            Kind::ConnectRequest => return self.requested(from, &mad, random, now, out),
            Kind::ServiceRequest => return self.questioned(from, &mad, random, now, out),
            Kind::ServiceReply => return self.answered(from, &mad, now, out),
            _ => {}
        }
        let (mut local, remote) = (mad.get(&REMOTE_ID) as u32, mad.get(&LOCAL_ID) as u32);
        if mad.kind() == Kind::ConnectReject && mad.get(&rej::REASON) == TIMEOUT {
            let same = |c: &&Connection| c.peer == from && c.remote == remote && c.phase != Phase::Idle;
            local = self.connections.values().find(same).map_or(local, |connection| connection.local);
        }
        let known = self.connections.get_mut(&local).filter(|connection| {
            connection.peer == from && (connection.remote == remote || connection.phase == Phase::ReqSent)
        });
        match known {
            Some(connection) => connection.receive(&mad, now, out),
            // A goodbye gets an answer even if we've forgotten the connection, so that the peer doesn't wait.
            None if mad.kind() == Kind::DisconnectRequest => {
                let answer = Mad::between(Kind::DisconnectReply, mad.transaction_id(), local, remote);
                out.push(CmEffect::Send(from, answer));
            }
            None => out.push(CmEffect::Say(Fact::new("cm_unknown").with("message", mad.kind().short()))),
        }
    }

    pub fn tick(&mut self, now: Time, out: &mut Vec<CmEffect>) {
        self.connections.values_mut().for_each(|connection| connection.tick(now, out));
        self.connections.retain(|_, connection| connection.owner.is_some() || connection.phase != Phase::Idle);
    }

    /// When [`Cm::tick`] must be called again, at the latest.
    pub fn deadline(&self) -> Option<Time> {
        self.connections.values().filter_map(Connection::deadline).min()
    }
}

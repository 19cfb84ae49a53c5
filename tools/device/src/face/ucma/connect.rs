//! Connecting and disconnecting (rdma_connect(3), rdma_accept(3), rdma_reject(3), rdma_disconnect(3)): which command lets which
//! message go, and which event a message is.
//!
//! ```text
//! client             on the wire             server
//! CONNECT            REQ ─────────────────▶  event CONNECT_REQUEST, with a new id
//! CONNECT_RESPONSE   ◀───────────────── REP  ACCEPT
//! ACCEPT             RTU ─────────────────▶  ESTABLISHED
//! DISCONNECT         DREQ ────────────────▶  DISCONNECTED
//! DISCONNECTED       ◀──────────────── DREP  DISCONNECT
//! ```
//!
//! Either side moves its queue pair itself, with the attributes that INIT_QP_ATTR answers: so does librdmacm, at the client when
//! it fetches the CONNECT_RESPONSE, which it then calls ESTABLISHED. Its ACCEPT is the RTU.
//!
//! For datagrams CONNECT sends a SIDR_REQ, and ACCEPT or REJECT the SIDR_REP: that is all.

use super::abi;
use super::id::{Id, State};
use super::{command, errno, Done, Ids, Net};
use crate::machine::Asker;
use nic::cm::{Param, Phase, REJ_PRIVATE, REP_PRIVATE, REQ_PRIVATE, SIDR_REP_PRIVATE, SIDR_REQ_PRIVATE};
use nic::fact::Fact;
use rustix::io::Errno;
use std::mem::size_of;

/// `IBV_EVENT_COMM_EST`.
const COMM_EST: u32 = 4;
/// The reason of a REJ that programs may give: the program has said no.
const CONSUMER_REJECT: u8 = 28;

/// What CONNECT and ACCEPT ask for, in words. The client's ACCEPT, which answers the REP, asks for nothing.
pub fn asks(call: Fact, param: Result<abi::ConnParam, Errno>) -> Fact {
    param.iter().filter(|param| param.valid != 0).fold(call, |call, param| {
        let abi::ConnParam { responder_resources, initiator_depth, retry_count, rnr_retry_count, .. } = param;
        let call = call.with("responder_resources", responder_resources).with("initiator_depth", initiator_depth);
        call.with("retry_count", retry_count).with("rnr_retry_count", rnr_retry_count)
    })
}

/// What a program says of itself.
fn param_of(param: &abi::ConnParam) -> Param {
    Param {
        responder_resources: param.responder_resources,
        initiator_depth: param.initiator_depth,
        retries: param.retry_count.min(7),
        rnr_retries: param.rnr_retry_count.min(7),
    }
}

/// Private data, which must fit into its message.
fn private(data: &[u8; 256], length: u8, room: usize) -> Result<&[u8], Errno> {
    data.get(..length.into()).filter(|data| data.len() <= room).ok_or(Errno::INVAL)
}

impl Ids {
    /// rdma_connect(3): REQ, or SIDR_REQ.
    pub(super) fn connect(&mut self, net: &mut Net, asker: &Asker, input: u16) -> Result<Done, Errno> {
        let command: abi::Connect = command(asker)?;
        let param = &command.conn_param;
        if param.valid == 0 || usize::from(input) < size_of::<abi::Connect>() {
            return Err(Errno::INVAL);
        }
        let id = self.id_with_device(asker.file, command.id)?;
        let (Some(own), Some(peer), State::HasRoute) = (id.own, id.peer, id.state) else { return Err(Errno::INVAL) };
        let room = if id.is_datagrams() { SIDR_REQ_PRIVATE } else { REQ_PRIVATE };
        let private = private(&param.private_data, param.private_data_len, room)?;
        let space = id.space()?;
        let local = net.cm.open(Some(command.id.into()), peer.ip(), net.random);
        (id.connection, id.state) = (Some(local), State::Connect);
        if let Some(connection) = net.cm.get(local) {
            (connection.param, connection.qpn, connection.space) = (param_of(param), param.qp_num, space);
            connection.attributes.class = id.options.tos;
            let timeout = &mut connection.attributes.timeout;
            *timeout = id.options.ack_timeout.unwrap_or(*timeout);
        }
        if id.is_datagrams() {
            net.cm.resolve(local, peer.port(), own.port(), private, net.now, net.out);
        } else {
            net.cm.connect(local, peer.port(), own.port(), private, net.now, net.out);
        }
        Ok(Done::All)
    }

    /// rdma_accept(3): REP, or SIDR_REP; without parameters RTU. If it cannot be sent, the peer hears no.
    pub(super) fn accept(&mut self, net: &mut Net, asker: &Asker, input: u16) -> Result<Done, Errno> {
        let command: abi::Accept = command(asker)?;
        if usize::from(input) < size_of::<abi::Accept>() {
            return Err(Errno::INVAL);
        }
        let id = self.id_with_device(asker.file, command.id)?;
        let (Some(local), State::Connect) = (id.connection, id.state) else { return Err(Errno::INVAL) };
        let is_reply = command.conn_param.valid != 0;
        let sent = if is_reply || id.is_datagrams() {
            reply(net, id, local, &command.conn_param)
        } else {
            net.cm.ready_to_use(local, net.now, net.out).map_err(errno)
        };
        if let Err(errno) = sent {
            // If there is nobody who waits for it, that is no further error.
            let _ = net.cm.reject(local, &[], net.now, net.out);
            return Err(errno);
        }
        if is_reply {
            id.uid = command.uid;
        }
        Ok(Done::All)
    }

    /// rdma_reject(3): REJ, or SIDR_REP.
    pub(super) fn reject(&mut self, net: &mut Net, asker: &Asker) -> Result<Done, Errno> {
        let command: abi::Reject = command(asker)?;
        if ![0, CONSUMER_REJECT].contains(&command.reason) {
            return Err(Errno::INVAL);
        }
        let id = self.id_with_device(asker.file, command.id)?;
        let local = id.connection.ok_or(Errno::INVAL)?;
        let room = if id.is_datagrams() { SIDR_REP_PRIVATE } else { REJ_PRIVATE };
        let private = private(&command.private_data, command.private_data_len, room)?;
        net.cm.reject(local, private, net.now, net.out).map_err(errno)?;
        Ok(Done::All)
    }

    /// rdma_disconnect(3): DREQ, or DREP if the peer has asked. Nothing, if there is nothing to end.
    pub(super) fn disconnect(&mut self, net: &mut Net, asker: &Asker) -> Result<Done, Errno> {
        let command: abi::Disconnect = command(asker)?;
        let id = self.id_with_device(asker.file, command.id)?;
        match id.connection {
            Some(local) => net.cm.disconnect(local, net.now, net.out),
            None if id.state == State::Listen => {}
            None => return Err(Errno::INVAL),
        }
        Ok(Done::All)
    }

    /// rdma_notify(3): the program's queue pair has received before the RTU came: so the connection stands.
    pub(super) fn notify(&mut self, net: &mut Net, asker: &Asker) -> Result<Done, Errno> {
        let command: abi::Notify = command(asker)?;
        let local = self.id_with_device(asker.file, command.id)?.connection.ok_or(Errno::INVAL)?;
        match net.cm.get(local).map(|connection| connection.phase) {
            _ if command.event != COMM_EST => Err(Errno::INVAL),
            Some(Phase::Established) => Err(Errno::ISCONN),
            _ => net.cm.establish(local, net.now, net.out).map(|()| Done::All).map_err(errno),
        }
    }
}

/// REP, or SIDR_REP.
fn reply(net: &mut Net, id: &Id, local: u32, param: &abi::ConnParam) -> Result<(), Errno> {
    let (room, phase) =
        if id.is_datagrams() { (SIDR_REP_PRIVATE, Phase::SidrReqReceived) } else { (REP_PRIVATE, Phase::ReqReceived) };
    let private = private(&param.private_data, param.private_data_len, room)?;
    let connection = net.cm.expect(local, phase).map_err(errno)?;
    connection.qpn = param.qp_num;
    // How often to try again, the REQ has said for both sides.
    connection.param = Param { retries: connection.param.retries, ..param_of(param) };
    net.cm.accept(local, private, net.now, net.out).map_err(errno)
}

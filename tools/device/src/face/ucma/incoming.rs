//! Events of the connection manager, as programs get them (rdma_get_cm_event(3)): what a peer's message tells, and the new id that
//! a REQ or a SIDR_REQ brings.

use super::abi;
use super::events::Event;
use super::id::{Id, State};
use super::{Ids, Net};
use crate::abi::AhAttr;
use bytemuck::{bytes_of, Zeroable};
use nic::cm::{self, EventKind, Phase};
use std::mem::size_of;
use std::net::SocketAddr;

impl Ids {
    /// Takes an event of the connection manager.
    pub fn deliver(&mut self, net: &mut Net, event: cm::Event) {
        let number = event.owner as u32;
        if event.kind == EventKind::ConnectRequest {
            return self.knock(net, number, &event);
        }
        let Some(id) = self.ids.get_mut(&number) else { return };
        let awaited = if event.kind == EventKind::TimewaitExit { State::Disconnect } else { State::Connect };
        if id.state != awaited {
            return;
        }
        if event.kind == EventKind::Disconnected {
            id.state = State::Disconnect;
        }
        // A new id whose program has not accepted yet hears nothing: its accept will fail.
        if id.uid != 0 {
            let response = abi::EventResp { uid: id.uid, id: number, ..response(net, id, &event) };
            self.post(Event { about: number, response });
        }
    }

    /// A REQ, or a SIDR_REQ: a new id, of which its program hears with the event. It has what the listener has.
    fn knock(&mut self, net: &mut Net, number: u32, event: &cm::Event) {
        let listener = self.ids.get(&number).filter(|id| id.state == State::Listen && id.hears(self.address));
        let fits = |connection: &&mut cm::Connection| {
            listener.is_some_and(|id| id.is_datagrams() == (connection.phase == Phase::SidrReqReceived))
        };
        let (Some(listener), Some(connection)) = (listener, net.cm.get(event.connection).filter(fits)) else {
            // Somebody listens at that port, but to addresses of the other family, or not to such messages.
            net.cm.fetched(event.owner);
            return net.cm.close(0, event.connection, net.now, net.out);
        };
        let port = listener.own.map_or(0, |own| own.port());
        let guest = Id {
            own: Some(SocketAddr::new(self.address, port)),
            peer: Some(SocketAddr::new(connection.peer, connection.peer_port)),
            state: State::Connect,
            has_device: true,
            is_guest: true,
            connection: Some(event.connection),
            file: listener.file,
            port_space: listener.port_space,
            qp_type: listener.qp_type,
            ..Id::default()
        };
        let uid = listener.uid;
        let new = self.number();
        connection.owner = Some(new.into());
        let response = abi::EventResp { uid, id: new, ..response(net, &guest, event) };
        self.ids.insert(new, guest);
        self.post(Event { about: number, response });
    }
}

/// What an event says of the message, with the private data and the zeroes behind it, of which nobody knows how many were sent.
fn response(net: &mut Net, id: &Id, event: &cm::Event) -> abi::EventResp {
    let mut private_data = [0; 256];
    let private_data_len = event.private.len().min(private_data.len() - 1) as u8;
    private_data[..private_data_len.into()].copy_from_slice(&event.private[..private_data_len.into()]);
    let mut response = abi::EventResp { event: event.kind as u32, status: event.status, ..abi::EventResp::zeroed() };
    if id.is_datagrams() {
        let param = abi::UdParam { private_data, private_data_len, ..datagrams(id, event) };
        response.param.copy_from_slice(bytes_of(&param));
    } else {
        let param = abi::ConnParam { private_data, private_data_len, ..asked(net, event) };
        response.param[..size_of::<abi::ConnParam>()].copy_from_slice(bytes_of(&param));
    }
    response
}

/// Of a SIDR_REP: where datagrams are to be sent.
fn datagrams(id: &Id, event: &cm::Event) -> abi::UdParam {
    match (event.kind, id.peer) {
        (EventKind::Established, Some(peer)) => {
            let ah_attr = AhAttr::to(peer.ip(), id.options.tos);
            abi::UdParam { qp_num: event.peer_qpn, qkey: event.qkey, ah_attr, ..abi::UdParam::zeroed() }
        }
        _ => abi::UdParam::zeroed(),
    }
}

/// Of a REQ and a REP: what the peer asks for, seen from here.
fn asked(net: &mut Net, event: &cm::Event) -> abi::ConnParam {
    let is_request = event.kind == EventKind::ConnectRequest;
    if !is_request && event.kind != EventKind::ConnectResponse {
        return abi::ConnParam::zeroed();
    }
    let rnr_retry_count = net.cm.get(event.connection).map_or(0, |connection| connection.attributes.rnr_retries);
    abi::ConnParam {
        qp_num: event.peer_qpn,
        responder_resources: event.param.responder_resources,
        initiator_depth: event.param.initiator_depth,
        retry_count: if is_request { event.param.retries } else { 0 },
        rnr_retry_count,
        ..abi::ConnParam::zeroed()
    }
}

//! The server: accepts a client, sees it leave, answers, and destroys everything in order.
//!
//! ```text
//! ◀── ConnectRequest       becomes the event CONNECT_REQUEST
//! ──▶ ConnectReply         sent by rdma_accept
//! ◀── ReadyToUse           becomes the event ESTABLISHED
//! ◀── DisconnectRequest    becomes the event DISCONNECTED
//! ──▶ DisconnectReply      sent by rdma_disconnect
//! ```

use common::args::Args;
use common::cm::{RDMA_CM_EVENT_CONNECT_REQUEST, RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_ESTABLISHED};
use common::{address, say, stage, CmId, EventChannel, Result};

use crate::{conn_param, create_resources, teardown, Resources, ACK_TIMEOUT, BACKLOG};

pub fn run(args: &Args) -> Result<()> {
    let listening = EventChannel::create()?;
    let listener = listen(&listening, args)?;
    for _ in args.clients() {
        let channel = EventChannel::create()?;
        let id = wait_connect_request(&listening, &channel)?;
        let resources = create_resources(&id)?;
        accept(&id, &channel, &resources)?;
        wait_disconnect(&id, &channel, &resources)?;
        teardown(resources, id, channel);
    }
    stop_listening(listener, listening);
    Ok(())
}

/// An id is what a socket is to TCP. Bound to the address `::` it serves every RDMA device of this machine.
fn listen(channel: &EventChannel, args: &Args) -> Result<CmId> {
    stage("listen");
    let id = address::try_each(&args.address, args.port, |address| {
        let id = channel.create_id()?;
        id.bind_addr(address)?;
        Ok(id)
    })?;
    // Returns at once. Nothing is sent: a listener is a promise inside this machine.
    id.listen(BACKLOG)?;
    Ok(id)
}

/// An id goes before the channel that its events came through.
fn stop_listening(listener: CmId, listening: EventChannel) {
    stage("stop_listening");
    drop(listener);
    drop(listening);
}

/// The knock brought a new id, `event->id`: it is the client.
fn wait_connect_request(listening: &EventChannel, channel: &EventChannel) -> Result<CmId> {
    stage("wait_connect_request");
    let event = listening.wait_for(RDMA_CM_EVENT_CONNECT_REQUEST)?;
    let id = event.id();
    event.ack();
    // Its further events get a channel of their own: the next client's knock then waits at the listener's, and does not
    // come between this client's events.
    id.migrate_id(channel)?;
    if let Some(address) = id.peer_addr() {
        say!("{address} knocked");
    }
    Ok(id)
}

/// `rdma_accept` moves our QP to RTR and RTS, and sends the ConnectReply. The client's ReadyToUse makes it ESTABLISHED.
fn accept(id: &CmId, channel: &EventChannel, resources: &Resources) -> Result<()> {
    stage("accept");
    id.set_ack_timeout(ACK_TIMEOUT)?;
    id.accept(&conn_param())?;
    resources.qp.dump();
    channel.wait_for(RDMA_CM_EVENT_ESTABLISHED)?.ack();
    resources.qp.dump();
    Ok(())
}

/// The client goes first. Our own `rdma_disconnect` answers it: without the DisconnectReply it would wait for its
/// time-out.
fn wait_disconnect(id: &CmId, channel: &EventChannel, resources: &Resources) -> Result<()> {
    stage("wait_disconnect");
    channel.wait_for(RDMA_CM_EVENT_DISCONNECTED)?.ack();
    id.disconnect()?;
    resources.qp.dump();
    Ok(())
}

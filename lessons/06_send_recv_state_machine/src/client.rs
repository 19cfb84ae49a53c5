//! The client: its half of the exchange begins as soon as the connection is established.
//!
//! ```text
//! ──▶ SEND MR           our memory; then
//! ◀── SEND MR           the server's
//! ──▶ WRITE             into the server's memory (with -m read: READ)
//! ◀── WRITE             into ours: no completion, no event
//! ──▶ SEND DONE         we are done with the server's memory
//! ◀── SEND DONE         the server is done with ours: now we may look, and hang up
//! ```

use common::args::{Args, Mode};
use common::cm::{
    RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_ROUTE_RESOLVED,
};
use common::{address, stage, CmId, ConnParam, EventChannel, Result};

use crate::exchange::{exchange, post_receives, register_buffers, show_words};
use crate::machine::Role;
use crate::{conn_param, create_resources, mode_byte, teardown, Resources, ACK_TIMEOUT};

pub fn run(args: &Args) -> Result<()> {
    let channel = EventChannel::create()?;
    let id = resolve(&channel, args)?;
    let resources = create_resources(&id)?;
    let mut buffers = register_buffers(&resources, args.mode, "the client was here")?;
    let receives = post_receives(&resources, &buffers)?;
    connect(&id, &channel, &resources, args.mode)?;
    exchange(Role::Client, args.mode, &resources, &mut buffers, &receives)?;
    show_words(args.mode, &buffers)?;
    disconnect(&id, &channel, &resources)?;
    teardown(resources, buffers, id, channel);
    Ok(())
}

/// Each call only starts the work; the event that follows brings the answer.
fn resolve(channel: &EventChannel, args: &Args) -> Result<CmId> {
    stage("resolve");
    // A host name may stand for several addresses: the first that answers is good.
    let id = address::try_each(&args.address, args.port, |address| {
        let id = channel.create_id()?;
        // Which of our devices leads to that address? On Ethernet this asks ARP, a packet that is not RDMA.
        id.resolve_addr(address)?;
        channel.wait_for(RDMA_CM_EVENT_ADDR_RESOLVED)?.ack();
        Ok(id)
    })?;
    // Before the route is resolved, and so before the ConnectRequest, which tells the server.
    id.set_ack_timeout(ACK_TIMEOUT)?;
    // Which path? On RoCE the routing table knows, so nothing is sent.
    id.resolve_route()?;
    channel.wait_for(RDMA_CM_EVENT_ROUTE_RESOLVED)?.ack();
    Ok(id)
}

/// Sends the ConnectRequest, with the mode in its private data, and waits for the ConnectReply. A server in the other mode
/// rejects us, and says so.
fn connect(id: &CmId, channel: &EventChannel, resources: &Resources, mode: Mode) -> Result<()> {
    stage("connect");
    id.connect(&ConnParam { private_data: vec![mode_byte(mode)], ..conn_param() })?;
    resources.qp.dump();
    channel.wait_for(RDMA_CM_EVENT_ESTABLISHED)?.ack();
    resources.qp.dump();
    Ok(())
}

/// Moves our QP to ERR and sends the DisconnectRequest. The event comes when the server has answered.
fn disconnect(id: &CmId, channel: &EventChannel, resources: &Resources) -> Result<()> {
    stage("disconnect");
    id.disconnect()?;
    resources.qp.dump();
    channel.wait_for(RDMA_CM_EVENT_DISCONNECTED)?.ack();
    Ok(())
}

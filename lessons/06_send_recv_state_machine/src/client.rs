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

use common::args::Args;
use common::cm::{
    RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_ROUTE_RESOLVED,
};
use common::{address, say, stage, CmId, EventChannel, Result};

use crate::exchange::{register_buffers, Exchange};
use crate::machine::Role;
use crate::memory::show_memory;
use crate::{create_resources, post_receive, teardown, Resources, ACK_TIMEOUT, CONN_PARAM};

pub fn run(args: &Args) -> Result<()> {
    let channel = EventChannel::create()?;
    let id = resolve(&channel, args)?;
    let resources = create_resources(&id)?;
    let buffers = register_buffers(&resources, args)?;
    let receives = [post_receive(&resources)?, post_receive(&resources)?];
    connect(&id, &channel, &resources)?;
    let exchange = Exchange { role: Role::Client, args, resources: &resources, channel: &channel, buffers: &buffers };
    exchange.run(&receives)?;
    show_memory(&buffers.destination)?;
    disconnect(&id, &channel, &resources)?;
    teardown(resources, vec![buffers.source, buffers.destination], id, channel);
    say!("client clean-up is complete");
    Ok(())
}

/// Each call only starts the work. The event that follows brings the answer.
fn resolve(channel: &EventChannel, args: &Args) -> Result<CmId> {
    let _stage = stage("resolve");
    // A host name may stand for several addresses, and the first that answers will do.
    let id = address::try_each(&args.address, args.port, |address| {
        let id = channel.create_id()?;
        // The routing table says which device leads there. ARP, which isn't RDMA, finds the server's Ethernet address.
        id.resolve_addr(address)?;
        channel.wait_for(RDMA_CM_EVENT_ADDR_RESOLVED)?.ack();
        Ok(id)
    })?;
    // Has to come before the route is resolved, because that settles what the ConnectRequest will say.
    id.set_ack_timeout(ACK_TIMEOUT)?;
    // And by which path? InfiniBand would ask. On Ethernet there's only one, so nothing is sent.
    id.resolve_route()?;
    channel.wait_for(RDMA_CM_EVENT_ROUTE_RESOLVED)?.ack();
    Ok(id)
}

/// Sends the ConnectRequest, which carries our QP's number, and waits for the ConnectReply, which carries the server's.
fn connect(id: &CmId, channel: &EventChannel, resources: &Resources) -> Result<()> {
    let _stage = stage("connect");
    id.connect(&CONN_PARAM)?;
    resources.qp.dump();
    channel.wait_for(RDMA_CM_EVENT_ESTABLISHED)?.ack();
    resources.qp.dump();
    say!("connected");
    Ok(())
}

/// Moves our QP to ERR and sends the DisconnectRequest. The event comes when the server has answered.
fn disconnect(id: &CmId, channel: &EventChannel, resources: &Resources) -> Result<()> {
    let _stage = stage("disconnect");
    id.disconnect()?;
    resources.qp.dump();
    channel.wait_for(RDMA_CM_EVENT_DISCONNECTED)?.ack();
    Ok(())
}

//! The client: its half of the exchange begins as soon as the connection is established.
//!
//! ```text
//! ──▶ SEND MR           our memory; then
//! ◀── SEND MR           the server's
//! ──▶ WRITE             into the server's memory (with -m read: READ)
//! ◀── WRITE             into ours: no completion, no event
//! ──▶ SEND DONE         we are done with the server's memory
//! ◀── SEND DONE         the server is done with ours: now we may look
//! ──▶ DisconnectRequest, ◀── DisconnectReply    the other way round with --closer server
//! ```

use common::args::Args;
use common::cm::{RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_ROUTE_RESOLVED};
use common::{address, say, stage, CmId, ConnParam, EventChannel, Result};

use crate::close::close;
use crate::exchange::{register_buffers, Exchange};
use crate::machine::Role;
use crate::memory::show_memory;
use crate::{
    create_resources, post_receive, puzzle, teardown, terms, Resources, ACK_TIMEOUT, CLOSER, CONN_PARAM, PUZZLE,
    RECEIVES,
};

pub fn run(args: &Args) -> Result<()> {
    if args.text(&PUZZLE) != "no" {
        return puzzle::client(args);
    }
    let channel = EventChannel::create()?;
    let id = resolve(&channel, args)?;
    let resources = create_resources(&id)?;
    let buffers = register_buffers(&resources, args)?;
    let receives = (0..RECEIVES).map(|_| post_receive(&resources)).collect::<Result<Vec<_>>>()?;
    connect(&id, &channel, &resources, terms(args))?;
    let mut posted = receives.iter().map(|receive| receive.wr_id).collect();
    let exchange = Exchange { role: Role::Client, args, resources: &resources, channel: &channel, buffers: &buffers };
    let outcome = exchange.run(&receives, &mut posted);
    // However it went, we close in good order. After a failure we don't wait for the other's goodbye, which may never come.
    let goes_first = args.text(&CLOSER) == "client" || outcome.is_err();
    let closed = close(goes_first, &id, &channel, &resources, &posted);
    // If both failed, the exchange failed first, and the rest is what followed from it.
    outcome.and(closed)?;
    show_memory(&buffers.destination)?;
    teardown(resources, vec![buffers.source, buffers.destination], id, channel);
    say!("client clean-up is complete");
    Ok(())
}

/// Each call only starts the work. The event that follows brings the answer.
pub fn resolve(channel: &EventChannel, args: &Args) -> Result<CmId> {
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
pub fn connect(id: &CmId, channel: &EventChannel, resources: &Resources, terms: Vec<u8>) -> Result<()> {
    let _stage = stage("connect");
    id.connect(&ConnParam { private_data: terms, ..CONN_PARAM })?;
    resources.qp.dump();
    channel.wait_for(RDMA_CM_EVENT_ESTABLISHED)?.ack();
    resources.qp.dump();
    say!("connected");
    Ok(())
}

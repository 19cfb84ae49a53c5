//! The client: writes its bytes into the server's memory.
//!
//! ```text
//! ──▶ SEND Only, ◀── SEND Only    the metadata, as in lesson 03
//! ──▶ WRITE                       our bytes, with the server's address and rkey
//! ◀── ACK                         completes our WRITE
//! ```

use common::args::Args;
use common::cm::{
    RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_ROUTE_RESOLVED,
};
use common::{address, info, say, stage, CmId, EventChannel, MemoryRegion, Metadata, Result};

use crate::memory::{check_room, register_source, write};
use crate::{
    create_resources, post_receive, read_metadata, receive_metadata, send, teardown, wait_for, Resources, ACK_TIMEOUT,
    CONN_PARAM, METADATA,
};

pub fn run(args: &Args) -> Result<()> {
    let channel = EventChannel::create()?;
    let id = resolve(&channel, args)?;
    let resources = create_resources(&id)?;
    let source = register_source(&resources, args)?;
    let theirs = match args.text(&METADATA) {
        "private-data" => read_metadata(&connect(&id, &channel, &resources)?)?,
        _ => ask(&id, &channel, &resources, &source)?,
    };
    check_room(&source, &theirs)?;
    let written = write(&resources, &source, &theirs)?;
    wait_for(&resources, &channel, written, "an RDMA WRITE")?;
    disconnect(&id, &channel, &resources)?;
    teardown(resources, vec![source], id, channel);
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

/// SENDs how much memory we want, and waits for the server to answer where it is.
fn ask(id: &CmId, channel: &EventChannel, resources: &Resources, source: &MemoryRegion) -> Result<Metadata> {
    let receive = post_receive(resources)?;
    connect(id, channel, resources)?;
    info!("our metadata: {}", Metadata::of(source));
    let sent = send(resources, &Metadata::of(source).encode())?;
    wait_for(resources, channel, sent, "a SEND of our metadata")?;
    receive_metadata(resources, channel, &receive)
}

/// Sends the ConnectRequest with our QP's number. The ConnectReply brings the server's, and its private data.
fn connect(id: &CmId, channel: &EventChannel, resources: &Resources) -> Result<Vec<u8>> {
    let _stage = stage("connect");
    id.connect(&CONN_PARAM)?;
    resources.qp.dump();
    let event = channel.wait_for(RDMA_CM_EVENT_ESTABLISHED)?;
    // The private data belongs to the event, so we copy it before the ack.
    let private_data = event.private_data().to_vec();
    event.ack();
    resources.qp.dump();
    say!("connected");
    Ok(private_data)
}

/// Moves our QP to ERR and sends the DisconnectRequest. The event comes when the server has answered.
fn disconnect(id: &CmId, channel: &EventChannel, resources: &Resources) -> Result<()> {
    let _stage = stage("disconnect");
    id.disconnect()?;
    resources.qp.dump();
    channel.wait_for(RDMA_CM_EVENT_DISCONNECTED)?.ack();
    Ok(())
}

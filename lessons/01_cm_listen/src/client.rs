//! The client: finds the way to the server, knocks, and reads why it was sent away.
//!
//! ```text
//! ──▶ ConnectRequest    sent by rdma_connect
//! ◀── ConnectReject     becomes the event REJECTED
//! ```

use common::args::Args;
use common::cm::{RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_REJECTED, RDMA_CM_EVENT_ROUTE_RESOLVED};
use common::error::status_text;
use common::narrate::preview;
use common::{address, say, stage, CmId, ConnParam, EventChannel, Result};

/// The status that REJECTED carries when it was the server's *program* that said no (`rdma_reject`), and not its kernel.
const CONSUMER_REJECT: i32 = 28;

pub fn run(args: &Args) -> Result<()> {
    let channel = EventChannel::create()?;
    let id = resolve(&channel, args)?;
    knock(&id)?;
    read_reason(&channel)?;
    teardown(id, channel);
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
    // And by which path? InfiniBand would ask. On Ethernet there's only one, so nothing is sent.
    id.resolve_route()?;
    channel.wait_for(RDMA_CM_EVENT_ROUTE_RESOLVED)?.ack();
    Ok(id)
}

/// Sends the ConnectRequest.
fn knock(id: &CmId) -> Result<()> {
    let _stage = stage("knock");
    // The request offers no resources and brings no private data, since all we want is to hear the answer.
    id.connect(&ConnParam::default())
}

/// The answer is a REJECTED event. Its status is the number of the reason, and its private data are the server's own words.
fn read_reason(channel: &EventChannel) -> Result<()> {
    let _stage = stage("read_reason");
    let event = channel.wait_for(RDMA_CM_EVENT_REJECTED)?;
    if event.status() != CONSUMER_REJECT {
        // It wasn't the program that refused but the kernel. With reason 8, for example, nobody listens on that port.
        return Err(event.into_error(RDMA_CM_EVENT_REJECTED));
    }
    // The private data belongs to the event, so we copy it before the ack.
    let (status, words) = (event.status(), event.private_data().to_vec());
    event.ack();
    say!("rejected with status {}", status_text(RDMA_CM_EVENT_REJECTED, status));
    say!("the server says: {}", preview(&words));
    Ok(())
}

/// The id goes first, because its events came through the channel.
fn teardown(id: CmId, channel: EventChannel) {
    let _stage = stage("teardown");
    drop(id);
    drop(channel);
    say!("client clean-up is complete");
}

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

/// What REJECTED carries when the server's *program* said no (`rdma_reject`), and not its kernel.
const CONSUMER_REJECT: i32 = 28;

pub fn run(args: &Args) -> Result<()> {
    let channel = EventChannel::create()?;
    let id = resolve(&channel, args)?;
    knock(&id)?;
    read_reason(&channel)?;
    teardown(id, channel);
    Ok(())
}

/// Each call only starts the work; the event that follows brings the answer.
fn resolve(channel: &EventChannel, args: &Args) -> Result<CmId> {
    let _stage = stage("resolve");
    // A host name may stand for several addresses: the first that answers is good.
    let id = address::try_each(&args.address, args.port, |address| {
        let id = channel.create_id()?;
        // Which of our devices leads to that address? On Ethernet this asks ARP, a packet that is not RDMA.
        id.resolve_addr(address)?;
        channel.wait_for(RDMA_CM_EVENT_ADDR_RESOLVED)?.ack();
        Ok(id)
    })?;
    // Which path? On RoCE the routing table knows, so nothing is sent.
    id.resolve_route()?;
    channel.wait_for(RDMA_CM_EVENT_ROUTE_RESOLVED)?.ack();
    Ok(id)
}

/// Sends the ConnectRequest.
fn knock(id: &CmId) -> Result<()> {
    let _stage = stage("knock");
    // The request offers no resources and brings no private data: we only want to hear the answer.
    id.connect(&ConnParam::default())
}

/// The answer is a REJECTED event. Its status is the reason's number, its private data the server's own words.
fn read_reason(channel: &EventChannel) -> Result<()> {
    let _stage = stage("read_reason");
    let event = channel.wait_for(RDMA_CM_EVENT_REJECTED)?;
    if event.status() != CONSUMER_REJECT {
        // Not the program but the kernel refused: with reason 8, nobody listens on that port.
        return Err(event.into_error(RDMA_CM_EVENT_REJECTED));
    }
    // The private data is the event's: it must be copied before the ack. It comes padded with zeroes to 148 bytes.
    let (status, words) = (event.status(), event.private_data().to_vec());
    event.ack();
    say!("rejected with status {}", status_text(RDMA_CM_EVENT_REJECTED, status));
    say!("the server says: {}", preview(&words));
    Ok(())
}

/// An id goes before the channel that its events came through.
fn teardown(id: CmId, channel: EventChannel) {
    let _stage = stage("teardown");
    drop(id);
    drop(channel);
    say!("client clean-up is complete");
}

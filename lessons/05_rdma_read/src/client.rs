//! The client: writes its bytes into the server's memory, reads them back into another buffer, and compares.
//!
//! ```text
//! ──▶ SEND Only, ◀── SEND Only    the metadata, as in lesson 03
//! ──▶ WRITE, ◀── ACK              as in lesson 04
//! ──▶ READ Request                the server's address and rkey, and how many bytes
//! ◀── READ Response               the bytes; completes our READ
//! ```

use common::args::{Args, MetadataBy};
use common::cm::{
    RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_ROUTE_RESOLVED,
};
use common::{address, info, say, stage, Access, CmId, Error, EventChannel, MemoryRegion, Metadata, Result, SendWr};

use crate::{
    conn_param, create_resources, post_receive, receive_metadata, send_metadata, teardown, Resources, ACK_TIMEOUT,
};

pub fn run(args: &Args) -> Result<()> {
    let channel = EventChannel::create()?;
    let id = resolve(&channel, args)?;
    let resources = create_resources(&id)?;
    let source = register_source(&resources, &args.payload())?;
    let theirs = match args.metadata {
        MetadataBy::Send => {
            let receive = post_receive(&resources)?;
            connect(&id, &channel, &resources)?;
            send_metadata(&resources, &Metadata::of(&source))?;
            receive_metadata(&resources, receive)?
        }
        MetadataBy::PrivateData => {
            let private_data = connect(&id, &channel, &resources)?;
            read_private_data(&private_data)?
        }
    };
    check_room(&source, &theirs)?;
    write(&resources, &source, &theirs)?;
    let destination = read(&resources, source.len(), &theirs)?;
    compare(&source, &destination)?;
    disconnect(&id, &channel, &resources)?;
    teardown(resources, vec![source, destination], id, channel);
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

/// What we will write. REMOTE_READ, so that the rkey that we send is one: the server could READ here,
/// though all it wants to know is the length.
fn register_source(resources: &Resources, payload: &[u8]) -> Result<MemoryRegion> {
    stage("register_source");
    let mut source = resources.pd.reg_mr(payload.len(), Access::REMOTE_READ)?;
    source.write(0, payload)?;
    Ok(source)
}

/// Sends the ConnectRequest, which carries our QP's number, and waits for the ConnectReply, which carries the server's
/// and its private data.
fn connect(id: &CmId, channel: &EventChannel, resources: &Resources) -> Result<Vec<u8>> {
    stage("connect");
    id.connect(&conn_param())?;
    resources.qp.dump();
    let event = channel.wait_for(RDMA_CM_EVENT_ESTABLISHED)?;
    // The private data is the event's: it must be copied before the ack.
    let private_data = event.private_data().to_vec();
    event.ack();
    resources.qp.dump();
    Ok(private_data)
}

/// The other way: the 16 bytes came with the ConnectReply, padded with zeroes to 196.
fn read_private_data(private_data: &[u8]) -> Result<Metadata> {
    stage("read_private_data");
    let metadata = Metadata::decode(private_data)?;
    info!("the peer's metadata: {metadata}");
    Ok(metadata)
}

/// The server may have refused, or have less room than we need.
fn check_room(source: &MemoryRegion, theirs: &Metadata) -> Result<()> {
    stage("check_room");
    if *theirs == Metadata::REFUSAL {
        let what = format!("the server has no buffer for our {} bytes", source.len());
        return Err(Error::content(what, "Ask for 1 MiB at most, and give both sides the same --metadata"));
    }
    if source.len() > theirs.len as usize {
        let what = format!("our {} bytes do not fit into the server's {}", source.len(), theirs.len);
        return Err(Error::content(what, "Write less, or let the metadata go by SEND (--metadata send on both sides)"));
    }
    Ok(())
}

/// One-sided: the request carries the server's address and rkey, and the server's device does the rest. The completion
/// means that its device has the bytes; that its *program* knows, it does not mean.
fn write(resources: &Resources, source: &MemoryRegion, theirs: &Metadata) -> Result<()> {
    stage("write");
    let wr_id = resources.qp.post_send(&SendWr::rdma_write(source, 0..source.len(), theirs))?;
    resources.cq.wait_for(wr_id, "an RDMA WRITE")?;
    Ok(())
}

/// One-sided too: the server's device answers. The bytes go into a second buffer, which our device must be allowed to write.
fn read(resources: &Resources, len: usize, theirs: &Metadata) -> Result<MemoryRegion> {
    stage("read");
    let destination = resources.pd.reg_mr(len, Access::LOCAL_WRITE)?;
    let wr_id = resources.qp.post_send(&SendWr::rdma_read(&destination, 0..len, theirs))?;
    resources.cq.wait_for(wr_id, "an RDMA READ")?;
    Ok(destination)
}

/// What came back must be what went out.
fn compare(source: &MemoryRegion, destination: &MemoryRegion) -> Result<()> {
    stage("compare");
    let (sent, received) = (source.read(0..source.len())?, destination.read(0..destination.len())?);
    match first_difference(&sent, &received) {
        None => {
            say!("SUCCESS, source and destination buffers match");
            Ok(())
        }
        Some(at) => {
            let what = format!("source and destination buffers differ, first at byte {at}");
            Err(Error::content(what, "Look in the capture at what the WRITE and the READ Response carry"))
        }
    }
}

/// The first byte that differs, or is there on one side only.
fn first_difference(left: &[u8], right: &[u8]) -> Option<usize> {
    let common = left.len().min(right.len());
    let differs = (0..common).find(|at| left[*at] != right[*at]);
    differs.or((left.len() != right.len()).then_some(common))
}

/// Moves our QP to ERR and sends the DisconnectRequest. The event comes when the server has answered.
fn disconnect(id: &CmId, channel: &EventChannel, resources: &Resources) -> Result<()> {
    stage("disconnect");
    id.disconnect()?;
    resources.qp.dump();
    channel.wait_for(RDMA_CM_EVENT_DISCONNECTED)?.ack();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::first_difference;

    #[test]
    fn a_difference_is_found_where_it_is() {
        assert_eq!(first_difference(b"RDMA", b"RDMA"), None);
        assert_eq!(first_difference(b"RDMA", b"RDmA"), Some(2));
        assert_eq!(first_difference(b"RDMA", b"RDM"), Some(3));
    }
}

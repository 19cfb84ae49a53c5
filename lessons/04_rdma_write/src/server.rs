//! The server: gives the client memory to write, and does nothing until the client has hung up.
//!
//! ```text
//! ◀── SEND Only, ──▶ SEND Only    the metadata, as in lesson 03
//! ◀── WRITE                       our device puts the bytes where the packet says; no completion, no event
//! ──▶ ACK                         sent by our device, not by us
//! ```

use common::args::{Args, MetadataBy};
use common::cm::{RDMA_CM_EVENT_CONNECT_REQUEST, RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_ESTABLISHED};
use common::narrate::preview;
use common::{address, say, stage, Access, CmId, ConnParam, Error, EventChannel, MemoryRegion, Metadata, Result};

use crate::{
    conn_param, create_resources, post_receive, receive_metadata, send_metadata, teardown, Resources, ACK_TIMEOUT,
    BACKLOG, MAX_LEN, PRIVATE_DATA_LEN,
};

pub fn run(args: &Args) -> Result<()> {
    let listening = EventChannel::create()?;
    let listener = listen(&listening, args)?;
    for _ in args.clients() {
        let channel = EventChannel::create()?;
        let id = wait_connect_request(&listening, &channel)?;
        let resources = create_resources(&id)?;
        let buffer = match args.metadata {
            MetadataBy::Send => {
                let receive = post_receive(&resources)?;
                accept(&id, &channel, &resources, Vec::new())?;
                let wanted = receive_metadata(&resources, receive)?;
                let buffer = register_wanted(&resources, &wanted)?;
                send_metadata(&resources, &Metadata::of(&buffer))?;
                buffer
            }
            MetadataBy::PrivateData => {
                let buffer = register_buffer(&resources, PRIVATE_DATA_LEN)?;
                accept(&id, &channel, &resources, Metadata::of(&buffer).encode().to_vec())?;
                buffer
            }
        };
        wait_disconnect(&id, &channel, &resources)?;
        show_memory(&buffer)?;
        teardown(resources, vec![buffer], id, channel);
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
fn accept(id: &CmId, channel: &EventChannel, resources: &Resources, private_data: Vec<u8>) -> Result<()> {
    stage("accept");
    id.set_ack_timeout(ACK_TIMEOUT)?;
    id.accept(&ConnParam { private_data, ..conn_param() })?;
    resources.qp.dump();
    channel.wait_for(RDMA_CM_EVENT_ESTABLISHED)?.ack();
    resources.qp.dump();
    Ok(())
}

/// A buffer as long as the client's. A longer one than we are willing to give is refused, in words that the client
/// understands: a buffer of no bytes.
fn register_wanted(resources: &Resources, wanted: &Metadata) -> Result<MemoryRegion> {
    if wanted.len == 0 || wanted.len > MAX_LEN {
        send_metadata(resources, &Metadata::REFUSAL)?;
        let what = format!("the client asked for a buffer of {} bytes: 1 to {MAX_LEN} are allowed", wanted.len);
        return Err(Error::content(what, "Let the client ask for less"));
    }
    register_buffer(resources, wanted.len as usize)
}

/// Memory that the client may WRITE and READ without our doing.
fn register_buffer(resources: &Resources, len: usize) -> Result<MemoryRegion> {
    stage("register_buffer");
    // REMOTE_WRITE needs LOCAL_WRITE too: in the end it is our device that writes.
    resources.pd.reg_mr(len, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ)
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

/// The client's goodbye is how we know that its WRITE is done: nothing else has told this program about it.
fn show_memory(buffer: &MemoryRegion) -> Result<()> {
    stage("show_memory");
    let bytes = buffer.read(0..buffer.len())?;
    say!("the server's memory holds {} bytes: {}", bytes.len(), preview(&bytes));
    Ok(())
}

//! The server: gives the client memory to write, and does nothing until the client has hung up.
//!
//! ```text
//! ◀── SEND Only, ──▶ SEND Only    the metadata, as in lesson 03
//! ◀── WRITE                       our device puts the bytes where the packet says; no completion, no event
//! ──▶ ACK                         sent by our device, not by us
//! ```

use common::args::Args;
use common::cm::{RDMA_CM_EVENT_CONNECT_REQUEST, RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_ESTABLISHED};
use common::{address, fast, info, say, stage, CmId, ConnParam, Error, EventChannel, MemoryRegion, Metadata, Result};

use crate::memory::{register_buffer, show_memory};
use crate::{
    create_resources, post_receive, receive_metadata, send, teardown, Resources, ACK_TIMEOUT, BACKLOG, CONN_PARAM,
    MAX_LEN, METADATA, OWN_LEN,
};

pub fn run(args: &Args) -> Result<()> {
    let listening = EventChannel::create()?;
    let listener = listen(&listening, args)?;
    let mut clients = args.clients();
    while clients.more() {
        let (id, asked) = wait_connect_request(&listening)?;
        // A failure concerns one client. It's logged, everything that client had is dropped, and the next one is served.
        clients.note(id.peer_name(), serve(id, &asked, args));
    }
    stop_listening(listener, listening);
    clients.result()
}

fn serve(id: CmId, asked: &ConnParam, args: &Args) -> Result<()> {
    let _stage = stage("serve");
    // Its events get a channel of their own. The next client's knock comes through the listener's, and not between them.
    let channel = EventChannel::create()?;
    id.migrate_id(&channel)?;
    let resources = create_resources(&id)?;
    let (buffer, connected) = match args.text(&METADATA) {
        "private-data" => offer(&id, &channel, &resources, asked)?,
        _ => answer(&id, &channel, &resources, asked)?,
    };
    wait_disconnect(&id, &channel, &resources, connected)?;
    show_memory(&buffer)?;
    teardown(resources, vec![buffer], id, channel);
    Ok(())
}

/// Listening takes an id, as in TCP it takes a socket. Bound to `::`, it serves every RDMA device of this machine.
fn listen(channel: &EventChannel, args: &Args) -> Result<CmId> {
    let _stage = stage("listen");
    address::try_each(&args.address, args.port, |address| {
        let id = channel.create_id()?;
        id.bind_addr(address)?;
        // Returns at once, and sends nothing, because a listener is only an entry in a table of our own kernel.
        id.listen(BACKLOG)?;
        say!("listening on {address}");
        Ok(id)
    })
}

/// The id goes first, because its events came through the channel.
fn stop_listening(listener: CmId, listening: EventChannel) {
    let _stage = stage("stop_listening");
    drop(listener);
    drop(listening);
    say!("server shut-down is complete");
}

/// The knock brings a new id, which stands for the client, and with it what the client asks for.
fn wait_connect_request(listening: &EventChannel) -> Result<(CmId, ConnParam)> {
    let _stage = stage("wait_connect_request");
    let event = listening.wait_for(RDMA_CM_EVENT_CONNECT_REQUEST)?;
    Ok((event.id(), event.conn_param()))
}

/// Sends our metadata along with the ConnectReply. So the buffer has to be there first, and it's we who choose its length.
fn offer(id: &CmId, channel: &EventChannel, resources: &Resources, asked: &ConnParam) -> Result<(MemoryRegion, bool)> {
    let buffer = register_buffer(resources, OWN_LEN)?;
    info!("our metadata: {}", Metadata::of(&buffer));
    let connected = accept(id, channel, resources, asked, Metadata::of(&buffer).encode().to_vec())?;
    Ok((buffer, connected))
}

/// Waits for the client to SEND how much it wants, and answers with a SEND of our metadata.
fn answer(id: &CmId, channel: &EventChannel, resources: &Resources, asked: &ConnParam) -> Result<(MemoryRegion, bool)> {
    let receive = post_receive(resources)?;
    let connected = accept(id, channel, resources, asked, Vec::new())?;
    let wanted = receive_metadata(resources, channel, &receive)?;
    let buffer = register_wanted(resources, channel, &wanted)?;
    send_metadata(resources, channel, &Metadata::of(&buffer))?;
    Ok((buffer, connected))
}

/// `rdma_accept` moves our QP to RTR and RTS, and sends the ConnectReply. The client's ReadyToUse makes it ESTABLISHED. Returns
/// false if the client has hung up before its ReadyToUse arrived.
fn accept(id: &CmId, channel: &EventChannel, resources: &Resources, asked: &ConnParam, data: Vec<u8>) -> Result<bool> {
    let _stage = stage("accept");
    id.set_ack_timeout(ACK_TIMEOUT)?;
    // Nobody else compares the two sides' numbers, and a server must not count on more than the client can do.
    id.accept(&ConnParam { private_data: data, ..CONN_PARAM.clamped_to(asked) })?;
    resources.qp.dump();
    let event = channel.wait_for_one_of(&[RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_DISCONNECTED])?.event();
    resources.qp.dump();
    say!("a connection from {} is accepted", id.peer_name());
    Ok(event == RDMA_CM_EVENT_ESTABLISHED)
}

/// Registers a buffer as long as the client's, or refuses, with a buffer of no bytes, if that's more than we give.
fn register_wanted(resources: &Resources, channel: &EventChannel, wanted: &Metadata) -> Result<MemoryRegion> {
    say!("the client's buffer: {wanted}; it asks for one of {} bytes", wanted.len);
    if wanted.len == 0 || wanted.len > MAX_LEN {
        send_metadata(resources, channel, &Metadata::REFUSAL)?;
        let what = format!("the client asked for a buffer of {} bytes: 1 to {MAX_LEN} are allowed", wanted.len);
        return Err(Error::content(what, "Let the client ask for less"));
    }
    register_buffer(resources, wanted.len as usize)
}

/// When the ACK comes, the client has our message. If the client hangs up instead, it wants nothing more from us, and only the
/// client knows whether it has the message, because a device that has hung up sends no ACK.
fn send_metadata(resources: &Resources, channel: &EventChannel, metadata: &Metadata) -> Result<()> {
    let _stage = stage("send_metadata");
    info!("our metadata: {metadata}");
    let sent = send(resources, &metadata.encode())?;
    resources.cq.wait_for_or_cm_event(sent, channel, "a SEND of our metadata").map(drop)
}

/// The client goes first, and our own `rdma_disconnect` answers. Without that DisconnectReply it would wait until it times out.
fn wait_disconnect(id: &CmId, channel: &EventChannel, resources: &Resources, connected: bool) -> Result<()> {
    let _stage = stage("wait_disconnect");
    fast!("from here on the client WRITEs when it likes: nothing tells this program, and it waits for the goodbye");
    if connected {
        channel.wait_for(RDMA_CM_EVENT_DISCONNECTED)?.ack();
    }
    say!("the client has disconnected");
    id.disconnect()?;
    resources.qp.dump();
    Ok(())
}

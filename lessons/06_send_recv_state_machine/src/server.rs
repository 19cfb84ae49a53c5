//! The server: its half of the exchange begins when the client's MR message arrives.
//!
//! ```text
//! ◀── SEND MR           the client's memory; then
//! ──▶ SEND MR           ours
//! ──▶ WRITE             into the client's memory (with -m read: READ)
//! ◀── WRITE             into ours: no completion, no event
//! ──▶ SEND DONE         we are done with the client's memory
//! ◀── SEND DONE         the client is done with ours: now we may look
//! ```

use common::args::Args;
use common::cm::{RDMA_CM_EVENT_CONNECT_REQUEST, RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_ESTABLISHED};
use common::{address, say, stage, CmId, ConnParam, EventChannel, Result};

use crate::exchange::{register_buffers, Exchange};
use crate::machine::Role;
use crate::memory::show_memory;
use crate::{create_resources, post_receive, teardown, Resources, ACK_TIMEOUT, BACKLOG, CONN_PARAM};

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
    let buffers = register_buffers(&resources, args)?;
    let receives = [post_receive(&resources)?, post_receive(&resources)?];
    let connected = accept(&id, &channel, &resources, asked)?;
    let exchange = Exchange { role: Role::Server, args, resources: &resources, channel: &channel, buffers: &buffers };
    exchange.run(&receives)?;
    show_memory(&buffers.destination)?;
    wait_disconnect(&id, &channel, &resources, connected)?;
    teardown(resources, vec![buffers.source, buffers.destination], id, channel);
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

/// `rdma_accept` moves our QP to RTR and RTS, and sends the ConnectReply. The client's ReadyToUse makes it ESTABLISHED. Returns
/// false if the client has hung up before its ReadyToUse arrived.
fn accept(id: &CmId, channel: &EventChannel, resources: &Resources, asked: &ConnParam) -> Result<bool> {
    let _stage = stage("accept");
    id.set_ack_timeout(ACK_TIMEOUT)?;
    // Nobody else compares the two sides' numbers, and a server must not count on more than the client can do.
    id.accept(&CONN_PARAM.clamped_to(asked))?;
    resources.qp.dump();
    let event = channel.wait_for_one_of(&[RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_DISCONNECTED])?.event();
    resources.qp.dump();
    say!("a connection from {} is accepted", id.peer_name());
    Ok(event == RDMA_CM_EVENT_ESTABLISHED)
}

/// The client goes first, and our own `rdma_disconnect` answers. Without that DisconnectReply it would wait until it times out.
fn wait_disconnect(id: &CmId, channel: &EventChannel, resources: &Resources, connected: bool) -> Result<()> {
    let _stage = stage("wait_disconnect");
    if connected {
        channel.wait_for(RDMA_CM_EVENT_DISCONNECTED)?.ack();
    }
    say!("the client has disconnected");
    id.disconnect()?;
    resources.qp.dump();
    Ok(())
}

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

use common::args::{Args, Mode};
use common::cm::{RDMA_CM_EVENT_CONNECT_REQUEST, RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_ESTABLISHED};
use common::{address, say, stage, CmId, Error, EventChannel, Result};

use crate::exchange::{exchange, post_receives, register_buffers, show_words};
use crate::machine::Role;
use crate::{conn_param, create_resources, mode_byte, teardown, Resources, ACK_TIMEOUT, BACKLOG};

pub fn run(args: &Args) -> Result<()> {
    let listening = EventChannel::create()?;
    let listener = listen(&listening, args)?;
    for _ in args.clients() {
        let channel = EventChannel::create()?;
        let id = wait_connect_request(&listening, &channel, args.mode)?;
        let resources = create_resources(&id)?;
        let mut buffers = register_buffers(&resources, args.mode, "the server was here")?;
        let receives = post_receives(&resources, &buffers)?;
        accept(&id, &channel, &resources)?;
        exchange(Role::Server, args.mode, &resources, &mut buffers, &receives)?;
        show_words(args.mode, &buffers)?;
        wait_disconnect(&id, &channel, &resources)?;
        teardown(resources, buffers, id, channel);
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
fn wait_connect_request(listening: &EventChannel, channel: &EventChannel, mode: Mode) -> Result<CmId> {
    stage("wait_connect_request");
    let event = listening.wait_for(RDMA_CM_EVENT_CONNECT_REQUEST)?;
    let id = event.id();
    // The private data is the event's: it must be copied before the ack.
    let theirs = event.private_data().first().copied();
    event.ack();
    // Its further events get a channel of their own: the next client's knock then waits at the listener's, and does not
    // come between this client's events.
    id.migrate_id(channel)?;
    if let Some(address) = id.peer_addr() {
        say!("{address} knocked");
    }
    if theirs != Some(mode_byte(mode)) {
        return Err(refuse(&id, mode, theirs));
    }
    Ok(id)
}

/// Two programs in different modes would wait for each other: better to say no now, and why.
fn refuse(id: &CmId, mode: Mode, theirs: Option<u8>) -> Error {
    stage("refuse");
    let theirs = [Mode::Write, Mode::Read].into_iter().find(|mode| theirs == Some(mode_byte(*mode)));
    let why = match theirs {
        Some(theirs) => format!("the server runs in mode {mode:?}, the client in mode {theirs:?}"),
        None => "the client does not say in which mode it runs".into(),
    };
    match id.reject(why.as_bytes()) {
        Ok(()) => Error::content(why, "Run lesson 06 on both sides, with the same -m"),
        Err(error) => error,
    }
}

/// `rdma_accept` moves our QP to RTR and RTS, and sends the ConnectReply. The client's ReadyToUse makes it ESTABLISHED.
fn accept(id: &CmId, channel: &EventChannel, resources: &Resources) -> Result<()> {
    stage("accept");
    id.set_ack_timeout(ACK_TIMEOUT)?;
    id.accept(&conn_param())?;
    resources.qp.dump();
    channel.wait_for(RDMA_CM_EVENT_ESTABLISHED)?.ack();
    resources.qp.dump();
    Ok(())
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

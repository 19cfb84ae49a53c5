//! The server: listens, and answers each knock with a reasoned no.
//!
//! ```text
//! ◀── ConnectRequest    becomes the event CONNECT_REQUEST
//! ──▶ ConnectReject     sent by rdma_reject
//! ```

use common::args::Args;
use common::cm::{event::event_name, RDMA_CM_EVENT_CONNECT_REQUEST};
use common::{address, info, say, stage, CmEvent, CmId, EventChannel, Result};

use crate::{BACKLOG, REASON};

pub fn run(args: &Args) -> Result<()> {
    let channel = EventChannel::create()?;
    let listener = listen(&channel, args)?;
    for _ in args.clients() {
        serve(&channel)?;
    }
    stop_listening(listener, channel);
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

/// The event loop: takes events until one client has been answered. Whatever else happens is shown and passed over.
fn serve(channel: &EventChannel) -> Result<()> {
    stage("serve");
    loop {
        let event = channel.get_cm_event()?;
        match event.event() {
            RDMA_CM_EVENT_CONNECT_REQUEST => return reject(event),
            other => info!("not our business: {}", event_name(other)),
        }
        // The event is dropped here, and with that acknowledged.
    }
}

/// The knock brought a new id, `event->id`: it is the client. The listener's own id stays free for the next knock.
fn reject(event: CmEvent) -> Result<()> {
    stage("reject");
    let client = event.id();
    // Frees the event and its private data, but not the id, which is ours from now on.
    event.ack();
    if let Some(address) = client.peer_addr() {
        say!("{address} knocked");
    }
    client.reject(REASON.as_bytes())
    // The client's id is destroyed here: nothing more will come of it.
}

/// An id goes before the channel that its events came through.
fn stop_listening(listener: CmId, channel: EventChannel) {
    stage("stop_listening");
    drop(listener);
    drop(channel);
}

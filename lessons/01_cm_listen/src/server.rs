//! The server: listens, and answers each knock with a reasoned no.
//!
//! ```text
//! ◀── ConnectRequest    becomes the event CONNECT_REQUEST
//! ──▶ ConnectReject     sent by rdma_reject
//! ```

use common::args::Args;
use common::cm::RDMA_CM_EVENT_CONNECT_REQUEST;
use common::{address, info, say, stage, CmId, EventChannel, Result};

use crate::{BACKLOG, REASON};

pub fn run(args: &Args) -> Result<()> {
    let listening = EventChannel::create()?;
    let listener = listen(&listening, args)?;
    let mut clients = args.clients();
    while clients.more() {
        let client = wait_connect_request(&listening)?;
        // A failure is one client's: it is logged, and the next one is served.
        clients.note(client.peer_name(), reject(client));
    }
    stop_listening(listener, listening);
    clients.result()
}

/// An id is what a socket is to TCP. Bound to the address `::` it serves every RDMA device of this machine.
fn listen(channel: &EventChannel, args: &Args) -> Result<CmId> {
    let _stage = stage("listen");
    address::try_each(&args.address, args.port, |address| {
        let id = channel.create_id()?;
        id.bind_addr(address)?;
        // Returns at once. Nothing is sent: a listener is a promise inside this machine.
        id.listen(BACKLOG)?;
        say!("listening on {address}");
        Ok(id)
    })
}

/// The event loop: takes events until a client knocks. Whatever else happens is shown and passed over.
fn wait_connect_request(listening: &EventChannel) -> Result<CmId> {
    let _stage = stage("wait_connect_request");
    loop {
        let event = listening.get_cm_event()?;
        match event.event() {
            // The knock brought a new id, `event->id`: it is the client. The listener's own id stays free for the next
            // knock. The ack frees the event and its private data, but not the id, which is ours from now on.
            RDMA_CM_EVENT_CONNECT_REQUEST => return Ok(event.id()),
            other => info!("not our business: {other}"),
        }
        // The event is dropped here, and with that acknowledged.
    }
}

/// Sends the ConnectReject with our reason. The client's id is destroyed in the end: nothing more will come of it.
fn reject(client: CmId) -> Result<()> {
    let _stage = stage("reject");
    say!("{} knocked", client.peer_name());
    client.reject(REASON.as_bytes())
}

/// An id goes before the channel that its events came through.
fn stop_listening(listener: CmId, listening: EventChannel) {
    let _stage = stage("stop_listening");
    drop(listener);
    drop(listening);
    say!("server shut-down is complete");
}

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
        // A failure concerns one client. It's logged, and the next one is served.
        clients.note(client.peer_name(), reject(client));
    }
    stop_listening(listener, listening);
    clients.result()
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

/// Takes events until a client knocks. Whatever else happens is logged and passed over.
fn wait_connect_request(listening: &EventChannel) -> Result<CmId> {
    let _stage = stage("wait_connect_request");
    loop {
        let event = listening.get_cm_event()?;
        match event.event() {
            // The knock brings a new id, which stands for the client, so that the listener's own stays free for the next one.
            // The event is dropped on return, and that acks it. The new id isn't part of the event, so it's ours to keep.
            RDMA_CM_EVENT_CONNECT_REQUEST => return Ok(event.id()),
            other => info!("not our business: {other}"),
        }
        // The event is dropped here, and that acks it.
    }
}

/// Sends the ConnectReject with our reason. The client's id is dropped at the end, since there's nothing more to say.
fn reject(client: CmId) -> Result<()> {
    let _stage = stage("reject");
    say!("{} knocked", client.peer_name());
    client.reject(REASON.as_bytes())
}

/// The id goes first, because its events came through the channel.
fn stop_listening(listener: CmId, listening: EventChannel) {
    let _stage = stage("stop_listening");
    drop(listener);
    drop(listening);
    say!("server shut-down is complete");
}

//! The puzzle. Two small programs: the client SENDs a text, the server answers with a text of its own, the client hangs up.
//! There are three servers, a, b and c, and two clients, a and b. They differ in one function each, which has a file of its
//! own. The client says:
//!
//! ```text
//! $ lesson-07 client -a server --puzzle a            $ lesson-07 server --puzzle a
//! connected
//! connected. posting send...
//! wc->status = 0 (IBV_WC_SUCCESS)
//! send completed successfully.
//! wc->status = 5 (IBV_WC_WR_FLUSH_ERR)
//! disconnected.
//! ```
//!
//! Its SEND succeeded, and then its receive failed with a flush error. Is it right to return when the status is a flush
//! error, as client b does? What is the cause, and on which side?

use common::args::Args;
use common::cm::RDMA_CM_EVENT_DISCONNECTED;
use common::narrate::preview;
use common::wc::IBV_WC_RECV;
use common::{say, stage, CmEvent, CmId, Error, EventChannel, Result, Woken, WorkCompletion};

use crate::client::{connect, resolve};
use crate::server::listen;
use crate::{create_resources, message, post_receive, send, PostedReceive, Resources};
use crate::{ACK_TIMEOUT, CONN_PARAM, PUZZLE, TEXT};

mod client_a;
mod client_b;
mod server_a;
mod server_b;
mod server_c;

/// What an event means to the server's loop.
pub enum Next {
    GoOn,
    PeerIsGone,
}

/// The server, and the one client that it talks to.
pub struct Server {
    peer: Option<(CmId, Resources, PostedReceive)>,
    channel: EventChannel,
}

/// Takes event after event, and lets `on_event` say what each means.
pub fn server(args: &Args) -> Result<()> {
    let on_event = match args.text(&PUZZLE) {
        "a" => server_a::on_event,
        "b" => server_b::on_event,
        _ => server_c::on_event,
    };
    let _stage = stage("server");
    let mut server = Server { peer: None, channel: EventChannel::create()? };
    let _listener = listen(&server.channel, args)?;
    let mut clients = args.clients();
    while clients.more() {
        let event = server.channel.get_cm_event()?;
        if let Next::PeerIsGone = on_event(&mut server, &event)? {
            clients.note(event.id().peer_name(), Ok(()));
        }
    }
    clients.result()
}

impl Server {
    /// Accepts the client, and waits for its text: the client speaks first, and as soon as its own side is connected.
    fn on_connect_request(&mut self, event: &CmEvent) -> Result<Next> {
        let _stage = stage("on_connect_request");
        let id = event.id();
        say!("received connection request.");
        let resources = create_resources(&id)?;
        let receive = post_receive(&resources)?;
        id.set_ack_timeout(ACK_TIMEOUT)?;
        id.accept(&CONN_PARAM.clamped_to(&event.conn_param()))?;
        let wc = resources.cq.wait_for(receive.wr_id, "a RECV with the client's text")?;
        say!("received message: {}", preview(&message(&receive, &wc)?));
        self.peer = Some((id, resources, receive));
        Ok(Next::GoOn)
    }

    /// Answers.
    fn on_connection(&mut self) -> Result<Next> {
        let _stage = stage("on_connection");
        if let Some((_, resources, _)) = &self.peer {
            say!("connected. posting send...");
            let text = format!("message from passive/server side with pid {:07}", std::process::id());
            let sent = send(resources, text.as_bytes())?;
            resources.cq.wait_for_or_cm_event(sent, &self.channel, "a SEND of our text")?;
            say!("send completed successfully.");
        }
        Ok(Next::GoOn)
    }

    /// Answers the goodbye, and gives back all that this client had.
    fn on_disconnect(&mut self) -> Result<Next> {
        let _stage = stage("on_disconnect");
        say!("peer disconnected.");
        if let Some((id, ..)) = self.peer.take() {
            id.disconnect()?;
        }
        Ok(Next::PeerIsGone)
    }
}

/// SENDs a text, waits for the server's, and hangs up; or sees the server hang up first.
pub fn client(args: &Args) -> Result<()> {
    let on_completion = match args.text(&PUZZLE) {
        "a" => client_a::on_completion,
        _ => client_b::on_completion,
    };
    let channel = EventChannel::create()?;
    let id = resolve(&channel, args)?;
    let resources = create_resources(&id)?;
    let receive = post_receive(&resources)?;
    connect(&id, &channel, &resources, Vec::new())?;
    let _stage = stage("client");
    say!("connected. posting send...");
    let sent = send(&resources, args.text(&TEXT).as_bytes())?;
    on_completion(&resources.cq.wait_for(sent, "a SEND of our text")?, &receive)?;
    let answer = resources.cq.wait_for_or_cm_event(receive.wr_id, &channel, "a RECV with the server's text")?;
    let answered = matches!(answer, Woken::Completion(_));
    if let Woken::Completion(wc) = answer {
        on_completion(&wc, &receive)?;
    }
    // Ours is the first goodbye, or the answer to the server's. It flushes the receive, if that is still posted.
    id.disconnect()?;
    if !answered {
        for wc in flushed(&resources)? {
            on_completion(&wc, &receive)?;
        }
    }
    channel.wait_for(RDMA_CM_EVENT_DISCONNECTED)?.ack();
    say!("disconnected.");
    match answered {
        true => Ok(()),
        false => Err(Error::content("the server hung up before it answered", "Look at the server's log")),
    }
}

fn flushed(resources: &Resources) -> Result<Vec<WorkCompletion>> {
    loop {
        resources.cq.req_notify()?;
        let batch = resources.cq.poll()?;
        if !batch.is_empty() {
            return Ok(batch);
        }
        resources.channel.get_cq_event("the receive that the disconnect flushes")?;
    }
}

fn show(wc: &WorkCompletion, receive: &PostedReceive) -> Result<()> {
    match wc.opcode() {
        Some(IBV_WC_RECV) => say!("received message: {}", preview(&message(receive, wc)?)),
        _ => say!("send completed successfully."),
    }
    Ok(())
}

fn show_status(wc: &WorkCompletion) {
    say!("wc->status = {} ({})", wc.status.0, wc.status);
}

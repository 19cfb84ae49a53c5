//! The server: its half of the exchange begins when the client's MR message arrives.
//!
//! ```text
//! ◀── SEND MR           the client's memory; then
//! ──▶ SEND MR           ours
//! ──▶ WRITE             into the client's memory (with -m read: READ)
//! ◀── WRITE             into ours: no completion, no event
//! ──▶ SEND DONE         we are done with the client's memory
//! ◀── SEND DONE         the client is done with ours: now we may look
//! ◀── DisconnectRequest, ──▶ DisconnectReply    the other way round with --closer server
//! ```

use common::args::Args;
use common::cm::{RDMA_CM_EVENT_CONNECT_REQUEST, RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_ESTABLISHED};
use common::{address, say, stage, CmId, ConnParam, Error, EventChannel, Result};

use crate::close::close;
use crate::exchange::{register_buffers, Exchange};
use crate::machine::Role;
use crate::memory::show_memory;
use crate::{
    create_resources, post_receive, puzzle, teardown, terms, Resources, ACK_TIMEOUT, BACKLOG, CLOSER, CONN_PARAM,
    PUZZLE, RECEIVES,
};

pub fn run(args: &Args) -> Result<()> {
    if args.text(&PUZZLE) != "no" {
        return puzzle::server(args);
    }
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
    check_terms(&id, asked, args)?;
    let resources = create_resources(&id)?;
    let buffers = register_buffers(&resources, args)?;
    let receives = (0..RECEIVES).map(|_| post_receive(&resources)).collect::<Result<Vec<_>>>()?;
    if !accept(&id, &channel, &resources, asked)? {
        return Err(Error::content("the client hung up before anything was exchanged", "Its log says why"));
    }
    let mut posted = receives.iter().map(|receive| receive.wr_id).collect();
    let exchange = Exchange { role: Role::Server, args, resources: &resources, channel: &channel, buffers: &buffers };
    let outcome = exchange.run(&receives, &mut posted);
    // However it went, we close in good order. After a failure we don't wait for the other's goodbye, which may never come.
    let goes_first = args.text(&CLOSER) == "server" || outcome.is_err();
    let closed = close(goes_first, &id, &channel, &resources, &posted);
    // If both failed, the exchange failed first, and the rest is what followed from it.
    outcome.and(closed)?;
    show_memory(&buffers.destination)?;
    teardown(resources, vec![buffers.source, buffers.destination], id, channel);
    Ok(())
}

/// Listening takes an id, as in TCP it takes a socket. Bound to `::`, it serves every RDMA device of this machine.
pub fn listen(channel: &EventChannel, args: &Args) -> Result<CmId> {
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
    // The private data belongs to the event, so we copy it before the ack.
    let asked = ConnParam { private_data: event.private_data().to_vec(), ..event.conn_param() };
    Ok((event.id(), asked))
}

/// With different terms the two programs would wait for each other, so we'd rather say no now, and why.
fn check_terms(id: &CmId, asked: &ConnParam, args: &Args) -> Result<()> {
    let _stage = stage("check_terms");
    if asked.private_data.starts_with(&terms(args)) {
        return Ok(());
    }
    let why = "client and server differ in -m or --closer";
    id.reject(why.as_bytes())?;
    Err(Error::content(why, "Run lesson 07 on both sides, with the same -m and --closer"))
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

//! The server of both parts: memory for others to use, and for each client a queue pair.

use common::args::Args;
use common::narrate::preview;
use common::tcp::{listen, Peer};
use common::{say, stage, Access, Card, MemoryRegion, QueuePair, Result, SendWr};

use crate::by_hand::connect::{connect, fill_card};
use crate::by_hand::Desk;

pub fn run(args: &Args) -> Result<()> {
    let listener = listen(args)?;
    let mut clients = args.clients();
    while clients.more() {
        let peer = Peer::accept(&listener)?;
        clients.note(peer.name(), serve(peer, args));
    }
    clients.result()
}

/// Each message of the client asks for something. A card asks us to connect our queue pair to the client's.
fn serve(mut peer: Peer, args: &Args) -> Result<()> {
    let _stage = stage("serve");
    let desk = Desk::open(args)?;
    let memory = desk.pd.reg_mr(4096, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ)?;
    let qp = desk.create_qp()?;
    loop {
        match peer.hear()?.as_str() {
            "bye" => break,
            "answer me" => answer(&desk, &qp, &memory, &mut peer)?,
            card => lead_to(&Card::parse(card)?, &desk, &qp, &memory, &mut peer)?,
        }
    }
    say!("the memory holds {} bytes: {}", memory.len(), preview(&memory.read(0..memory.len())?));
    Ok(())
}

/// Connects our queue pair to the client's, whatever state it's in.
fn lead_to(theirs: &Card, desk: &Desk, qp: &QueuePair, memory: &MemoryRegion, peer: &mut Peer) -> Result<()> {
    let ours = fill_card(&desk.context, peer, qp, memory)?;
    connect(qp, &ours, theirs)?;
    // Not before, because the client WRITEs when it has read this, and then our queue pair must be ready.
    peer.tell(&ours.card.long())
}

/// Sends back what it receives, which `--part calls` asks for.
fn answer(desk: &Desk, qp: &QueuePair, memory: &MemoryRegion, peer: &mut Peer) -> Result<()> {
    let _stage = stage("answer");
    let receive = qp.post_recv(memory, 0..memory.len())?;
    peer.tell("posted")?;
    let received = desk.cq.wait_for(receive, "the client's SEND")?;
    let sent = qp.post_send(&SendWr::send(memory, 0..received.byte_len().unwrap_or(0)))?;
    desk.cq.wait_for(sent, "the ACK of our SEND").map(drop)
}

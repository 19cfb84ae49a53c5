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

/// Each message of the client's asks for something: its card for our queue pair to lead to its own.
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

/// Leads our queue pair to the client's, from whatever state it is in.
fn lead_to(theirs: &Card, desk: &Desk, qp: &QueuePair, memory: &MemoryRegion, peer: &mut Peer) -> Result<()> {
    let ours = fill_card(&desk.context, peer, qp, memory)?;
    connect(qp, &ours, theirs)?;
    // Only now: when the client reads this, our queue pair is ready.
    peer.tell(&ours.card.long())
}

/// Sends back what it receives: part two asks for it.
fn answer(desk: &Desk, qp: &QueuePair, memory: &MemoryRegion, peer: &mut Peer) -> Result<()> {
    let _stage = stage("answer");
    let receive = qp.post_recv(memory, 0..memory.len())?;
    peer.tell("posted")?;
    let received = desk.cq.wait_for(receive, "the client's SEND")?;
    let sent = qp.post_send(&SendWr::send(memory, 0..received.byte_len().unwrap_or(0)))?;
    desk.cq.wait_for(sent, "the ACK of our SEND").map(drop)
}

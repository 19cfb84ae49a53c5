//! The server: memory for others to use, and a queue pair for each that a client asks for.

use common::args::Args;
use common::narrate::preview;
use common::tcp::{listen, Peer};
use common::{say, stage, Access, Buffer, Card};

use crate::api::Rdma;
use crate::error::Result;
use crate::handle::Handle;
use crate::{pingpong, DEVICE, PINGPONG, WRONG};

pub fn run(args: &Args) -> common::Result<()> {
    let listener = listen(args)?;
    let mut clients = args.clients();
    while clients.more() {
        let peer = Peer::accept(&listener)?;
        let name = peer.name();
        let served = if args.flag(&PINGPONG) { pingpong::play(peer, args, false) } else { serve(peer, args) };
        clients.note(name, served.map_err(Into::into));
    }
    clients.result()
}

/// Each message of the client's asks for something. Its card asks for a queue pair that leads to its own; and if there is one
/// already, for a new start of it.
fn serve(mut peer: Peer, args: &Args) -> Result<()> {
    let _stage = stage("serve");
    let mut rdma = Rdma::open(args.text(&DEVICE))?;
    let buffer = Buffer::zeroed(4096)?;
    let (read, write) = (Access::LOCAL_WRITE | Access::REMOTE_READ, Access::REMOTE_WRITE);
    let mut mr = rdma.reg_mr(&buffer, 4096, read | write)?;
    let mut pairs: Vec<(u32, Handle)> = Vec::new();
    loop {
        match (peer.hear()?.as_str(), pairs.last()) {
            ("bye", _) => break,
            (rights @ ("read only" | "read and write"), _) => {
                rdma.dereg_mr(mr)?;
                mr = rdma.reg_mr(&buffer, 4096, if rights == "read only" { read } else { read | write })?;
            }
            ("answer me", Some((_, qp))) => answer(&rdma, *qp, mr, &mut peer)?,
            (card, _) => {
                let theirs = Card::parse(card)?;
                let known = pairs.iter().find(|(qpn, _)| *qpn == theirs.qpn).map(|(_, qp)| *qp);
                let qp = known.map_or_else(|| rdma.create_qp(64, 64), Ok)?;
                pairs.push((theirs.qpn, qp));
                let (ours, sgid_index) = rdma.card(qp, mr, &peer)?;
                rdma.move_qp(qp, &ours, &theirs, sgid_index, args.text(&WRONG))?;
                // Only now: when the client reads this, our queue pair is ready.
                peer.tell(&ours.long())?;
            }
        }
    }
    let bytes = buffer.read(0..buffer.len())?;
    say!("the memory holds {} bytes: {}", bytes.len(), preview(&bytes));
    Ok(())
}

/// Sends back what it receives.
fn answer(rdma: &Rdma, qp: Handle, mr: Handle, peer: &mut Peer) -> Result<()> {
    let _stage = stage("answer");
    rdma.post_receive(qp, mr, 4096)?;
    peer.tell("posted")?;
    let received = rdma.wait(qp, "the client's SEND")?;
    received.check()?;
    rdma.post_send(qp, mr, received.byte_len)?;
    rdma.wait(qp, "the ACK of our SEND")?.check()
}

//! The game of `ibv_rc_pingpong`, with that program or with this one: a SEND there, a SEND back, a thousand times.

use common::args::Args;
use common::tcp::Peer;
use common::{narrate, say, stage, Access, Buffer, Card};

use crate::api::Rdma;
use crate::error::Result;
use crate::handle::Handle;
use crate::wc::Opcode;
use crate::DEVICE;

/// `ibv_rc_pingpong`'s own numbers, unless it is told otherwise: rounds, and bytes in a message.
const ROUNDS: usize = 1000;
const SIZE: u64 = 4096;

/// The client goes first, with its card and with the first SEND.
pub fn play(mut peer: Peer, args: &Args, goes_first: bool) -> Result<()> {
    let _stage = stage("play");
    let mut rdma = Rdma::open(args.text(&DEVICE))?;
    let buffer = Buffer::zeroed(SIZE as usize)?;
    let mr = rdma.reg_mr(&buffer, buffer.len(), Access::LOCAL_WRITE)?;
    let qp = rdma.create_qp(4, 4)?;
    let (ours, sgid_index) = rdma.card(qp, mr, &peer)?;
    if goes_first {
        peer.tell(&ours.short())?;
    }
    let theirs = Card::parse_short(&peer.hear()?)?;
    rdma.move_qp(qp, &ours, &theirs, sgid_index, "nothing")?;
    rdma.post_receive(qp, mr, SIZE)?;
    if goes_first {
        peer.tell("done")?;
    } else {
        peer.tell(&ours.short())?;
        peer.hear()?;
    }
    rounds(&rdma, qp, mr, goes_first)?;
    say!("{ROUNDS} rounds of {SIZE} bytes each way");
    Ok(())
}

/// It is our turn when their SEND has come, and our last one is acknowledged.
fn rounds(rdma: &Rdma, qp: Handle, mr: Handle, goes_first: bool) -> Result<()> {
    let _stage = stage("rounds");
    let (mut posted, mut sent, mut received) = (0, 0, 0);
    while sent < ROUNDS || received < ROUNDS {
        if posted < ROUNDS && sent == posted && received == posted + usize::from(!goes_first) {
            rdma.post_send(qp, mr, SIZE)?;
            posted += 1;
        }
        let done = rdma.wait(qp, "the other side's SEND, or its ACK for ours")?;
        done.check()?;
        match done.opcode {
            Opcode::Receive => {
                received += 1;
                rdma.post_receive(qp, mr, SIZE)?;
            }
            _ => sent += 1,
        }
        if received == 2 {
            narrate::show_only(vec!["play".into()]);
        }
    }
    Ok(())
}

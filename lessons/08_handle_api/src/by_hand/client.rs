//! The client: one WRITE.

use common::args::Args;
use common::tcp::Peer;
use common::{say, stage, Access, MemoryRegion, Metadata, QueuePair, Result, SendWr};

use super::connect::meet;
use super::Desk;

const TEXT: &[u8] = b"Test message";

pub fn run(args: &Args) -> Result<()> {
    let mut peer = Peer::connect(args)?;
    let desk = Desk::open(args)?;
    let source = register_source(&desk)?;
    let qp = desk.create_qp()?;
    let theirs = meet(&desk.context, &mut peer, &qp, &source)?;
    let written = write(&desk, &qp, &source, &theirs);
    // However it went, we say goodbye over TCP, because without a connection manager nobody else does.
    peer.tell("bye")?;
    written
}

fn register_source(desk: &Desk) -> Result<MemoryRegion> {
    let _stage = stage("register_source");
    let source = desk.pd.reg_mr(TEXT.len(), Access::LOCAL_READ)?;
    source.write(0, TEXT)?;
    Ok(source)
}

/// As in lesson 04. From here on you can't see any more who moved the queue pair.
fn write(desk: &Desk, qp: &QueuePair, source: &MemoryRegion, theirs: &Metadata) -> Result<()> {
    let _stage = stage("write");
    let written = qp.post_send(&SendWr::rdma_write(source, 0..source.len(), theirs))?;
    desk.cq.wait_for(written, "the WRITE")?;
    say!("the WRITE is done");
    Ok(())
}

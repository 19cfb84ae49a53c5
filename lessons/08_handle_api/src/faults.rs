//! Requests that fail on purpose, what is then left of the queue pair, and its way back.

use common::args::{Args, Opt};
use common::tcp::Peer;
use common::{say, stage, Access, Buffer, Metadata};

use crate::api::Rdma;
use crate::error::Result;
use crate::handle::Handle;
use crate::{BEYOND_END, DEVICE, NO_LOCAL_WRITE, NO_PERMISSION, QUEUE_FULL, WRONG_RKEY};

pub const FAULTS: [&Opt; 5] = [&WRONG_RKEY, &BEYOND_END, &NO_PERMISSION, &NO_LOCAL_WRITE, &QUEUE_FULL];

/// Bytes in each request, and requests that a queue takes.
const LEN: u64 = 12;
const ROOM: u32 = 4;

pub fn faults(mut peer: Peer, args: &Args) -> Result<()> {
    let _stage = stage("faults");
    let mut rdma = Rdma::open(args.text(&DEVICE))?;
    let buffer = Buffer::zeroed(4096)?;
    buffer.write(0, b"Test message")?;
    let mr = rdma.reg_mr(&buffer, 4096, Access::LOCAL_WRITE)?;
    // The same memory once more; but our device may not write there, as it must for the answer to a READ.
    let no_rights = rdma.reg_mr(&buffer, 4096, Access::LOCAL_READ)?;
    let qp = rdma.create_qp(ROOM, ROOM)?;
    if args.flag(&NO_PERMISSION) {
        peer.tell("read only")?;
    }
    let Metadata { addr, rkey, len } = rdma.connect_qp(qp, mr, &mut peer, "nothing")?.memory;
    // Of so many bytes, the last one lies outside. The peer may have less, at any address: so this may wrap.
    let beyond_end = addr.wrapping_add(len.into()).wrapping_sub(LEN - 1);
    if args.flag(&QUEUE_FULL) {
        fill(&rdma, qp, mr, addr, rkey)?;
        return Ok(peer.tell("bye")?);
    }

    match () {
        () if args.flag(&WRONG_RKEY) => rdma.post_write(qp, mr, 0, addr, rkey ^ 1, LEN)?,
        () if args.flag(&BEYOND_END) => rdma.post_write(qp, mr, 0, beyond_end, rkey, LEN)?,
        () if args.flag(&NO_LOCAL_WRITE) => rdma.post_read(qp, no_rights, 0, addr, rkey, LEN)?,
        () => rdma.post_write(qp, mr, 0, addr, rkey, LEN)?,
    };
    let refused = rdma.wait(qp, "a request that fails")?;
    rdma.table.pair(qp)?.qp.dump();
    say!("the request: {refused:?}");
    rdma.post_write(qp, mr, 0, addr, rkey, LEN)?;
    say!("the next one, without a fault: {:?}", rdma.wait(qp, "a request behind it")?);
    recover(&rdma, &mut peer, qp, mr)?;
    Ok(peer.tell("bye")?)
}

/// ERR → RESET → INIT → RTR → RTS, on both sides.
fn recover(rdma: &Rdma, peer: &mut Peer, qp: Handle, mr: Handle) -> Result<()> {
    let _stage = stage("recover");
    peer.tell("read and write")?;
    let remote = rdma.connect_qp(qp, mr, peer, "nothing")?.memory;
    rdma.post_write(qp, mr, 0, remote.addr, remote.rkey, LEN)?;
    let wc = rdma.wait(qp, "a WRITE after the new start")?;
    say!("after a new start: {wc:?}");
    wc.check()
}

/// Posts until no more is taken. Each completion that is polled makes room for one request.
fn fill(rdma: &Rdma, qp: Handle, mr: Handle, addr: u64, rkey: u32) -> Result<()> {
    let _stage = stage("fill");
    let post = || rdma.post_write(qp, mr, 0, addr, rkey, LEN);
    for _ in 0..ROOM {
        post()?;
    }
    if let Err(refused) = post() {
        say!("{ROOM} are posted; the next one: {refused}");
    }
    rdma.wait(qp, "the first of them")?.check()?;
    post()?;
    say!("one is polled, and one more is posted");
    for _ in 0..ROOM {
        rdma.wait(qp, "the others")?.check()?;
    }
    Ok(())
}

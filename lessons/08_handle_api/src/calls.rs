//! An example of each call, as the lesson's page shows them.

use common::args::Args;
use common::narrate::preview;
use common::tcp::Peer;
use common::{say, stage, Access, Buffer};

use crate::api::Rdma;
use crate::error::{RdmaError, Result};
use crate::wc::Wc;
use crate::DEVICE;

pub fn calls(mut peer: Peer, args: &Args) -> Result<()> {
    let _stage = stage("calls");
    let mut rdma = Rdma::open(args.text(&DEVICE))?;

    // reg_mr, dereg_mr. The memory stays ours; the handle is good for nothing any more.
    let buffer = Buffer::zeroed(4096)?;
    let mr = rdma.reg_mr(&buffer, buffer.len(), Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
    rdma.dereg_mr(mr)?;
    buffer.write(0, b"Hello RDMA!")?;
    refused("dereg_mr again", rdma.dereg_mr(mr).err());
    refused("reg_mr", rdma.reg_mr(&buffer, 4096, Access::REMOTE_WRITE).err());

    // create_qp
    let mr = rdma.reg_mr(&buffer, 4096, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
    let qp = rdma.create_qp(64, 64)?;
    refused("dereg_mr of a queue pair", rdma.dereg_mr(qp).err());
    refused("post_send in RESET", rdma.post_send(qp, mr, 11).err());
    let remote = rdma.connect_qp(qp, mr, &mut peer, "nothing")?.memory;

    // post_write
    let wr_id = rdma.post_write(qp, mr, 0, remote.addr, remote.rkey, 11)?;
    say!("post_write returned {wr_id}: {:?}", rdma.wait(qp, "the WRITE")?);
    refused(
        "post_write beyond the end of our region",
        rdma.post_write(qp, mr, 4090, remote.addr, remote.rkey, 11).err(),
    );

    // post_read
    rdma.post_read(qp, mr, 100, remote.addr, remote.rkey, 11)?;
    say!("post_read: {:?}: {}", rdma.wait(qp, "the READ")?, preview(&buffer.read(100..111)?));

    // post_receive, post_send: the server posts a receive, too, and sends back what comes.
    peer.tell("answer me")?;
    peer.hear()?;
    let inbox = Buffer::zeroed(64)?;
    let inbox_mr = rdma.reg_mr(&inbox, 64, Access::LOCAL_WRITE)?;
    rdma.post_receive(qp, inbox_mr, 64)?;
    rdma.post_send(qp, mr, 11)?;
    for _ in 0..2 {
        say!("post_send, post_receive: {:?}", rdma.wait(qp, "our SEND, and the answer")?);
    }
    say!("received: {}", preview(&inbox.read(0..64)?));

    // poll_cq, and several queue pairs: each has its own queues, CQs and packet numbers.
    let more = [rdma.create_qp(8, 8)?, rdma.create_qp(8, 8)?];
    for qp in more {
        rdma.connect_qp(qp, mr, &mut peer, "nothing")?;
    }
    for qp in more {
        rdma.post_write(qp, mr, 0, remote.addr, remote.rkey, 11)?;
    }
    for qp in more {
        let first = rdma.wait(qp, "a WRITE on each")?;
        let mut wc = [Wc::default(); 10];
        let n = rdma.poll_cq(qp, &mut wc, 10)?;
        say!("poll_cq, {qp:?}: {first:?}; and {n} more");
    }

    rdma.destroy_qp(qp)?;
    refused("poll_cq after destroy_qp", rdma.poll_cq(qp, &mut [], 0).err());
    say!("the next one has the slot of {qp:?}, and is {:?}", rdma.create_qp(8, 8)?);
    Ok(peer.tell("bye")?)
}

fn refused(what: &str, error: Option<RdmaError>) {
    if let Some(error) = error {
        say!("{what}: {error}");
    }
}

//! An example of each call, as docs/more/08_handles.md shows them.

use common::args::Args;
use common::deadline::Deadline;
use common::narrate::preview;
use common::tcp::Peer;
use common::{say, stage, Access, Buffer, Error, Metadata, Result};

use super::api::{Local, Rdma};
use super::wc::Opcode;
use crate::DEVICE;

pub fn calls(args: &Args) -> Result<()> {
    let _stage = stage("calls");
    let mut peer = Peer::connect(args)?;
    let mut rdma = Rdma::open(args.text(&DEVICE))?;

    // reg_mr, dereg_mr. The memory stays ours, but the handle is good for nothing any more.
    let buffer = Buffer::zeroed(4096)?;
    let mr = rdma.reg_mr(&buffer, 4096, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
    rdma.dereg_mr(mr)?;
    buffer.write(0, b"Hello RDMA!")?;
    refused("dereg_mr again", rdma.dereg_mr(mr).err());

    // create_qp, and a new handle for the memory
    let mr = rdma.reg_mr(&buffer, 4096, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
    let text = Local { mr, offset: 0, length: 11 };
    let qp = rdma.create_qp(2, 2)?;
    refused("post_send in RESET", rdma.post_send(qp, text).err());
    let remote = rdma.connect_qp(qp, mr, &mut peer)?;

    // post_write
    let wr_id = rdma.post_write(qp, text, &remote)?;
    say!("post_write returned {wr_id}: {:?}", rdma.wait(qp, "the WRITE")?);
    let beyond = Local { mr, offset: 4090, length: 11 };
    refused("post_write from beyond the end", rdma.post_write(qp, beyond, &remote).err());

    // post_read
    rdma.post_read(qp, Local { mr, offset: 100, length: 11 }, &remote)?;
    say!("post_read: {:?}: {}", rdma.wait(qp, "the READ")?, preview(&buffer.read(100..111)?));

    // post_receive, post_send. The server posts a receive as well, and sends back what comes.
    peer.tell("answer me")?;
    peer.hear()?;
    rdma.post_receive(qp, Local { mr, offset: 200, length: 64 })?;
    rdma.post_send(qp, text)?;
    for _ in 0..2 {
        let wc = rdma.wait(qp, "our SEND, and the answer")?;
        say!("post_send, post_receive: {wc:?}");
        if wc.opcode == Opcode::Receive {
            say!("received: {}", preview(&buffer.read(200..200 + wc.byte_len)?));
        }
    }

    // poll_cq. What's done keeps its place in the queue until it's polled.
    for _ in 0..2 {
        rdma.post_write(qp, text, &remote)?;
    }
    refused("post_write, the third", rdma.post_write(qp, text, &remote).err());
    rdma.wait(qp, "the first of two WRITEs")?.check()?;
    rdma.post_write(qp, text, &remote)?;
    say!("one is polled, and one more is posted");

    // poll_cq for all that are done, up to ten at a time, until both others are
    let deadline = Deadline::answer("the two other WRITEs");
    let mut done = 0;
    while done < 2 {
        deadline.left()?;
        for wc in rdma.poll_cq(qp, 10)? {
            wc.check()?;
            say!("operation {} completed successfully", wc.wr_id);
            done += 1;
        }
    }

    // A refused request moves the queue pair to ERR. From there it can be connected once more.
    let wrong = Metadata { rkey: remote.rkey ^ 1, ..remote };
    rdma.post_write(qp, text, &wrong)?;
    say!("post_write with a wrong key: {:?}", rdma.wait(qp, "a WRITE that is refused")?);
    let remote = rdma.connect_qp(qp, mr, &mut peer)?;
    rdma.post_write(qp, text, &remote)?;
    say!("after a new start: {:?}", rdma.wait(qp, "a WRITE")?);

    rdma.destroy_qp(qp)?;
    refused("destroy_qp again", rdma.destroy_qp(qp).err());
    peer.tell("bye")
}

fn refused(what: &str, error: Option<Error>) {
    if let Some(error) = error {
        say!("{what}: {error}");
    }
}

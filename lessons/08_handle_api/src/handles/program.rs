//! The complete program. Within one kernel it wouldn't need `connect_qp`. Here somebody must say who's at the other end.

use common::args::Args;
use common::deadline::Deadline;
use common::tcp::Peer;
use common::{say, stage, Access, Buffer, Result};

use super::api::{Local, Rdma};
use super::wc::Status;
use crate::DEVICE;

pub fn run(args: &Args) -> Result<()> {
    let _stage = stage("program");
    let mut peer = Peer::connect(args)?;
    let mut rdma = Rdma::open(args.text(&DEVICE))?;

    // Allocate and register memory
    let send_buf = Buffer::zeroed(4096)?;
    send_buf.write(0, b"Test message")?;
    let recv_buf = Buffer::zeroed(4096)?;
    let send_mr = rdma.reg_mr(&send_buf, 4096, Access::LOCAL_WRITE)?;
    let recv_mr = rdma.reg_mr(&recv_buf, 4096, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;

    // Create queue pair
    let qp = rdma.create_qp(64, 64)?;
    let remote = rdma.connect_qp(qp, recv_mr, &mut peer)?;

    // Post RDMA write
    let wr_id = rdma.post_write(qp, Local { mr: send_mr, offset: 0, length: 12 }, &remote)?;

    // Poll for completion
    let deadline = Deadline::answer("the completion of the WRITE");
    let wc = loop {
        if let Some(wc) = rdma.poll_cq(qp, 1)?.pop() {
            break wc;
        }
        // Spin waiting for completion
        deadline.left()?;
    };

    say!("post_write returned {wr_id}: {wc:?}");
    if wc.status == Status::Success {
        say!("RDMA write completed successfully!");
    }
    peer.tell("bye")?;

    // Cleanup
    rdma.destroy_qp(qp)?;
    rdma.dereg_mr(send_mr)?;
    rdma.dereg_mr(recv_mr)?;
    wc.check()
}

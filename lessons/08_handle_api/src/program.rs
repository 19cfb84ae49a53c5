//! The complete program: the C program of the API's reference, line by line. What C leaves out, that somebody must say whom
//! the queue pair leads to, is one line here: `connect_qp`.

use common::args::Args;
use common::deadline::Deadline;
use common::tcp::Peer;
use common::{say, stage, Access, Buffer};

use crate::api::Rdma;
use crate::error::Result;
use crate::wc::{Status::RDMA_WC_SUCCESS, Wc};
use crate::{DEVICE, LEN, WRONG};

pub fn program(mut peer: Peer, args: &Args) -> Result<()> {
    let _stage = stage("program");
    let mut rdma = Rdma::open(args.text(&DEVICE))?;

    // Allocate and register memory
    let send_buf = Buffer::zeroed(4096)?;
    send_buf.write(0, b"Test message")?;
    let recv_buf = Buffer::zeroed(4096)?;
    let send_mr = rdma.reg_mr(&send_buf, 4096, Access::LOCAL_WRITE)?;
    let recv_mr = rdma.reg_mr(&recv_buf, 4096, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;

    // Create queue pair
    let qp = rdma.create_qp(64, 64)?;
    let remote = rdma.connect_qp(qp, recv_mr, &mut peer, args.text(&WRONG))?;

    // Post RDMA write
    let remote_addr = remote.memory.addr;
    let remote_rkey = remote.memory.rkey;
    let length = args.number(&LEN).unwrap_or(12) as u64;
    let wr_id = rdma.post_write(qp, send_mr, 0, remote_addr, remote_rkey, length)?;

    // Poll for completion
    let mut wc = [Wc::default()];
    let deadline = Deadline::answer("the completion of the WRITE");
    while rdma.poll_cq(qp, &mut wc, 1)? == 0 {
        // Spin waiting for completion
        deadline.left()?;
    }

    if wc[0].status == RDMA_WC_SUCCESS {
        say!("RDMA write completed successfully!");
    }
    say!("post_write returned {wr_id}: {:?}", wc[0]);
    peer.tell("bye")?;

    // Cleanup
    rdma.destroy_qp(qp)?;
    rdma.dereg_mr(send_mr)?;
    rdma.dereg_mr(recv_mr)?;
    wc[0].check()
}

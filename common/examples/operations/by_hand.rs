//! Without the connection manager: the two QPs' numbers change hands over TCP, and `ibv_modify_qp` does the rest.

use common::args::Args;
use common::tcp::{listen, Peer};
use common::*;

use crate::{check, exposed, CAP, EVERYTHING};

pub fn server(args: &Args) -> Result<()> {
    connect(Peer::accept(&listen(args)?)?, false)
}

pub fn client(args: &Args) -> Result<()> {
    connect(Peer::connect(args)?, true)
}

/// RESET → INIT → RTR → RTS with `ibv_modify_qp`; the numbers of the two QPs change hands over TCP.
fn connect(mut peer: Peer, goes_first: bool) -> Result<()> {
    let context = Context::open("rxe0")?;
    check("the device has a name", context.name() == "rxe0")?;
    check("the port is active", context.query_port(1)?.state == context::IBV_PORT_ACTIVE)?;
    check("a QP takes requests", context.query_device()?.max_qp_wr > 0)?;
    let pd = context.alloc_pd()?;
    let cq = context.create_cq(16)?;
    let qp = pd.create_qp(&QpInitAttr { sq_sig_all: true, ..QpInitAttr::new(&cq, CAP) })?;
    check("RESET", qp.query()?.state == QpState::RESET)?;
    let access = EVERYTHING | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
    qp.modify(&ModifyQp::Init { port: 1, access })?;
    check("INIT", qp.query()?.state == QpState::INIT)?;

    let (sgid_index, gid) = context.find_gid(1, peer.own_ip()?)?;
    let buffer = exposed(&pd)?;
    let (psn, mtu) = (if goes_first { 0x11_1111 } else { 0x22_2222 }, context.query_port(1)?.active_mtu);
    peer.tell(&Card { qpn: qp.qp_num(), psn, gid, mtu, memory: Metadata::of(&buffer) }.long())?;
    let theirs = Card::parse(&peer.hear()?)?;

    let (path_mtu, dest_qp_num, rq_psn, dgid) = (mtu.min(theirs.mtu), theirs.qpn, theirs.psn, theirs.gid);
    let (dlid, port, max_dest_rd_atomic, min_rnr_timer) = (0, 1, 1, 12);
    qp.modify(&ModifyQp::Rtr {
        path_mtu,
        dest_qp_num,
        rq_psn,
        dgid,
        dlid,
        sgid_index,
        port,
        max_dest_rd_atomic,
        min_rnr_timer,
    })?;
    qp.modify(&ModifyQp::Rts { sq_psn: psn, timeout: 17, retry_cnt: 6, rnr_retry: 6, max_rd_atomic: 1 })?;
    let attr = qp.query()?;
    let as_set = (attr.state, attr.dest_qp_num, attr.sq_psn, attr.rq_psn, attr.timeout);
    check("RTS, as it was set", as_set == (QpState::RTS, dest_qp_num, psn, rq_psn, 17))?;
    qp.dump();
    peer.tell("ready")?;
    peer.hear()?;
    if goes_first {
        let source = pd.reg_mr(16, Access::LOCAL_READ)?;
        source.write(0, b"without manager")?;
        // Signaled, because all of this QP's requests are.
        let wr_id = qp.post_send(&SendWr::rdma_write(&source, 0..16, &theirs.memory).unsignaled())?;
        cq.wait_for(wr_id, "a WRITE")?;
    }
    peer.tell("written")?;
    peer.hear()?;
    if !goes_first {
        check("the WRITE arrived", buffer.read(0..15)? == b"without manager")?;
    }
    qp.modify(&ModifyQp::Err)?;
    let flushed = qp.post_recv(&buffer, 0..8)?;
    check("a receive is flushed", cq.wait_for(flushed, "a flush").is_err())?;
    qp.modify(&ModifyQp::Reset)?;
    check("RESET again", qp.query()?.state == QpState::RESET)?;
    say!("by hand done");
    Ok(())
}

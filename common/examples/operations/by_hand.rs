//! Without the connection manager: the two QPs' numbers change hands over TCP, and `ibv_modify_qp` does the rest.

use std::io::{Read, Write};
use std::net::{Ipv6Addr, TcpListener, TcpStream};

use common::args::PORT;
use common::*;

use crate::{check, exposed, CAP, EVERYTHING};

pub fn server() -> Result<()> {
    connect(tcp(TcpListener::bind(("0.0.0.0", PORT)).and_then(|listener| listener.accept()))?.0, false)
}

pub fn client(address: &str) -> Result<()> {
    connect(tcp(TcpStream::connect((address, PORT)))?, true)
}

fn tcp<T>(result: std::io::Result<T>) -> Result<T> {
    result.map_err(|error| Error::content(format!("TCP: {error}"), "Start the server first"))
}

/// RESET → INIT → RTR → RTS with `ibv_modify_qp`; the numbers of the two QPs change hands over TCP.
fn connect(mut stream: TcpStream, goes_first: bool) -> Result<()> {
    let context = Context::open("rxe0")?;
    check("the device has a name", context.name() == "rxe0")?;
    check("the port is active", context.query_port(1)?.state == 4)?;
    check("a QP takes requests", context.query_device()?.max_qp_wr > 0)?;
    let pd = ProtectionDomain::alloc(&context)?;
    let cq = context.create_cq(16)?;
    let qp = pd.create_qp(&QpInitAttr { sq_sig_all: true, ..QpInitAttr::new(&cq, CAP) })?;
    check("RESET", qp.query()?.state == QpState::RESET)?;
    let access = EVERYTHING | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
    qp.modify(&ModifyQp::Init { port: 1, access })?;
    check("INIT", qp.query()?.state == QpState::INIT)?;

    let (sgid_index, gid) = own_gid(&context)?;
    let buffer = exposed(&pd)?;
    let psn = if goes_first { 0x11_1111 } else { 0x22_2222 };
    let hello =
        [&qp.qp_num().to_be_bytes()[..], &u32::to_be_bytes(psn), &gid.octets(), &Metadata::of(&buffer).encode()];
    tcp(stream.write_all(&hello.concat()))?;
    let mut theirs = [0; 40];
    tcp(stream.read_exact(&mut theirs))?;
    let number = |at: usize| theirs[at..at + 4].iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
    let (dest_qp_num, rq_psn, metadata) = (number(0), number(4), Metadata::decode(&theirs[24..])?);
    let dgid = Ipv6Addr::from(theirs[8..24].iter().fold(0, |number: u128, byte| number << 8 | u128::from(*byte)));

    let (path_mtu, dlid, port, max_dest_rd_atomic, min_rnr_timer) = (context.query_port(1)?.active_mtu, 0, 1, 1, 12);
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
    tcp(stream.write_all(b"r"))?;
    tcp(stream.read_exact(&mut [0]))?;
    if goes_first {
        let mut source = pd.reg_mr(16, Access::LOCAL_READ)?;
        source.write(0, b"without manager")?;
        // Signaled, because all of this QP's requests are.
        let wr_id = qp.post_send(&SendWr::rdma_write(&source, 0..16, &metadata).unsignaled())?;
        cq.wait_for(wr_id, "a WRITE")?;
    }
    tcp(stream.write_all(b"w"))?;
    tcp(stream.read_exact(&mut [0]))?;
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

/// The place and the value of the GID that stands for the machine's IPv4 address.
fn own_gid(context: &Context) -> Result<(u8, Ipv6Addr)> {
    let gids = (0..16u8).filter_map(|index| Some((index, context.query_gid(1, index.into()).ok()?)));
    let mut ipv4 = gids.filter(|(_, gid)| gid.to_ipv4_mapped().is_some());
    ipv4.next().ok_or_else(|| Error::content("the device has no IPv4 address", "ip address"))
}

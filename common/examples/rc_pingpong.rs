//! The game of `ibv_rc_pingpong`, with that program or with this one: a SEND there, a SEND back, a thousand times. The tests
//! let the two play with each other: so cards, queue pairs and packets are as others have them.
//!
//! ```sh
//! rc_pingpong server                       # then, on another machine: ibv_rc_pingpong -g 1 -p 7471 server
//! rc_pingpong client -a server             # if there is: ibv_rc_pingpong -g 1 -p 7471
//! ```

use std::process::ExitCode;

use common::args::{Args, Opt, Side};
use common::tcp::{listen, Peer};
use common::wc::IBV_WC_RECV;
use common::{deadline::Deadline, QpCap, QpInitAttr, QueuePair, Result, SendWr};
use common::{narrate, say, stage, Access, Card, CompletionQueue, Context, MemoryRegion, Metadata, ModifyQp};

const DEVICE: Opt = Opt::text(Side::Both, "device", "rxe0", "The RDMA device's name, as `rdma link` shows it");

/// `ibv_rc_pingpong`'s own numbers, unless it is told otherwise: rounds, and bytes in a message.
const ROUNDS: usize = 1000;
const SIZE: usize = 4096;
const PORT: u8 = 1;

/// The client goes first, with its card and with the first SEND.
fn play(mut peer: Peer, args: &Args, goes_first: bool) -> Result<()> {
    let _stage = stage("play");
    let context = Context::open(args.text(&DEVICE))?;
    let pd = context.alloc_pd()?;
    let memory = pd.reg_mr(SIZE, Access::LOCAL_WRITE)?;
    let cq = context.create_cq(8)?;
    let cap = QpCap { max_send_wr: 4, max_recv_wr: 4, ..QpCap::SMALL };
    let qp = pd.create_qp(&QpInitAttr::new(&cq, cap))?;
    let (sgid_index, gid) = context.find_gid(PORT, peer.own_ip()?)?;
    let mtu = context.query_port(PORT)?.active_mtu;
    let ours = Card { qpn: qp.qp_num(), psn: std::process::id() & 0xff_ffff, gid, mtu, memory: Metadata::of(&memory) };
    if goes_first {
        peer.tell(&ours.short())?;
    }
    let theirs = Card::parse_short(&peer.hear()?)?;
    connect(&qp, &ours, &theirs, sgid_index)?;
    qp.post_recv(&memory, 0..SIZE)?;
    if goes_first {
        peer.tell("done")?;
    } else {
        peer.tell(&ours.short())?;
        peer.hear()?;
    }
    rounds(&qp, &cq, &memory, goes_first)?;
    say!("{ROUNDS} rounds of {SIZE} bytes each way");
    Ok(())
}

/// As lesson 08 does it, and explains it.
fn connect(qp: &QueuePair, ours: &Card, theirs: &Card, sgid_index: u8) -> Result<()> {
    qp.modify(&ModifyQp::Init { port: PORT, access: Access::LOCAL_WRITE })?;
    qp.modify(&ModifyQp::Rtr {
        path_mtu: ours.mtu.min(theirs.mtu),
        dest_qp_num: theirs.qpn,
        rq_psn: theirs.psn,
        dgid: theirs.gid,
        dlid: 0,
        sgid_index,
        port: PORT,
        max_dest_rd_atomic: 1,
        min_rnr_timer: 12,
    })?;
    qp.modify(&ModifyQp::Rts { sq_psn: ours.psn, timeout: 17, retry_cnt: 6, rnr_retry: 6, max_rd_atomic: 1 })
}

/// It is our turn when their SEND has come, and our last one is acknowledged.
fn rounds(qp: &QueuePair, cq: &CompletionQueue, memory: &MemoryRegion, goes_first: bool) -> Result<()> {
    let _stage = stage("rounds");
    let (mut posted, mut sent, mut received) = (0, 0, 0);
    while sent < ROUNDS || received < ROUNDS {
        if posted < ROUNDS && sent == posted && received == posted + usize::from(!goes_first) {
            qp.post_send(&SendWr::send(memory, 0..SIZE))?;
            posted += 1;
        }
        let deadline = Deadline::answer("the other side's SEND, or its ACK for ours");
        let done = loop {
            if let Some(done) = cq.poll_one()? {
                break done.into_success()?;
            }
            deadline.left()?;
        };
        if done.opcode() == Some(IBV_WC_RECV) {
            received += 1;
            qp.post_recv(memory, 0..SIZE)?;
        } else {
            sent += 1;
        }
        if received == 2 {
            narrate::show_only(vec!["play".into()]);
        }
    }
    Ok(())
}

fn server(args: &Args) -> Result<()> {
    let listener = listen(args)?;
    let mut clients = args.clients();
    while clients.more() {
        let peer = Peer::accept(&listener)?;
        clients.note(peer.name(), play(peer, args, false));
    }
    clients.result()
}

fn client(args: &Args) -> Result<()> {
    play(Peer::connect(args)?, args, true)
}

fn main() -> ExitCode {
    common::args::run("rc_pingpong", "Play with ibv_rc_pingpong", &[DEVICE], server, client)
}

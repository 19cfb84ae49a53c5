//! Queue pairs in every state, and every function of theirs, of CQs, SRQs, domains and regions in each of them. No
//! connection manager, and no peer: two QPs of one machine look at each other.

use std::net::Ipv6Addr;
use std::os::fd::AsFd;

use common::*;

use crate::{nothing_left_open, open_now, twice};

pub struct Bench {
    pub qp: QueuePair,
    pub cq: CompletionQueue,
    pub receives: CompletionQueue,
    completions: CompletionChannel,
    pub srq: SharedReceiveQueue,
    pub region: MemoryRegion,
    pub pd: ProtectionDomain,
    context: Context,
}

pub fn bench(with_srq: bool, qp_type: QpType) -> Result<Bench> {
    let context = Context::open("rxe0")?;
    let pd = context.alloc_pd()?;
    let completions = context.create_comp_channel()?;
    let cq = completions.create_cq(64)?;
    let receives = context.create_cq(64)?;
    let srq = pd.create_srq(8, 2)?;
    let region = pd.reg_mr(4096, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ)?;
    let cap = QpCap { max_send_wr: 4, max_recv_wr: 4, max_send_sge: 2, max_recv_sge: 2, max_inline_data: 16 };
    let srq_if = with_srq.then_some(&srq);
    let attr = QpInitAttr { recv_cq: &receives, srq: srq_if, qp_type, ..QpInitAttr::new(&cq, cap) };
    let qp = pd.create_qp(&attr)?;
    Ok(Bench { qp, cq, receives, completions, srq, region, pd, context })
}

fn to_init(bench: &Bench) -> Result<()> {
    bench.qp.modify(&ModifyQp::Init { port: 1, access: Access::REMOTE_WRITE | Access::REMOTE_READ })
}

/// Nobody has this number, so nobody answers.
const NOBODY: u32 = 0x777;

fn to_rtr(bench: &Bench) -> Result<()> {
    rtr(bench, &bench.qp, NOBODY)
}

fn rtr(bench: &Bench, qp: &QueuePair, dest_qp_num: u32) -> Result<()> {
    let gids = (0..8).filter_map(|index| Some((index, bench.context.query_gid(1, index.into()).ok()?)));
    let ipv4 = gids.filter(|(_, gid)| gid.to_ipv4_mapped().is_some()).last();
    let (sgid_index, dgid) = ipv4.unwrap_or((0, Ipv6Addr::LOCALHOST));
    let (path_mtu, rq_psn, dlid, port) = (Mtu::BYTES_1024, 1, 0, 1);
    let (max_dest_rd_atomic, min_rnr_timer) = (1, 12);
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
    })
}

fn to_rts(bench: &Bench) -> Result<()> {
    bench.qp.modify(&ModifyQp::Rts { sq_psn: 1, timeout: 10, retry_cnt: 1, rnr_retry: 1, max_rd_atomic: 1 })
}

/// The same with a time-out of 0, which is none: what nobody answers stays in the queue, however slow this program is.
pub fn to_rts_for_ever(bench: &Bench) -> Result<()> {
    to_init(bench)?;
    to_rtr(bench)?;
    bench.qp.modify(&ModifyQp::Rts { sq_psn: 1, timeout: 0, retry_cnt: 1, rnr_retry: 1, max_rd_atomic: 1 })
}

type Call = fn(&Bench) -> Result<()>;

type Try = (&'static str, Call);

fn remote(bench: &Bench) -> Metadata {
    Metadata::of(&bench.region)
}

fn post(bench: &Bench, request: &SendWr) -> Result<()> {
    bench.qp.post_send(request).map(drop)
}

fn post_until_full(bench: &Bench) -> Result<()> {
    (0..20).try_for_each(|_| post(bench, &SendWr::send(&bench.region, 0..8)))
}

const TRIES: &[Try] = &[
    ("query", |bench| bench.qp.query().map(drop)),
    ("dump", |bench| {
        bench.qp.dump();
        Ok(())
    }),
    ("cap", |bench| {
        info!("{} {:?}", bench.qp.qp_num(), bench.qp.cap());
        Ok(())
    }),
    ("modify to RESET", |bench| bench.qp.modify(&ModifyQp::Reset)),
    ("modify to INIT", to_init),
    ("modify to RTR", to_rtr),
    ("modify to RTS", to_rts),
    ("modify to ERR", |bench| bench.qp.modify(&ModifyQp::Err)),
    ("INIT on port 0", |bench| bench.qp.modify(&ModifyQp::Init { port: 0, access: Access::LOCAL_READ })),
    ("post_recv", |bench| bench.qp.post_recv(&bench.region, 0..64).map(drop)),
    ("post_recv outside", |bench| bench.qp.post_recv(&bench.region, 0..4097).map(drop)),
    ("post_recv_pieces none", |bench| bench.qp.post_recv_pieces(&[]).map(drop)),
    ("post_recv_pieces three", |bench| {
        let piece = (&bench.region, 0..8);
        bench.qp.post_recv_pieces(&[piece.clone(), piece.clone(), piece]).map(drop)
    }),
    ("post_recv until full", |bench| (0..20).try_for_each(|_| bench.qp.post_recv(&bench.region, 0..8).map(drop))),
    ("post SEND", |bench| post(bench, &SendWr::send(&bench.region, 0..8))),
    ("post SEND of nothing", |bench| post(bench, &SendWr::new(Operation::Send, &[]))),
    ("post SEND_WITH_IMM", |bench| post(bench, &SendWr::new(Operation::SendImm(1), &[(&bench.region, 0..8)]))),
    ("post WRITE", |bench| post(bench, &SendWr::rdma_write(&bench.region, 0..8, &remote(bench)))),
    ("post WRITE_WITH_IMM", |bench| post(bench, &SendWr::new(Operation::WriteImm(remote(bench), 1), &[]))),
    ("post READ", |bench| post(bench, &SendWr::rdma_read(&bench.region, 0..8, &remote(bench)))),
    ("post FETCH_ADD", |bench| {
        post(bench, &SendWr::new(Operation::FetchAdd(remote(bench), 1), &[(&bench.region, 8..16)]))
    }),
    ("post FETCH_ADD of 4 bytes", |bench| {
        post(bench, &SendWr::new(Operation::FetchAdd(remote(bench), 1), &[(&bench.region, 8..12)]))
    }),
    ("post CMP_SWAP unaligned", |bench| {
        let at = remote(bench).slice(1..9)?;
        post(bench, &SendWr::new(Operation::CompareSwap { at, compare: 0, swap: 1 }, &[(&bench.region, 8..16)]))
    }),
    ("post inline", |bench| post(bench, &SendWr::inline(Operation::Send, b"hello"))),
    ("post too much inline", |bench| post(bench, &SendWr::inline(Operation::Send, &[0; 4000]))),
    ("post READ inline", |bench| post(bench, &SendWr::inline(Operation::Read(remote(bench)), b"hello"))),
    ("post unsignaled, fenced, solicited", |bench| {
        post(bench, &SendWr::send(&bench.region, 0..8).unsignaled().fenced().solicited())
    }),
    ("post three pieces", |bench| {
        let piece = (&bench.region, 0..8);
        post(bench, &SendWr::new(Operation::Send, &[piece.clone(), piece.clone(), piece]))
    }),
    ("post until full", post_until_full),
    ("post_send_all of nothing", |bench| bench.qp.post_send_all(&[]).1),
    ("post_send_all", |bench| {
        let request = || SendWr::send(&bench.region, 0..8);
        bench.qp.post_send_all(&[request().unsignaled(), request()]).1
    }),
    ("post_send_all of too many", |bench| {
        let requests: Vec<_> = (0..20).map(|_| SendWr::send(&bench.region, 0..8)).collect();
        let (taken, result) = bench.qp.post_send_all(&requests);
        info!("taken: {}", taken.count());
        result
    }),
    ("post and drop the region", |bench| {
        let region = bench.pd.reg_mr(64, Access::LOCAL_WRITE)?;
        region.write(0, b"still here")?;
        let (received, sent) = (bench.qp.post_recv(&region, 0..64), post(bench, &SendWr::send(&region, 0..10)));
        drop(region);
        received.and(sent.map(|()| 0)).map(drop)
    }),
    ("post a region of another domain", |bench| {
        let region = bench.context.alloc_pd()?.reg_mr(64, Access::LOCAL_WRITE)?;
        post(bench, &SendWr::send(&region, 0..8))
    }),
    ("wait_for what is not there", |bench| bench.cq.wait_for(0, "nothing").map(drop)),
    ("wait_for what is unsignaled", |bench| {
        let wr_id = bench.qp.post_send(&SendWr::send(&bench.region, 0..8).unsignaled())?;
        bench.cq.wait_for(wr_id, "an unsignaled SEND").map(drop)
    }),
    ("wait_for a SEND", |bench| {
        let wr_id = bench.qp.post_send(&SendWr::send(&bench.region, 0..8))?;
        bench.cq.wait_for(wr_id, "a SEND").map(drop)
    }),
    ("wait_for a receive on the wrong CQ", |bench| {
        let wr_id = bench.qp.post_recv(&bench.region, 0..8)?;
        bench.context.create_cq(4)?.wait_for(wr_id, "a receive").map(drop)
    }),
    ("poll", |bench| bench.cq.poll().map(drop)),
    ("poll_up_to", |bench| bench.receives.poll_up_to(1).map(drop)),
    ("req_notify", |bench| bench.cq.req_notify()),
    ("req_notify_solicited without a channel", |bench| bench.receives.req_notify_solicited()),
    ("get_cq_event", |bench| {
        bench.cq.req_notify()?;
        bench.completions.get_cq_event("what may not come").map(drop)
    }),
    ("try_get_cq_event", |bench| bench.completions.try_get_cq_event().map(drop)),
    ("get_cq_event_or_cm_event", |bench| {
        let channel = EventChannel::create()?;
        bench.completions.get_cq_event_or_cm_event(&channel, "what may not come").map(drop)
    }),
    ("descriptors", |bench| {
        info!("{:?} {:?}", bench.completions.as_fd(), bench.context.as_fd());
        Ok(())
    }),
    ("async events", |bench| bench.context.get_async_event("what may not come").map(drop)),
    ("SRQ post_recv", |bench| bench.srq.post_recv(&bench.region, 0..64).map(drop)),
    ("SRQ until full", |bench| (0..40).try_for_each(|_| bench.srq.post_recv(&bench.region, 0..8).map(drop))),
    ("SRQ arm_limit", |bench| bench.srq.arm_limit(1)),
    ("SRQ arm_limit beyond", |bench| bench.srq.arm_limit(100_000)),
    ("create_srq too long", |bench| bench.pd.create_srq(u32::MAX, 1).map(drop)),
    ("create_cq of none", |bench| bench.context.create_cq(0).map(drop)),
    ("create_cq of less than none", |bench| bench.context.create_cq(-1).map(drop)),
    ("create_cq too long", |bench| bench.context.create_cq(i32::MAX).map(drop)),
    ("create_qp too long", |bench| {
        let cap = QpCap { max_send_wr: u32::MAX, max_inline_data: u32::MAX, ..QpCap::SMALL };
        bench.pd.create_qp(&QpInitAttr::new(&bench.cq, cap)).map(drop)
    }),
    ("create_qp on another device's CQ", |bench| {
        let other = Context::open("rxe0")?;
        bench.pd.create_qp(&QpInitAttr::new(&other.create_cq(4)?, QpCap::SMALL)).map(drop)
    }),
    ("reg_mr of nothing", |bench| bench.pd.reg_mr(0, Access::LOCAL_READ).map(drop)),
    ("reg_mr too long", |bench| bench.pd.reg_mr(usize::MAX, Access::LOCAL_READ).map(drop)),
    ("reg_mr REMOTE_WRITE alone", |bench| bench.pd.reg_mr(8, Access::REMOTE_WRITE).map(drop)),
    ("region", |bench| {
        let region = bench.pd.reg_mr(16, Access::LOCAL_WRITE)?;
        region.read(8..24).map(drop).or(region.read_u64(4).map(drop)).or(region.read_u64(16).map(drop))
    }),
    ("region u64", |bench| {
        let region = bench.pd.reg_mr(16, Access::LOCAL_WRITE)?;
        region.write_u64(8, 0x0102_0304_0506_0708)?;
        assert_eq!((region.read_u64(8)?, region.read(8..16)?[0]), (0x0102_0304_0506_0708, 8));
        region.write_u64(usize::MAX - 7, 1)
    }),
    ("query_device", |bench| bench.context.query_device().map(|attr| info!("{} {attr:?}", bench.context.name()))),
    ("query_port", |bench| bench.context.query_port(1).map(|attr| info!("{attr:?}"))),
    ("query_port 7", |bench| bench.context.query_port(7).map(drop)),
    ("query_gid -1", |bench| bench.context.query_gid(1, -1).map(drop)),
    ("open a device that is none", |_| Context::open("rxe\0").and(Context::open("none")).map(drop)),
];

/// Two queue pairs that are connected to each other.
pub fn pair(bench: &Bench, max_rd_atomic: u8) -> Result<[QueuePair; 2]> {
    pair_with(bench, &bench.cq, None, max_rd_atomic)
}

pub fn pair_with(
    bench: &Bench,
    cq: &CompletionQueue,
    srq: Option<&SharedReceiveQueue>,
    max_rd_atomic: u8,
) -> Result<[QueuePair; 2]> {
    let cap = QpCap { max_send_wr: 4, ..QpCap::SMALL };
    let create = || bench.pd.create_qp(&QpInitAttr { srq, ..QpInitAttr::new(cq, cap) });
    let pair = [create()?, create()?];
    connect(bench, &pair[0], &pair[1], max_rd_atomic)?;
    Ok(pair)
}

pub fn connect(bench: &Bench, one: &QueuePair, other: &QueuePair, max_rd_atomic: u8) -> Result<()> {
    for (qp, peer) in [(one, other), (other, one)] {
        qp.modify(&ModifyQp::Init { port: 1, access: Access::REMOTE_WRITE | Access::REMOTE_READ })?;
        rtr(bench, qp, peer.qp_num())?;
        qp.modify(&ModifyQp::Rts { sq_psn: 1, timeout: 14, retry_cnt: 1, rnr_retry: 1, max_rd_atomic })?;
    }
    Ok(())
}

/// A WRITE of three packets, of which the last one's end lies outside of the region; whether its beginning is there then.
fn write_past_the_end(bench: &Bench, ours: &QueuePair) -> Result<bool> {
    let (source, target) = (bench.pd.reg_mr(3000, Access::LOCAL_WRITE)?, &bench.region);
    source.write(0, b"here")?;
    let at = Metadata { addr: remote(bench).addr + 2000, ..remote(bench) };
    let wr_id = ours.post_send(&SendWr::rdma_write(&source, 0..source.len(), &at))?;
    match bench.cq.wait_for(wr_id, "a WRITE past the end") {
        Ok(_) => Err(Error::content("it succeeds", "Look at the packets")),
        Err(_) => Ok(target.read(2000..2004)? == b"here"),
    }
}

/// What two queue pairs need.
const TRIES_OF_TWO: &[Try] = &[
    ("READ with max_rd_atomic 0", |bench| {
        let [ours, _theirs] = pair(bench, 0)?;
        let wr_id = ours.post_send(&SendWr::rdma_read(&bench.region, 0..8, &remote(bench)))?;
        bench.cq.wait_for(wr_id, "a READ").map(drop)
    }),
    ("WRITE past the end places its beginning", |bench| {
        let [ours, _theirs] = pair(bench, 1)?;
        match write_past_the_end(bench, &ours)? {
            true => Ok(()),
            false => Err(Error::content("nothing was written", "The whole length is checked first")),
        }
    }),
    ("async event after a peer's fault", |bench| {
        // Events about a queue pair that is destroyed are gone.
        let [ours, _theirs] = pair(bench, 1)?;
        write_past_the_end(bench, &ours)?;
        bench.context.get_async_event("what may not come").map(drop)
    }),
    ("receive of an SRQ in another domain", |bench| {
        let foreign = bench.context.alloc_pd()?;
        let (srq, region) = (foreign.create_srq(4, 1)?, foreign.reg_mr(64, Access::LOCAL_WRITE)?);
        let wr_id = srq.post_recv(&region, 0..64)?;
        let [ours, _theirs] = pair_with(bench, &bench.cq, Some(&srq), 1)?;
        ours.post_send(&SendWr::send(&bench.region, 0..8))?;
        bench.cq.wait_for(wr_id, "a receive").map(drop)
    }),
    ("receive with the flag of a GRH", |bench| {
        let [ours, theirs] = pair(bench, 1)?;
        let wr_id = theirs.post_recv(&bench.region, 0..8)?;
        ours.post_send(&SendWr::send(&bench.region, 8..16))?;
        let completion = bench.cq.wait_for(wr_id, "a receive")?;
        // No lesson asks for the flags of a completion, so they are read as they are printed.
        match format!("{completion:?}").contains("wc_flags: 0") {
            true => Err(Error::content("it has none", "It is told of datagrams alone")),
            false => Ok(()),
        }
    }),
    ("state after a completion was lost", |bench| {
        let cq = bench.context.create_cq(1)?;
        let [ours, _theirs] = pair_with(bench, &cq, None, 1)?;
        (0..2).try_for_each(|_| ours.post_send(&SendWr::rdma_write(&bench.region, 0..8, &remote(bench))).map(drop))?;
        bench.context.get_async_event("IBV_EVENT_CQ_ERR")?;
        match ours.query()?.state {
            QpState::ERR => Ok(()),
            _ => Err(Error::content("the queue pair works on", "It is not told what became of its requests")),
        }
    }),
];

pub fn run() -> Result<()> {
    let states: [(&str, &[Call]); 5] = [
        ("RESET", &[]),
        ("INIT", &[to_init]),
        ("RTR", &[to_init, to_rtr]),
        ("RTS", &[to_init, to_rtr, to_rts]),
        ("ERR", &[to_init, to_rtr, to_rts, |bench| bench.qp.modify(&ModifyQp::Err)]),
    ];
    let kinds = [("RC", false, QpType::Rc), ("RC with SRQ", true, QpType::Rc), ("UC", false, QpType::Uc)];
    let mut calls = 0;
    let before = open_now()?;
    for (name, call) in TRIES_OF_TWO {
        let bench = bench(false, QpType::Rc)?;
        twice("two RC RTS", name, || call(&bench));
        calls += 2;
    }
    let bench_for_ever = bench(false, QpType::Rc)?;
    to_rts_for_ever(&bench_for_ever)?;
    twice("RC RTS without a time-out", "post until full", || post_until_full(&bench_for_ever));
    drop(bench_for_ever);
    calls += 2;
    for (kind, with_srq, qp_type) in kinds {
        for (state, steps) in states {
            for (name, call) in TRIES {
                let bench = bench(with_srq, qp_type)?;
                steps.iter().try_for_each(|step| step(&bench))?;
                twice(&format!("{kind} {state}"), name, || call(&bench));
                calls += 2;
            }
        }
    }
    say!("{calls} calls returned");
    nothing_left_open(&before)
}

//! What a queue pair has done with, it holds no longer: what it refused, what RESET forgot. Each check here is one of memory
//! that would be kept, and so stay open to the peer, or of a wait in vain.

use std::time::{Duration, Instant};

use common::wc::IBV_WC_REM_ACCESS_ERR;
use common::*;

use crate::queues::{bench, connect, pair, pair_with, to_rts_for_ever, Bench};

const INIT: ModifyQp = ModifyQp::Init { port: 1, access: Access::REMOTE_WRITE };

fn check(what: &str, holds: bool) -> Result<()> {
    say!("{what}: {}", if holds { "yes" } else { "no" });
    holds.then_some(()).ok_or_else(|| Error::content(format!("{what}: no"), "Look at the ledger"))
}

/// With so many posts that are refused, and so many RESETs.
pub fn run(refused: usize, resets: usize) -> Result<()> {
    let bench = bench(false, QpType::Rc)?;
    for (how, lend) in [("nothing", lend_nothing as Lend), ("RESET", lend_and_reset), ("a refused post", lend_in_vain)]
    {
        check(&format!("a region that is dropped after {how} is closed to the peer"), is_closed_after(&bench, lend)?)?;
    }
    check("memory of a refused request is not sent later", refused_is_not_sent(&bench)?)?;
    check(
        "nobody waits for a receive that RESET forgot",
        is_told_at_once(&bench, |bench| {
            bench.qp.modify(&INIT)?;
            let wr_id = bench.qp.post_recv(&bench.region, 0..64)?;
            bench.qp.modify(&ModifyQp::Reset)?;
            bench.receives.wait_for(wr_id, "what was forgotten").map(drop)
        }),
    )?;
    check(
        "nobody waits for a receive on the CQ of the sends",
        is_told_at_once(&bench, |bench| {
            bench.qp.modify(&INIT)?;
            let wr_id = bench.qp.post_recv(&bench.region, 0..64)?;
            bench.cq.wait_for(wr_id, "a receive").map(drop)
        }),
    )?;
    check(
        "nobody waits for a receive of an SRQ of which no QP can take it",
        is_told_at_once(&bench, wait_with_both_in_err),
    )?;
    check("a receive of an SRQ is waited for as long as one QP can take it", is_waited_for(&bench)?)?;
    check(&format!("{refused} refused posts leave nothing"), grows_by(|| refuse(&bench, refused))? < SOME)?;
    check(&format!("{resets} RESETs leave nothing"), grows_by(|| reset(&bench, resets))? < SOME)
}

type Lend = fn(&QueuePair, &MemoryRegion) -> Result<()>;

fn lend_nothing(_: &QueuePair, _: &MemoryRegion) -> Result<()> {
    Ok(())
}

fn lend_and_reset(qp: &QueuePair, region: &MemoryRegion) -> Result<()> {
    qp.modify(&INIT)?;
    qp.post_recv(region, 0..64)?;
    qp.modify(&ModifyQp::Reset)
}

fn lend_in_vain(qp: &QueuePair, region: &MemoryRegion) -> Result<()> {
    let refused = qp.post_send(&SendWr::send(region, 0..8));
    check("RESET takes no SEND", refused.is_err())
}

/// A peer WRITEs to a region that its owner has dropped, after a queue pair that is still there has had to do with it.
fn is_closed_after(bench: &Bench, lend: Lend) -> Result<bool> {
    let [ours, _theirs] = pair(bench, 1)?;
    let other = bench.pd.create_qp(&QpInitAttr::new(&bench.cq, QpCap::SMALL))?;
    let region = bench.pd.reg_mr(4096, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
    let at = Metadata::of(&region);
    lend(&other, &region)?;
    drop(region);
    let wr_id = ours.post_send(&SendWr::rdma_write(&bench.region, 0..16, &at))?;
    Ok(match bench.cq.wait_for(wr_id, "a WRITE") {
        Err(Error::Completion { status, .. }) => status == IBV_WC_REM_ACCESS_ERR,
        _ => false,
    })
}

/// rdma_rxe (Linux 6.1) sends in RTS what it refused in RESET. If its region is gone by then, that must fail, and in time.
fn refused_is_not_sent(bench: &Bench) -> Result<bool> {
    let cap = QpCap { max_send_wr: 4, ..QpCap::SMALL };
    let create = || bench.pd.create_qp(&QpInitAttr::new(&bench.cq, cap));
    let [ours, theirs] = [create()?, create()?];
    let gone = bench.pd.reg_mr(64, Access::LOCAL_READ)?;
    gone.write(0, b"refused!")?;
    let is_refused = ours.post_send(&SendWr::send(&gone, 0..8)).is_err();
    drop(gone);
    connect(bench, &ours, &theirs, 1)?;
    theirs.post_recv(&bench.region, 0..64)?;
    let wr_id = ours.post_send(&SendWr::send(&bench.region, 128..136))?;
    let said = bench.cq.wait_for(wr_id, "the first SEND that was taken");
    info!("{said:?}");
    let in_time = !matches!(said, Err(Error::Deadline { .. }));
    Ok(is_refused && in_time && bench.region.read(0..8)? != b"refused!")
}

/// The device flushes what a QP has in a queue of its own; what an SRQ holds stays there, for the next QP.
fn wait_with_both_in_err(bench: &Bench) -> Result<()> {
    let pair = pair_with(bench, &bench.cq, Some(&bench.srq), 1)?;
    let wr_id = bench.srq.post_recv(&bench.region, 0..64)?;
    pair.iter().try_for_each(|qp| qp.modify(&ModifyQp::Err))?;
    bench.cq.wait_for(wr_id, "a receive of the SRQ").map(drop)
}

fn is_waited_for(bench: &Bench) -> Result<bool> {
    let [ours, _theirs] = pair_with(bench, &bench.cq, Some(&bench.srq), 1)?;
    let wr_id = bench.srq.post_recv(&bench.region, 0..64)?;
    ours.modify(&ModifyQp::Err)?;
    let patience = deadline::answer_limit();
    deadline::set(Duration::from_secs(1));
    let said = bench.cq.wait_for(wr_id, "a receive of the SRQ");
    deadline::set(patience);
    Ok(matches!(said, Err(Error::Deadline { .. })))
}

/// It fails long before the deadline.
fn is_told_at_once(bench: &Bench, wait: fn(&Bench) -> Result<()>) -> bool {
    let started = Instant::now();
    let never = matches!(wait(bench), Err(Error::Content { kind: error::Kind::NeverCompletes, .. }));
    never && started.elapsed() < deadline::answer_limit() / 2
}

/// In KiB: much less than what a leak would come to.
const SOME: usize = 4096;

/// By how many KiB of memory the process grows (man 5 proc_pid_statm).
fn grows_by(work: impl Fn() -> Result<()>) -> Result<usize> {
    let resident = || -> Option<usize> {
        let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
        Some(pages.split(' ').nth(1)?.parse::<usize>().ok()? * 4)
    };
    let count = || resident().ok_or_else(|| Error::content("/proc/self/statm cannot be read", "Mount /proc"));
    work()?;
    let before = count()?;
    work()?;
    Ok(count()?.saturating_sub(before))
}

/// Half of them in RESET, and half at a queue that is full: nobody answers, so the first of them stay.
fn refuse(bench: &Bench, count: usize) -> Result<()> {
    bench.qp.modify(&ModifyQp::Reset)?;
    let post = || bench.qp.post_send(&SendWr::send(&bench.region, 0..8));
    let taken = (0..count / 2).filter(|_| post().is_ok()).count();
    to_rts_for_ever(bench)?;
    let taken_when_full = (0..count / 2).filter(|_| post().is_ok()).count();
    info!("{taken} were taken in RESET, {taken_when_full} in RTS");
    Ok(())
}

/// Each of them forgets a receive of 1 MiB.
fn reset(bench: &Bench, count: usize) -> Result<()> {
    for _ in 0..count {
        bench.qp.modify(&ModifyQp::Reset)?;
        bench.qp.modify(&INIT)?;
        let region = bench.pd.reg_mr(1 << 20, Access::LOCAL_WRITE)?;
        region.write(0, &[1; 8192])?;
        bench.qp.post_recv(&region, 0..64)?;
    }
    bench.qp.modify(&ModifyQp::Reset)
}

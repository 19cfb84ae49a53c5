//! The client's loop: keep as many requests under way as the plan allows.
//!
//! Nothing in it allocates, but for what `ibv_reg_mr` needs with `--mrs each`: all lists have their room before it begins.

use std::{collections::VecDeque, time::Instant};

use common::{wc::IBV_WC_RECV, *};

use crate::{count::Counts, plan::Plan, wait::Waiter, Desk};

/// The memory of the requests: as many pieces as can be under way.
pub struct Pool {
    pub buffers: Vec<Buffer>,
    /// None with `--mrs each`, nor with `--inline`.
    pub regions: Vec<MemoryRegion>,
    pub access: Access,
    /// What goes inline needs no region.
    pub inline: Vec<u8>,
}

impl Pool {
    pub fn create(desk: &Desk, plan: &Plan) -> Result<Self> {
        let _stage = stage("register_pool");
        let buffers = (0..plan.depth).map(|_| Buffer::zeroed(plan.size)).collect::<Result<Vec<_>>>()?;
        // What is READ, and the answer to an atomic, our own device writes.
        let access = if plan.brings_back() { Access::LOCAL_WRITE } else { Access::LOCAL_READ };
        let regions = match plan.inline || plan.register_each {
            true => Vec::new(),
            false => {
                let region = |buffer| desk.pd.reg_buffer(buffer, plan.size, access);
                buffers.iter().map(region).collect::<Result<_>>()?
            }
        };
        Ok(Self { buffers, regions, access, inline: vec![0; if plan.inline { plan.size } else { 0 }] })
    }
}

/// A signaled request that is under way. When it is done, so are all before it.
struct Flight {
    wr_id: u64,
    posted: Instant,
    /// How many requests are done then.
    done: usize,
}

pub fn flow(desk: &Desk, plan: &Plan, pool: &Pool, peer: Metadata, counts: &mut Counts) -> Result<()> {
    let _stage = stage("flow");
    let operation = plan.operation(peer);
    let mut waiter = Waiter::new(desk, plan.wait);
    let mut flights: VecDeque<Flight> = VecDeque::with_capacity(plan.depth);
    let mut batch: Vec<SendWr> = Vec::with_capacity(plan.batch);
    let (mut posted, mut done) = (0, 0);
    // Without credits nothing holds us back but the depth.
    let mut credits = if plan.credits { plan.receives } else { plan.count };
    counts.begin(plan.count / plan.signal_every + 1);
    // The clock is read once for each completion: it also costs something. What is posted next is posted at that time.
    let mut now = Instant::now();
    while done < plan.count {
        let room = plan.depth - (posted - done);
        // A batch waits until there is room for all of it; but not if nothing is under way that will report.
        let most = if flights.is_empty() { plan.batch.min(room) } else { plan.batch };
        let next = most.min(plan.count - posted).min(credits);
        if next > 0 && next <= room {
            let first = match plan.register_each {
                true => post_registered_anew(desk, plan, pool, operation, posted)?,
                false => {
                    batch.clear();
                    batch.extend((posted..posted + next).map(|at| request(plan, pool, operation, at)));
                    post(desk, &batch)?
                }
            };
            for at in (0..next).filter(|at| plan.is_signaled(posted + at)) {
                flights.push_back(Flight { wr_id: first + at as u64, posted: now, done: posted + at + 1 });
            }
            (posted, counts.posts) = (posted + next, counts.posts + 1);
            credits -= if plan.credits { next } else { 0 };
            continue;
        }
        let completion = waiter.next()?;
        if completion.opcode() == Some(IBV_WC_RECV) {
            // So many receives are free again at the server. Its next word needs one of ours.
            credits += completion.imm_data().unwrap_or(0) as usize;
            desk.qp.post_recv_pieces(&[])?;
            continue;
        }
        now = Instant::now();
        // Requests complete in the order in which they were posted.
        while flights.front().is_some_and(|flight| flight.wr_id <= completion.wr_id) {
            let Some(flight) = flights.pop_front() else { break };
            done = flight.done;
            counts.latency(now - flight.posted);
        }
    }
    counts.end(&waiter, plan.count);
    Ok(())
}

/// Request number `at`, counted from 0.
fn request<'a>(plan: &Plan, pool: &'a Pool, operation: Operation, at: usize) -> SendWr<'a> {
    let wr = match plan.inline {
        true => SendWr::inline(operation, &pool.inline),
        false => SendWr::new(operation, &[(&pool.regions[at % plan.depth], 0..plan.size)]),
    };
    if plan.is_signaled(at) {
        wr
    } else {
        wr.unsignaled()
    }
}

/// One call, whether for one request or for many. Returns the number of the first.
fn post(desk: &Desk, batch: &[SendWr]) -> Result<u64> {
    if let [one] = batch {
        return desk.qp.post_send(one);
    }
    let (wr_ids, result) = desk.qp.post_send_all(batch);
    result.map(|()| wr_ids.start)
}

/// A region for this request alone. It is let go here; the queue keeps it until the request is done, and then it is
/// deregistered.
fn post_registered_anew(desk: &Desk, plan: &Plan, pool: &Pool, operation: Operation, at: usize) -> Result<u64> {
    let region = desk.pd.reg_buffer(&pool.buffers[at % plan.depth], plan.size, pool.access)?;
    let wr = SendWr::new(operation, &[(&region, 0..plan.size)]);
    desk.qp.post_send(&if plan.is_signaled(at) { wr } else { wr.unsignaled() })
}

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

struct Flow<'a> {
    desk: &'a Desk,
    plan: &'a Plan,
    pool: &'a Pool,
    operation: Operation,
    flights: VecDeque<Flight>,
    batch: Vec<SendWr<'a>>,
    posted: usize,
    done: usize,
    /// How many receives are free at the server. None if nobody tells: then nothing but the depth holds us back.
    credits: Option<usize>,
    /// The clock is read once for each completion: it also costs something. What is posted next is posted at that time.
    now: Instant,
}

pub fn flow(desk: &Desk, plan: &Plan, pool: &Pool, peer: Metadata) -> Result<Counts> {
    let _stage = stage("flow");
    let mut waiter = Waiter::new(desk, plan.wait);
    let mut flow = Flow {
        desk,
        plan,
        pool,
        operation: plan.operation(peer),
        flights: VecDeque::with_capacity(plan.depth),
        batch: Vec::with_capacity(plan.batch),
        posted: 0,
        done: 0,
        credits: plan.credits.then_some(plan.receives),
        now: Instant::now(),
    };
    let mut counts = Counts::begin(desk.context.name(), plan.count / plan.signal_every + 1);
    while flow.done < plan.count {
        match flow.may_post() {
            0 => flow.take(waiter.next()?, &mut counts)?,
            next => flow.post(next, &mut counts)?,
        }
    }
    counts.end(&waiter, plan.count);
    Ok(counts)
}

impl Flow<'_> {
    /// How many requests go with the next post: none while there is no room.
    fn may_post(&self) -> usize {
        let room = self.plan.depth - (self.posted - self.done);
        // A batch waits until there is room for all of it; but not if nothing is under way that will report.
        let most = if self.flights.is_empty() { self.plan.batch.min(room) } else { self.plan.batch };
        let next = most.min(self.plan.count - self.posted).min(self.credits.unwrap_or(usize::MAX));
        if next <= room {
            next
        } else {
            0
        }
    }

    fn post(&mut self, next: usize, counts: &mut Counts) -> Result<()> {
        let Self { desk, plan, pool, operation, posted, .. } = *self;
        let first = if plan.register_each {
            post_registered_anew(desk, plan, pool, operation, posted)?
        } else {
            self.batch.clear();
            self.batch.extend((posted..posted + next).map(|at| request(plan, pool, operation, at)));
            post(desk, &self.batch)?
        };
        for at in (0..next).filter(|at| plan.is_signaled(posted + at)) {
            self.flights.push_back(Flight { wr_id: first + at as u64, posted: self.now, done: posted + at + 1 });
        }
        self.posted += next;
        self.credits = self.credits.map(|credits| credits - next);
        counts.posts += 1;
        Ok(())
    }

    /// A completion is a word about credits, or the end of requests of ours.
    fn take(&mut self, completion: WorkCompletion, counts: &mut Counts) -> Result<()> {
        if completion.opcode() == Some(IBV_WC_RECV) {
            // So many receives are free again at the server. Its next word needs one of ours.
            let free = completion.imm_data().unwrap_or(0) as usize;
            self.credits = self.credits.map(|credits| credits + free);
            return self.desk.qp.post_recv_pieces(&[]).map(drop);
        }
        self.now = Instant::now();
        // Requests complete in the order in which they were posted.
        while let Some(flight) = self.flights.front().filter(|flight| flight.wr_id <= completion.wr_id) {
            self.done = flight.done;
            counts.latencies.push(self.now - flight.posted);
            self.flights.pop_front();
        }
        Ok(())
    }
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

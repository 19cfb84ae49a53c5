//! The client's loop, which keeps as many requests under way as the plan allows.
//!
//! Its lists get their room before the clock starts, so that only a sleep and `--mrs each` allocate anything afterwards.

use std::{collections::VecDeque, time::Duration, time::Instant};

use common::{wc::IBV_WC_RECV, *};

use crate::{plan::Plan, wait::Waiter, Desk, INLINE};

/// A signaled request that's under way. When it's done, so are all before it.
struct Flight {
    wr_id: u64,
    posted: Instant,
    /// How many requests are done when this one is.
    done: usize,
}

pub struct Flow<'a> {
    pub desk: &'a Desk,
    pub plan: &'a Plan,
    pool: &'a [MemoryRegion],
    operation: Operation,
    pub waiter: Waiter<'a>,
    flights: VecDeque<Flight>,
    batch: Vec<SendWr<'a>>,
    posted: usize,
    done: usize,
    /// How many more SENDs will find a receive at the server. Without `--credits` nobody counts them.
    credits: usize,
    /// When the last completion came. Reading the clock costs time, so what we post next counts as posted now.
    pub now: Instant,
    pub started: Instant,
    pub posts: u64,
    /// From the post of a signaled request to its completion in the program's hands.
    pub latencies: Vec<Duration>,
    /// What the device's counters said before we began.
    pub before: [Option<u64>; 4],
}

pub fn flow<'a>(desk: &'a Desk, plan: &'a Plan, pool: &'a [MemoryRegion], peer: Metadata) -> Result<Flow<'a>> {
    let _stage = stage("flow");
    let mut flow = Flow {
        desk,
        plan,
        pool,
        operation: plan.operation(peer),
        waiter: Waiter::new(desk, plan.looks),
        flights: VecDeque::with_capacity(plan.depth),
        batch: Vec::with_capacity(plan.batch),
        posted: 0,
        done: 0,
        credits: if plan.credits { plan.receives } else { usize::MAX },
        posts: 0,
        latencies: Vec::with_capacity(plan.count / plan.signal_every + 1),
        before: device_counts(desk),
        now: Instant::now(),
        started: Instant::now(),
    };
    while flow.done < plan.count {
        match flow.may_post() {
            0 => flow.take_completion()?,
            next => flow.post(next)?,
        }
    }
    Ok(flow)
}

impl<'a> Flow<'a> {
    /// How many requests the next post takes. 0 means that we have to wait for a completion first.
    fn may_post(&self) -> usize {
        let room = self.plan.depth - (self.posted - self.done);
        match self.plan.batch.min(self.plan.count - self.posted).min(self.credits) {
            batch if batch <= room => batch,
            // A batch waits until there's room for all of it, unless nothing is under way that would free some.
            _ if self.flights.is_empty() => room,
            _ => 0,
        }
    }

    fn post(&mut self, next: usize) -> Result<()> {
        let Self { desk, plan, pool, operation, posted, .. } = *self;
        let first = if plan.register_each {
            // We let go of the region here, but the queue keeps it until the request is done, and only then deregisters it.
            let region = desk.pd.reg_mr(plan.size, Access::LOCAL_WRITE)?;
            desk.qp.post_send(&request(plan, operation, &region, posted))?
        } else {
            let request = |at| request(plan, operation, &pool[at % plan.depth], at);
            self.batch.clear();
            self.batch.extend((posted..posted + next).map(request));
            // One call, whether for one request or for many.
            let (wr_ids, result) = desk.qp.post_send_all(&self.batch);
            result.map(|()| wr_ids.start)?
        };
        for at in (0..next).filter(|at| plan.is_signaled(posted + at)) {
            self.flights.push_back(Flight { wr_id: first + at as u64, posted: self.now, done: posted + at + 1 });
        }
        self.posted += next;
        self.credits -= next;
        self.posts += 1;
        Ok(())
    }

    /// A completion means that requests of ours are done, or that the server has given credits back.
    fn take_completion(&mut self) -> Result<()> {
        let completion = self.waiter.next()?;
        if completion.opcode() == Some(IBV_WC_RECV) {
            // This many receives are free again at the server. Its message used up one of ours, so we post another.
            let free = completion.imm_data().unwrap_or(0) as usize;
            self.credits = self.credits.saturating_add(free);
            return self.desk.qp.post_recv_pieces(&[]).map(drop);
        }
        self.now = Instant::now();
        // Requests complete in the order in which they were posted, so those before this one are done as well.
        while let Some(flight) = self.flights.front().filter(|flight| flight.wr_id <= completion.wr_id) {
            self.done = flight.done;
            self.latencies.push(self.now - flight.posted);
            self.flights.pop_front();
        }
        Ok(())
    }
}

/// Request number `at`, counted from 0.
fn request<'a>(plan: &Plan, operation: Operation, region: &'a MemoryRegion, at: usize) -> SendWr<'a> {
    let request = match plan.inline {
        // The post itself copies the bytes, so they need no region.
        true => SendWr::inline(operation, &[0; INLINE as usize][..plan.size]),
        false => SendWr::new(operation, &[(region, 0..plan.size)]),
    };
    match plan.is_signaled(at) {
        true => request,
        false => request.unsignaled(),
    }
}

/// What SoftRoCE's driver counts: packets both ways, RNR NAKs that came, and how often it began to send again. A NIC's
/// counters have other names, and a device in user space has none.
pub fn device_counts(desk: &Desk) -> [Option<u64>; 4] {
    ["sent_pkts", "rcvd_pkts", "rcvd_rnr_err", "completer_retry_err"].map(|name| desk.context.hw_counter(1, name))
}

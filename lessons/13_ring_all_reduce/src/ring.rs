//! The work: WRITEs to the right, credits to the left, and never more under way than the right neighbour has room for.

use std::{collections::VecDeque, ops::Range, os::fd::AsFd, time::Duration, time::Instant};

use common::{deadline::is_readable, deadline::Deadline, error::Kind, *};

use crate::meeting::{Door, Seat};
use crate::plan::{to_bytes, to_numbers, Slice, WIDTH};
use crate::{QUEUE, SLOTS};

/// Which neighbour.
pub const RIGHT: usize = 0;
pub const LEFT: usize = 1;

/// A connection to a neighbour.
pub struct Link {
    pub rank: usize,
    qp: QueuePair,
    pub id: CmId,
    pub events: EventChannel,
    /// Requests that have not completed yet.
    under_way: usize,
    /// How many slices, and bytes, we've sent to the right one, or how many slices we've taken from the left one.
    pub slices: usize,
    pub bytes: usize,
    /// How long we've waited for it.
    pub waited: Duration,
}

impl Link {
    /// Whatever went wrong, the reader should learn whom it's about, and where to look next.
    pub fn blame(&self, error: &Error) -> Error {
        let (rank, what) = (self.rank, error.to_string().split(". Next: ").take(1).collect::<String>());
        let next = format!("Look at the log of rank {rank}, at {}: whom does it name?", self.id.peer_name());
        Error::of(Kind::PeerGone, format!("rank {rank}: {what}"), next)
    }
}

/// What a rank works with. Fields are dropped from the top.
pub struct Ring<'a> {
    pub seat: &'a Seat,
    pub door: &'a Door,
    /// The right one, and then the left one.
    pub links: Vec<Link>,
    /// Our own numbers in the beginning, and the sum in the end. In all-gather the left neighbour WRITEs into it.
    pub vector: MemoryRegion,
    /// In reduce-scatter the left neighbour WRITEs here, because its bytes must be added first.
    pub slots: MemoryRegion,
    /// For both queue pairs.
    cq: CompletionQueue,
    channel: CompletionChannel,
    pd: ProtectionDomain,
    /// The right neighbour's vector and slots.
    pub theirs: [Metadata; 2],
    /// How many slots are free at the right neighbour, each with its receive.
    credits: usize,
    /// The immediates of what the left neighbour has WRITTEN and we haven't looked at yet.
    arrived: VecDeque<u32>,
}

impl<'a> Ring<'a> {
    pub fn create(id: &CmId, seat: &'a Seat, door: &'a Door) -> Result<Self> {
        let _stage = stage("create_resources");
        let context = id.verbs()?;
        let pd = context.alloc_pd()?;
        let channel = context.create_comp_channel()?;
        // Room for all that the queues of both QPs can complete.
        let cq = channel.create_cq(2 * (QUEUE.max_send_wr + QUEUE.max_recv_wr) as i32)?;
        let open = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
        // Even a vector of no elements gets a region, and a region can't be empty.
        let vector = pd.reg_mr(seat.plan.bytes().max(WIDTH), open)?;
        vector.write(0, &to_bytes(&seat.plan.before(seat.rank)))?;
        let slots = pd.reg_mr(seat.plan.slot() * SLOTS, open)?;
        let (links, theirs, arrived) = (Vec::new(), [Metadata::REFUSAL; 2], VecDeque::with_capacity(SLOTS));
        Ok(Self { seat, door, links, vector, slots, cq, channel, pd, theirs, credits: SLOTS, arrived })
    }

    /// Makes a queue pair for a neighbour, and posts a receive for each slot before anybody can send. A WRITE with immediate
    /// uses one up, and so does a credit. Neither needs any memory there.
    pub fn link(&mut self, rank: usize, id: CmId, events: EventChannel) -> Result<()> {
        let qp = id.create_qp(&self.pd, &QpInitAttr::new(&self.cq, QUEUE))?;
        (0..SLOTS).try_for_each(|_| qp.post_recv_pieces(&[]).map(drop))?;
        self.links.push(Link { rank, qp, id, events, under_way: 0, slices: 0, bytes: 0, waited: Duration::ZERO });
        Ok(())
    }

    /// The first half. Every chunk goes round, and each rank adds its own numbers to it. At the end rank r has the sum of chunk r.
    pub fn reduce_scatter(&mut self) -> Result<()> {
        let _stage = stage("reduce_scatter");
        self.steps(0..self.seat.plan.half())
    }

    /// The second half. Every sum goes round.
    pub fn all_gather(&mut self) -> Result<()> {
        let _stage = stage("all_gather");
        self.steps(self.seat.plan.half()..2 * self.seat.plan.half())
    }

    /// In each step one chunk goes to the right, while another comes from the left. That's the one we'll send in the next step.
    fn steps(&mut self, steps: Range<usize>) -> Result<()> {
        let Seat { rank, plan, .. } = self.seat;
        for (step, number) in steps.flat_map(|step| (0..plan.slices()).map(move |number| (step, number))) {
            if let Some(slice) = plan.sends(*rank, step, number) {
                self.send(&slice)?;
            }
            if let Some(slice) = plan.sends(plan.left_of(*rank), step, number) {
                self.receive(&slice)?;
            }
        }
        Ok(())
    }

    /// One-sided, and still the right neighbour's program hears of it. The immediate data say which slice of which chunk it is.
    fn send(&mut self, slice: &Slice) -> Result<()> {
        while self.credits == 0 {
            self.wait(RIGHT, &format!("a credit for step {}, chunk {}", slice.step, slice.chunk))?;
        }
        self.credits -= 1;
        let (at, [vector, slots]) = (self.links[RIGHT].slices % SLOTS * self.seat.plan.slot(), &self.theirs);
        let to = match slice.step < self.seat.plan.half() {
            true => slots.slice(at as u32..(at + slice.bytes.len()) as u32)?,
            false => vector.slice(slice.bytes.start as u32..slice.bytes.end as u32)?,
        };
        self.post(RIGHT, Operation::WriteImm(to, slice.immediate), slice.bytes.clone())?;
        self.links[RIGHT].slices += 1;
        self.links[RIGHT].bytes += slice.bytes.len();
        Ok(())
    }

    fn receive(&mut self, slice: &Slice) -> Result<()> {
        while self.arrived.is_empty() {
            self.wait(LEFT, &format!("step {}, chunk {}", slice.step, slice.chunk))?;
        }
        if self.arrived.pop_front() != Some(slice.immediate) {
            let what = format!("rank {} sends other than 0x{:08x}", self.links[LEFT].rank, slice.immediate);
            return Err(Error::of(Kind::Malformed, what, "Run lesson 13 on all machines"));
        }
        std::thread::sleep(Duration::from_millis(self.seat.pause as u64));
        if slice.step < self.seat.plan.half() {
            self.add(slice)?;
        }
        self.give_credit()
    }

    /// Adds what's in the slot to our own numbers. The sum is what we'll send in the next step.
    fn add(&self, slice: &Slice) -> Result<()> {
        let at = self.links[LEFT].slices % SLOTS * self.seat.plan.slot();
        let theirs = to_numbers(&self.slots.read(at..at + slice.bytes.len())?);
        let ours = to_numbers(&self.vector.read(slice.bytes.clone())?);
        let sum: Vec<f32> = theirs.iter().zip(ours).map(|(theirs, ours)| theirs + ours).collect();
        self.vector.write(slice.bytes.start, &to_bytes(&sum))
    }

    /// Posts the receive first, and only then says so. After the last slices we say nothing, because nothing will follow them.
    fn give_credit(&mut self) -> Result<()> {
        let (Seat { rank, plan, .. }, left) = (self.seat, &mut self.links[LEFT]);
        left.qp.post_recv_pieces(&[])?;
        left.slices += 1;
        let taken = left.slices;
        if taken + SLOTS > plan.count(plan.left_of(*rank)) {
            return Ok(());
        }
        self.post(LEFT, Operation::SendImm(taken as u32), 0..0)
    }

    /// Posts a request as soon as the queue has room for it. A neighbour's next message may overtake its ACK.
    fn post(&mut self, to: usize, what: Operation, bytes: Range<usize>) -> Result<()> {
        while self.links[to].under_way == QUEUE.max_send_wr as usize {
            self.wait(to, "its ACK")?;
        }
        let piece = [(&self.vector, bytes)];
        let pieces = if piece[0].1.is_empty() { &[][..] } else { &piece[..] };
        self.links[to].qp.post_send(&SendWr::new(what, pieces))?;
        self.links[to].under_way += 1;
        Ok(())
    }

    /// Waits until our WRITEs have completed. If we hung up before that, we'd never know whether they arrived. Credits are
    /// different. Our left neighbour has sent us everything, so it must have had them, and if the ACK of one is lost, it may be gone.
    pub fn finish(&mut self) -> Result<()> {
        let _stage = stage("finish");
        while self.links[RIGHT].under_way > 0 {
            self.wait(RIGHT, "its last ACK")?;
        }
        Ok(())
    }

    /// Sleeps until something completes, whatever it is. An error names the rank that we were waiting for.
    fn wait(&mut self, from: usize, awaited: &str) -> Result<()> {
        let (started, link) = (Instant::now(), &self.links[from]);
        let deadline = Deadline::answer(format!("rank {}: {awaited}", link.rank));
        loop {
            // Look for a goodbye before the poll, so that the poll finds whatever came before it.
            let hung_up = is_readable(&link.events);
            // Arm, poll, and only then sleep. In any other order a completion could fall between poll and sleep.
            self.cq.req_notify()?;
            let completions = self.cq.poll()?;
            if !completions.is_empty() {
                self.links[from].waited += started.elapsed();
                return completions.into_iter().try_for_each(|wc| self.on_completion(wc));
            }
            if hung_up {
                return Err(link.blame(&link.events.get_cm_event()?.instead_of(awaited)));
            }
            self.door.wait_readable(&[self.channel.as_fd(), link.events.as_fd()], &deadline)?;
            self.channel.try_get_cq_event()?;
        }
    }

    fn on_completion(&mut self, wc: WorkCompletion) -> Result<()> {
        let from = if wc.qp_num == self.links[RIGHT].qp.qp_num() { RIGHT } else { LEFT };
        let wc = wc.into_success().map_err(|error| self.links[from].blame(&error))?;
        match wc.imm_data() {
            None => self.links[from].under_way -= 1,
            Some(said) if from == LEFT => self.arrived.push_back(said),
            Some(_) => {
                // Post the receive for the next credit before the WRITE that will cause it.
                self.links[RIGHT].qp.post_recv_pieces(&[])?;
                self.credits += 1;
            }
        }
        Ok(())
    }
}

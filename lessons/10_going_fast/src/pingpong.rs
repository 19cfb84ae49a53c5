//! One message there, one back, again and again: how long does it take until the other *program* has something? perftest
//! measures the latency of SEND and WRITE in this way, and tells half of there and back.
//!
//! Nobody tells a program that a plain WRITE has come. So both look into their memory until the last 8 bytes change: devices
//! place the bytes of a message from first to last, though no standard says so, and much that is fast relies on it.

use std::time::Instant;

use common::*;

use crate::{count::Counts, plan::Plan, wait::Waiter, Desk, OPS};

/// After so many looks into the memory, is the peer still there? A look costs next to nothing, the question a system call.
const PATIENCE: u64 = 1 << 16;

/// What one side has: where its messages come from, and where the other's come.
pub struct Table<'a> {
    desk: &'a Desk,
    plan: &'a Plan,
    outbox: MemoryRegion,
    /// The same bytes, for requests that carry them.
    inline: Vec<u8>,
    pub inbox: MemoryRegion,
    pub peer: Metadata,
    /// Nobody tells of a plain WRITE.
    polls_memory: bool,
}

impl<'a> Table<'a> {
    /// With one receive posted more than messages can come: the next one finds one, whoever is faster.
    pub fn lay(desk: &'a Desk, plan: &'a Plan) -> Result<Self> {
        let _stage = stage("lay_table");
        let inbox = desk.pd.reg_mr(plan.size, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
        let outbox = desk.pd.reg_mr(plan.size, Access::LOCAL_READ)?;
        let inline = vec![0; plan.size];
        let polls_memory = OPS[plan.op] == "write";
        let table = Self { desk, plan, outbox, inline, inbox, peer: Metadata::REFUSAL, polls_memory };
        table.post_recv()?;
        table.post_recv()?;
        Ok(table)
    }

    /// The client begins; the counts are its own.
    pub fn serve(&mut self, counts: &mut Counts) -> Result<()> {
        let _stage = stage("pingpong");
        let (mut waiter, operation) = (Waiter::new(self.desk, self.plan.wait), self.plan.operation(self.peer));
        counts.begin(self.plan.count);
        let mut before = Instant::now();
        for turn in 1..=self.plan.count as u64 {
            self.hit(turn, operation)?;
            self.wait(&mut waiter, turn, self.is_signaled(turn))?;
            counts.posts += 1;
            let now = Instant::now();
            counts.latency((now - before) / 2);
            before = now;
        }
        counts.end(&waiter, self.plan.count);
        Ok(())
    }

    pub fn answer(&mut self) -> Result<()> {
        let _stage = stage("pingpong");
        let (mut waiter, operation) = (Waiter::new(self.desk, self.plan.wait), self.plan.operation(self.peer));
        for turn in 1..=self.plan.count as u64 {
            self.wait(&mut waiter, turn, turn > 1 && self.is_signaled(turn - 1))?;
            self.hit(turn, operation)?;
        }
        // Our last answer is done: only then may its memory go.
        waiter.next().map(|_| ())
    }

    /// What has to be done besides comes after the post: by then the message is on its way.
    fn hit(&mut self, turn: u64, operation: Operation) -> Result<()> {
        if self.polls_memory {
            let last = self.plan.size - 8;
            match self.plan.inline {
                true => self.inline[last..].copy_from_slice(&turn.to_ne_bytes()),
                false => self.outbox.write_u64(last, turn)?,
            }
        }
        let wr = match self.plan.inline {
            true => SendWr::inline(operation, &self.inline),
            false => SendWr::new(operation, &[(&self.outbox, 0..self.plan.size)]),
        };
        let wr = if self.is_signaled(turn) { wr } else { wr.unsignaled() };
        self.desk.qp.post_send(&wr)?;
        // In place of the one that the other's next message takes.
        if self.polls_memory {
            Ok(())
        } else {
            self.post_recv()
        }
    }

    fn is_signaled(&self, turn: u64) -> bool {
        self.plan.is_signaled(turn as usize - 1)
    }

    /// The other's message, and the completion of our own last one, if that was signaled.
    fn wait(&mut self, waiter: &mut Waiter, turn: u64, own: bool) -> Result<()> {
        // Where both come as completions, in whatever order. Else our own comes first: its ACK went out before the answer.
        for _ in 0..u8::from(own) + u8::from(!self.polls_memory) {
            waiter.next()?;
        }
        let mut looks = 0u64;
        while self.polls_memory && self.inbox.read_u64(self.plan.size - 8)? != turn {
            looks += 1;
            if looks % PATIENCE == 0 {
                waiter.check_peer()?;
            }
        }
        Ok(())
    }

    fn post_recv(&self) -> Result<()> {
        let whole = [(&self.inbox, 0..self.plan.size)];
        // The bytes of a WRITE with immediate go where its request says.
        self.desk.qp.post_recv_pieces(if OPS[self.plan.op] == "send" { &whole } else { &[] }).map(|_| ())
    }
}

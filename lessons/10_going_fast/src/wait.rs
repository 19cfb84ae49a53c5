//! Three ways to wait for a completion.
//!
//! ```text
//! poll     look again and again        answers at once, and keeps a processor busy
//! sleep    arm, look, sleep            costs an interrupt and two switches each time, and nothing in between
//! hybrid   look a while, then sleep    polls while the traffic is dense, and sleeps while it's thin
//! ```

use common::deadline::{is_readable, Deadline};
use common::{Result, Woken, WorkCompletion};

use crate::Desk;

/// How often we look and find nothing before we sleep.
pub const POLL: usize = u32::MAX as usize;
pub const SLEEP: usize = 0;
pub const HYBRID: usize = 200;

/// How often we look before we ask whether the peer is still there, and how late it is. Both cost more than a look.
const PATIENCE: usize = 4096;

pub struct Waiter<'a> {
    desk: &'a Desk,
    looks: usize,
    armed: bool,
    pub completions: u64,
    pub polls: u64,
    pub sleeps: u64,
}

impl<'a> Waiter<'a> {
    pub fn new(desk: &'a Desk, looks: usize) -> Self {
        Self { desk, looks, armed: false, completions: 0, polls: 0, sleeps: 0 }
    }

    /// Waits for the next completion.
    pub fn next(&mut self) -> Result<WorkCompletion> {
        let (mut in_vain, mut deadline) = (0, None);
        loop {
            // We ask before we look, so that whatever came before the peer's goodbye is in the queue by then.
            let cm_event = in_vain % PATIENCE == PATIENCE - 1 && self.has_cm_event(&mut deadline)?;
            self.polls += 1;
            if let Some(found) = self.desk.cq.poll_one()? {
                self.completions += 1;
                return found.into_success();
            }
            if cm_event {
                return Err(self.desk.events.get_cm_event()?.instead_of("the next completion"));
            }
            in_vain += 1;
            if in_vain > self.looks {
                self.sleep()?;
            }
        }
    }

    /// The first call only arms, so that we look once more before the second one sleeps. A completion that came between the
    /// last look and the arming would wake nobody.
    fn sleep(&mut self) -> Result<()> {
        if !self.armed {
            self.armed = true;
            return self.desk.cq.req_notify();
        }
        self.sleeps += 1;
        self.armed = false;
        match self.desk.channel.get_cq_event_or_cm_event(&self.desk.events, "the next completion")? {
            Woken::Completion(_) => Ok(()),
            Woken::CmEvent => Err(self.desk.events.get_cm_event()?.instead_of("the next completion")),
        }
    }

    /// Has the peer gone, or has nothing come for too long? The time starts with the first such question, so a completion that
    /// comes soon costs no look at the clock.
    pub fn has_cm_event(&self, deadline: &mut Option<Deadline>) -> Result<bool> {
        deadline.get_or_insert_with(|| Deadline::answer("the next completion")).left()?;
        Ok(is_readable(&self.desk.events))
    }
}

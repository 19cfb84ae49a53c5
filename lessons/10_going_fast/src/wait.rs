//! Three ways to wait for a completion.
//!
//! ```text
//! poll     look again and again        answers at once, and keeps a processor busy
//! sleep    arm, look, sleep            costs an interrupt and two switches each time, and nothing meanwhile
//! hybrid   look a while, then sleep    the first while the traffic is dense, the second while it is thin
//! ```

use std::os::fd::AsFd;

use common::deadline::{is_readable, Deadline};
use common::{Result, WorkCompletion};

use crate::{plan::Wait, Desk};

/// So many times a hybrid wait looks before it sleeps.
const LOOKS: u64 = 200;
/// After so many looks in vain a polling program looks whether the peer is still there, and at the clock. Both cost more
/// than a look.
const PATIENCE: u64 = 4096;

pub struct Waiter<'a> {
    desk: &'a Desk,
    /// Looks in vain before it sleeps.
    looks: u64,
    armed: bool,
    quiet: Deadline,
    /// Completions when the quiet began.
    then: u64,
    pub completions: u64,
    pub polls: u64,
    pub sleeps: u64,
}

impl<'a> Waiter<'a> {
    pub fn new(desk: &'a Desk, wait: Wait) -> Self {
        let looks = match wait {
            Wait::Poll => u64::MAX,
            Wait::Sleep => 0,
            Wait::Hybrid => LOOKS,
        };
        let quiet = Deadline::answer("the next completion");
        Self { desk, looks, armed: false, quiet, then: 0, completions: 0, polls: 0, sleeps: 0 }
    }

    /// The next completion, if it is there.
    fn look(&mut self) -> Result<Option<WorkCompletion>> {
        self.polls += 1;
        let found = self.desk.cq.poll_one()?;
        self.completions += u64::from(found.is_some());
        found.map(WorkCompletion::into_success).transpose()
    }

    /// Waits for it.
    pub fn next(&mut self) -> Result<WorkCompletion> {
        let mut looks = 0;
        loop {
            if let Some(found) = self.look()? {
                return Ok(found);
            }
            looks += 1;
            if looks > self.looks {
                self.sleep()?;
            } else if looks % PATIENCE == 0 {
                self.check_peer()?;
            }
        }
    }

    /// Arms first, and sleeps only when the next look was in vain, too: what came between look and arming wakes nobody.
    fn sleep(&mut self) -> Result<()> {
        if !self.armed {
            self.armed = true;
            return self.desk.cq.req_notify();
        }
        self.restart_clock();
        self.sleeps += 1;
        let ready = self.quiet.wait_readable(&[self.desk.channel.as_fd(), self.desk.events.as_fd()])?;
        match self.desk.channel.try_get_cq_event()? {
            Some(_) => self.armed = false,
            None if ready == 1 => return Err(self.desk.events.get_cm_event()?.instead_of("the next completion")),
            None => {}
        }
        Ok(())
    }

    /// Has the peer gone, or has nothing come for too long?
    pub fn check_peer(&mut self) -> Result<()> {
        if is_readable(&self.desk.events) {
            return Err(self.desk.events.get_cm_event()?.instead_of("the next completion"));
        }
        self.restart_clock();
        self.quiet.left().map(|_| ())
    }

    /// The time runs from the first look at the clock after the last completion: so a completion itself costs no look.
    fn restart_clock(&mut self) {
        if self.completions > self.then {
            (self.then, self.quiet) = (self.completions, Deadline::answer("the next completion"));
        }
    }
}

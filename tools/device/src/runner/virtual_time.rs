//! A run in virtual time, turn by turn.

use super::link::Turn;
use super::Session;
use anyhow::{ensure, Result};
use std::time::{Duration, Instant};

/// How long programs that work are left alone.
const MOMENT: Duration = Duration::from_micros(50);
/// So many turns, before others look at what they must look at.
const TURNS: usize = 1000;
/// How often we look when nothing is due: a program sleeps for a time, or waits for another one.
const IDLE: Duration = Duration::from_millis(2);
/// How long a device may take for one step.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long what is under way may take when all programs have ended.
const REST: Duration = Duration::from_secs(2);

impl Session<'_> {
    /// Lets time go on if it is virtual, and says how long to wait for what happens next. None if it is not.
    pub(super) fn go_on(&mut self) -> Result<Option<Duration>> {
        if self.wires.link.is_none() || !self.all_started() {
            return Ok(None);
        }
        for _ in 0..TURNS {
            if let Some(wait) = self.turn()? {
                return Ok(Some(wait));
            }
        }
        Ok(Some(Duration::ZERO))
    }

    /// One turn; says how long to wait if programs are to act next.
    fn turn(&mut self) -> Result<Option<Duration>> {
        if self.wires.link.as_ref().is_some_and(|link| link.is_news) {
            // All that was said is of this time. So is an end of which nobody has told us yet.
            self.hear_all()?;
            if self.programs.iter().any(|program| program.exit.is_none() && program.has_ended()) {
                return Ok(Some(MOMENT));
            }
        }
        match self.wires.turn(self.processes.guardian()) {
            Some(Turn::Wait) => return Ok(Some(MOMENT)),
            Some(Turn::Idle) => {
                if let Some(link) = &mut self.wires.link {
                    link.is_news = true;
                }
                return Ok(Some(IDLE));
            }
            Some(Turn::Moved) => self.do_what_is_due()?,
            Some(Turn::Asked) | None => self.hear_nodes()?,
        }
        Ok(None)
    }

    /// All that happens at the time to which we have moved: first at the switch, then at the nodes, in their order.
    fn do_what_is_due(&mut self) -> Result<()> {
        let now = self.wires.now();
        self.recorder.set_time(now);
        let arrived = self.wires.cross(&mut self.recorder)?;
        self.wires.let_go(&mut self.recorder)?;
        for (node, frame) in arrived {
            self.step(node, &frame)?;
        }
        let due = self.wires.link.as_ref().map(|link| link.due(now)).unwrap_or_default();
        due.into_iter().try_for_each(|node| self.step(node, &[]))
    }

    fn step(&mut self, node: usize, frame: &[u8]) -> Result<()> {
        let now = self.wires.now();
        if let Some(link) = &mut self.wires.link {
            link.ask(node, now, frame);
        }
        self.hear_nodes()
    }

    /// Until all nodes have answered that were asked.
    fn hear_nodes(&mut self) -> Result<()> {
        let begun = Instant::now();
        while self.wires.link.as_ref().is_some_and(|link| link.is_waiting()) && self.panicked.is_none() {
            ensure!(
                begun.elapsed() < PATIENCE,
                "a device hasn't answered for {} s. If this machine is busy, run the same command again",
                PATIENCE.as_secs()
            );
            if let Some(message) = self.inbox.next(Duration::from_millis(100))? {
                self.take(message)?;
            }
        }
        Ok(())
    }

    fn hear_all(&mut self) -> Result<()> {
        while let Some(message) = self.inbox.next(Duration::ZERO)? {
            self.take(message)?;
        }
        Ok(())
    }

    /// All programs have ended; what is under way arrives, or does not.
    pub(super) fn finish_crossing(&mut self) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < REST {
            match self.go_on()? {
                None | Some(IDLE) => break,
                Some(wait) => {
                    if let Some(message) = self.inbox.next(wait)? {
                        self.take(message)?;
                    }
                }
            }
        }
        Ok(())
    }
}

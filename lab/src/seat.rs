//! One side of a session: a machine with its program.

use crate::agent::{Agent, Message};
use crate::interrupt::Interrupt;
use crate::lines::Lines;
use crate::machine::Machine;
use crate::outcome::Ended;
use crate::run::{Run, Side};
use crate::switch::Switch;
use anyhow::{bail, Context, Result};
use std::fs::File;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How long to wait for the machine's answer to an inspection.
const INSPECTION: Duration = Duration::from_secs(60);

/// A machine with its program.
pub(crate) struct Seat {
    pub side: Side,
    /// None once its power is off.
    pub machine: Option<Machine>,
    pub agent: Agent,
    /// What the program prints.
    pub output: File,
    pub lines: Lines,
    pub stage: Stage,
    pub ended: Ended,
}

/// How far a side has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It has a program that was not started.
    Waiting,
    /// Its program runs.
    Running,
    /// Its program has ended, or it never had one.
    Done,
}

impl Seat {
    /// Seats a machine and plugs its card into the switch.
    pub fn new(side: Side, (machine, agent): (Machine, Agent), run: &Run, switch: &mut Switch) -> Result<Self> {
        switch.plug(machine.card.try_clone().context("cannot use a machine's card")?)?;
        let output = machine.program.try_clone().context("cannot use a machine's output")?;
        let stage = if run.commands[side.index()].is_some() { Stage::Waiting } else { Stage::Done };
        let (machine, lines, ended) = (Some(machine), Lines::default(), Ended::default());
        Ok(Self { side, machine, agent, output, lines, stage, ended })
    }

    /// Runs a shell command in the machine and gives what it prints.
    pub fn inspect(&mut self, command: &str, interrupt: &Interrupt) -> Result<Vec<String>> {
        self.agent.say(&format!("inspect {command}"));
        let limit = Instant::now() + INSPECTION;
        let mut output = Vec::new();
        loop {
            match self.agent.receive() {
                Some(Message::Output(line)) => output.push(line),
                Some(Message::Inspected) => return Ok(output),
                Some(_) => {}
                None if self.agent.is_closed() || Instant::now() >= limit => {
                    bail!("the {} did not answer `{command}`\n{}", self.side.name(), self.agent.console_end())
                }
                None => interrupt.wait(&[(self.agent.stream().as_fd(), false)], limit)?,
            }
        }
    }
}

//! One node of a session: a machine with its program.

use crate::agent::Agent;
use crate::cards::Cards;
use crate::interrupt::Interrupt;
use crate::machine::{Machine, Qemu};
use crate::outcome::Ended;
use anyhow::{bail, Result};
use run::lines::Lines;
use run::programs::Node;
use std::fs::File;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How long to wait for the machine's answer to an inspection.
const INSPECTION: Duration = Duration::from_secs(60);

/// A machine with its program.
pub struct Seat {
    /// None once its power is off.
    pub qemu: Option<Qemu>,
    pub agent: Agent,
    /// What the program prints.
    pub output: File,
    pub lines: Lines,
    pub stage: Stage,
    pub ended: Ended,
    /// The program's name, for its lines.
    pub program: String,
    /// Whether its kernel has told that it is broken.
    pub broken: bool,
}

/// How far a node has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It has a program that was not started.
    Waiting,
    /// Its program runs.
    Running,
    /// Its program has ended, or it never had one.
    Done,
}

impl Seat {
    /// Seats a machine and plugs its card in.
    pub fn new(node: &Node, machine: Machine, ethernet: [u8; 6], cards: &mut Cards) -> Result<Self> {
        let Machine { qemu, agent, program: output, card } = machine;
        cards.plug(card, ethernet)?;
        let ran = node.command.is_some();
        let stage = if ran { Stage::Waiting } else { Stage::Done };
        let ended = Ended { name: node.name.clone(), ran, ..Ended::default() };
        let (qemu, lines, program) = (Some(qemu), Lines::default(), node.program());
        Ok(Self { qemu, agent, output, lines, stage, ended, program, broken: false })
    }

    /// Runs a shell command in the machine and gives what it prints.
    pub fn inspect(&mut self, command: &str, interrupt: &Interrupt) -> Result<Vec<String>> {
        self.agent.say(&format!("inspect {command}"))?;
        let limit = Instant::now() + INSPECTION;
        let mut output = Vec::new();
        loop {
            match self.agent.receive() {
                Some((word, line)) if word == "|" => output.push(line),
                Some((word, _)) if word == "inspected" => return Ok(output),
                Some(_) => {}
                None if self.agent.closed || Instant::now() >= limit => {
                    bail!("the {} did not answer `{command}`\n{}", self.ended.name, self.agent.console_end())
                }
                None => interrupt.wait(&[(self.agent.console.as_fd(), false)], limit)?,
            }
        }
    }
}

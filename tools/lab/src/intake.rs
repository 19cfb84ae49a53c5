//! What comes out of the machines while the programs run: packets, lines, and the agents' messages.
//!
//! It is recorded in the order of cause and effect. A log line leaves its machine before the packet that the next call
//! causes (a serial port is served at once, by the processor's own thread), so a frame is taken out of its socket first,
//! then the serial port of the same machine is emptied, and only then the frame is forwarded and recorded. What the
//! receiver prints about it can only come later.

use crate::fault::{Fault, Trap};
use crate::seat::Stage;
use crate::session::{Session, SERVER, SHELL};
use anyhow::{Error, Result};
use run::exit::Exit;
use run::file::Line;
use run::lines::clean;
use run::wire::{Carried, Scribe};
use std::io::Read;

/// How a kernel begins to tell that it is broken.
const BROKEN: [&str; 5] = ["Kernel panic", "BUG: ", "Oops: ", "general protection fault", "WARNING: CPU"];
/// What a healthy kernel may also say, if this host has no time for it.
const BUSY_HOST: &str = "soft lockup";

impl Session<'_, '_> {
    /// Takes what has come from all machines, and lets the wire carry what they send.
    pub fn take_in(&mut self) -> Result<()> {
        for node in 0..self.seats.len() {
            self.cards.read(node);
            self.read_output(node)?;
            self.carry(node)?;
            self.take_messages(node)?;
        }
        if self.dying.is_none() {
            self.wire.let_go(&mut self.cards, self.recorder)?;
            self.wire.cross(&mut self.cards, self.recorder)?;
        }
        self.cards.flush();
        Ok(())
    }

    /// Carries what a machine has sent, unless the wire stands still. What a machine without power has sent is lost.
    fn carry(&mut self, node: usize) -> Result<()> {
        while self.dying.is_none() {
            let Some(frame) = self.cards.take(node)? else { break };
            if self.seats[node].qemu.is_none() {
                continue;
            }
            let Carried { name, goes_on, .. } = self.wire.carry(node, &frame, &mut self.cards, self.recorder)?;
            self.client_spoke |= goes_on && node != SERVER && is_for_a_program(&frame);
            if let Some(name) = name {
                self.spring(&format!("{} sends {name}", self.run.nodes[node].name))?;
            }
        }
        Ok(())
    }

    fn read_output(&mut self, node: usize) -> Result<()> {
        let mut bytes = [0; 65_536];
        let seat = &mut self.seats[node];
        let mut lines = Vec::new();
        while let Ok(count @ 1..) = seat.output.read(&mut bytes) {
            lines.extend(seat.lines.push(&bytes[..count]));
            if let (SHELL, Some(terminal)) = (node, &mut self.recorder.terminal) {
                terminal.show(&bytes[..count]);
            }
        }
        // The machine ends lines on standard output, and only those, also with a carriage return (`open_ports` in init.sh).
        lines.iter().try_for_each(|line| self.print(node, &clean(line), !line.ends_with(b"\r\n")))
    }

    fn print(&mut self, node: usize, text: &str, error: bool) -> Result<()> {
        self.recorder.said(node, &self.seats[node].program, text, error)?;
        self.spring(text)
    }

    /// Sets off what waits for these words.
    fn spring(&mut self, text: &str) -> Result<()> {
        let (sprung, waiting): (Vec<_>, Vec<_>) = self.traps.iter().partition(|(_, trap)| text.contains(&trap.when));
        self.traps = waiting;
        sprung.into_iter().try_for_each(|(number, trap)| self.set_off(number, trap))
    }

    fn set_off(&mut self, number: usize, trap: &Trap) -> Result<()> {
        let Some(victim) = self.run.index(&trap.node) else { return Ok(()) };
        let seat = &mut self.seats[victim];
        let (act, text) = match &trap.fault {
            Fault::Command(command) => return self.start_also(victim, &trap.node, &format!("fault {number}"), command),
            Fault::Kill if seat.stage != Stage::Running => ("kill", "there is no program to kill"),
            Fault::Kill => {
                seat.agent.say("kill")?;
                self.dying = Some(victim);
                ("kill", "the lab kills the program")
            }
            Fault::PowerOff => {
                self.without_power(victim);
                ("power-off", "the lab cuts the power")
            }
        };
        self.recorder.act(Some(victim), act, text)
    }

    fn without_power(&mut self, node: usize) {
        self.seats[node].qemu = None;
        self.seats[node].stage = Stage::Done;
        self.dying = self.dying.filter(|dying| *dying != node);
    }

    /// What the agent has to say, and the kernel.
    fn take_messages(&mut self, node: usize) -> Result<()> {
        while let Some((word, rest)) = self.seats[node].agent.receive() {
            match word.as_str() {
                "listening" => self.start_clients()?,
                "silent" => {
                    if self.seats[SERVER + 1..].iter().any(|seat| seat.stage == Stage::Waiting) {
                        let text = "nothing listens on RDMA or TCP after ten seconds: the clients start all the same \
                                    (--ready COMMAND)";
                        self.recorder.act(Some(SERVER), "silent", text)?;
                    }
                    self.start_clients()?;
                }
                "exit" => rest.parse().map_or(Ok(()), |status| self.ended(node, Exit::of_shell(status)))?,
                "on" => {
                    let (target, command) = rest.split_once(' ').unwrap_or((&rest, ""));
                    self.start_also(node, target, &format!("also {command}"), command)?;
                }
                "also" => self.recorder.act(Some(node), Line::EXIT, &also(&rest))?,
                _ => {}
            }
        }
        for line in std::mem::take(&mut self.seats[node].agent.fresh) {
            self.kernel_says(node, &line)?;
        }
        let seat = &mut self.seats[node];
        let Some(qemu) = seat.qemu.as_mut().filter(|_| seat.agent.closed) else { return Ok(()) };
        if seat.broken {
            self.without_power(node);
            return self.recorder.act(Some(node), "panic", "the machine is gone");
        }
        let end = format!("the {}'s machine ended by itself\n{}", seat.ended.name, seat.agent.console_end());
        Err(qemu.explain(Error::msg(end), true))
    }

    /// Starts a command on another node, beside what runs there; `told` is how its agent is told.
    fn start_also(&mut self, asked_by: usize, target: &str, told: &str, command: &str) -> Result<()> {
        let Some(node) = self.run.index(target).filter(|node| self.seats[*node].qemu.is_some()) else {
            let text = format!("there is no node `{target}`. This run has: {}", self.run.names().join(", "));
            return self.recorder.act(Some(asked_by), Line::TROUBLE, &text);
        };
        self.seats[node].agent.say(told)?;
        self.recorder.act(Some(node), "start", command)
    }

    /// Records a kernel's line. The first one that tells that the kernel is broken makes the run no good.
    fn kernel_says(&mut self, node: usize, line: &str) -> Result<()> {
        self.recorder.said(node, Line::KERNEL, line, false)?;
        let seat = &mut self.seats[node];
        if !seat.broken && BROKEN.iter().any(|words| line.contains(words)) && !line.contains(BUSY_HOST) {
            let trouble = format!("the kernel of the {} is broken: {line}", seat.ended.name);
            seat.broken = true;
            self.recorder.trouble(None, &trouble)?;
        }
        Ok(())
    }

    fn ended(&mut self, node: usize, exit: Exit) -> Result<()> {
        // The program's last words left the machine before the agent told of its end.
        self.read_output(node)?;
        if let Some(rest) = self.seats[node].lines.take_rest() {
            self.print(node, &rest, false)?;
        }
        let seat = &mut self.seats[node];
        seat.ended.exit = Some(exit);
        seat.stage = Stage::Done;
        self.recorder.exit(node, exit)?;
        if self.dying == Some(node) {
            self.dying = None;
            (0..self.seats.len()).try_for_each(|node| self.carry(node))?;
        }
        Ok(())
    }
}

/// How a command ended that ran beside a node's program: `0: ip link show`.
fn also(rest: &str) -> String {
    let (status, command) = rest.split_once(": ").unwrap_or((rest, ""));
    let exit = status.parse().map_or_else(|_| status.to_owned(), |status| Exit::of_shell(status).to_string());
    format!("{exit}: {command}")
}

/// Whether an Ethernet frame is for more than the kernel: not ARP, nor ICMPv6, by which neighbors are found.
fn is_for_a_program(frame: &[u8]) -> bool {
    match frame.get(12..14) {
        Some([0x08, 0x00]) => true,
        Some([0x86, 0xdd]) => frame.get(20) != Some(&58),
        _ => false,
    }
}

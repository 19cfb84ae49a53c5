//! The host's end of the conversation with a machine's first process. `guest/init.sh` lists what each says.

use crate::interrupt::Interrupt;
use anyhow::{bail, ensure, Context, Result};
use run::lines::{clean, Lines};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

/// How many lines of the kernel's console are kept for an error message.
const KEPT: usize = 15;

/// What the agent says: a word, and what follows it.
pub type AgentSays = (String, String);

/// The message in a line of the console, behind what the kernel puts in front of each: its time, and with some kernels the
/// caller, in brackets.
fn message(line: &str) -> Option<AgentSays> {
    let mut text = line;
    while let Some((_, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        text = rest;
    }
    let text = text.trim_start().strip_prefix('@')?;
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    Some((word.to_owned(), rest.to_owned()))
}

/// The console of a machine: the agent's lines, and the kernel's between them.
pub struct Agent {
    /// Name of the machine, for messages.
    name: String,
    pub console: UnixStream,
    /// Whether the machine is gone.
    pub closed: bool,
    lines: Lines,
    messages: VecDeque<AgentSays>,
    /// The kernel's last lines.
    kernel: VecDeque<String>,
    /// Lines of the kernel that nobody has taken yet.
    pub fresh: Vec<String>,
}

impl Agent {
    pub fn new(name: &str, console: UnixStream) -> Result<Self> {
        console.set_nonblocking(true).context("cannot prepare the console")?;
        let (lines, messages, kernel, fresh) = Default::default();
        Ok(Self { name: name.to_owned(), console, closed: false, lines, messages, kernel, fresh })
    }

    /// Says one line to the agent. A machine that is gone hears nothing; that shows when it is read.
    pub fn say(&mut self, line: &str) -> Result<()> {
        let said = self.console.write_all(format!("{line}\n").as_bytes());
        let is_full = said.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        ensure!(!is_full, "the {} does not read its console\n{}", self.name, self.console_end());
        Ok(())
    }

    /// Reads what has come and gives the next message, without waiting.
    pub fn receive(&mut self) -> Option<AgentSays> {
        let mut bytes = [0; 4096];
        loop {
            match self.console.read(&mut bytes) {
                Ok(0) => self.closed = true,
                Ok(count) => {
                    for line in self.lines.push(&bytes[..count]) {
                        self.sort(clean(&line));
                    }
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => self.closed = true,
            }
            return self.messages.pop_front();
        }
    }

    /// Whether it has said a certain word; other messages are dropped.
    fn has_said(&mut self, wanted: &str) -> Result<bool> {
        while let Some((word, rest)) = self.receive() {
            if word == "failed" {
                bail!("the {} could not be set up: {rest}\n{}", self.name, self.console_end());
            }
            if word == wanted {
                return Ok(true);
            }
        }
        ensure!(!self.closed, "the {} ended before it was {wanted}\n{}", self.name, self.console_end());
        Ok(false)
    }

    /// The last lines of the kernel's console.
    pub fn console_end(&self) -> String {
        if self.kernel.is_empty() {
            return "Its console is empty.".to_owned();
        }
        let lines = self.kernel.iter().map(|line| format!("\n  {line}"));
        format!("The end of its console:{}", lines.collect::<String>())
    }

    fn sort(&mut self, line: String) {
        match message(&line) {
            Some(message) => self.messages.push_back(message),
            None if line.is_empty() => {}
            None => {
                self.fresh.push(line.clone());
                self.kernel.push_back(line);
                if self.kernel.len() > KEPT {
                    self.kernel.pop_front();
                }
            }
        }
    }
}

/// Waits until all agents have said a certain word. All consoles are read meanwhile: a socket is full after a few hundred bytes,
/// and what a kernel says to a port that takes nothing is lost.
pub fn await_all(mut agents: Vec<&mut Agent>, wanted: &str, interrupt: &Interrupt, deadline: Instant) -> Result<()> {
    loop {
        let mut silent = Vec::new();
        for agent in agents {
            if !agent.has_said(wanted)? {
                silent.push(agent);
            }
        }
        agents = silent;
        let Some(first) = agents.first() else { return Ok(()) };
        ensure!(Instant::now() < deadline, "the {} was not {wanted} in time\n{}", first.name, first.console_end());
        let streams: Vec<_> = agents.iter().map(|agent| (agent.console.as_fd(), false)).collect();
        interrupt.wait(&streams, deadline)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// How a wait for a machine ends that says this, and then goes or stays.
    fn awaited(says: &str, stays: bool) -> String {
        let (ours, mut guests) = UnixStream::pair().unwrap();
        guests.write_all(says.as_bytes()).unwrap();
        let _guests = stays.then_some(guests);
        let deadline = Instant::now() + Duration::from_millis(if stays { 20 } else { 5000 });
        let mut agent = Agent::new("server", ours).unwrap();
        await_all(vec![&mut agent], "ready", &Interrupt::default(), deadline).unwrap_err().to_string()
    }

    #[test]
    fn a_machine_that_gives_up_dies_or_is_silent_ends_the_wait() {
        let error = awaited("modprobe: no rxe\n[1.2][T1] @failed no RDMA device\n", true);
        assert!(error.contains("no RDMA device\nThe end of its console:\n  modprobe: no rxe"), "{error}");
        assert!(awaited("", false).starts_with("the server ended before it was ready"));
        assert!(awaited("@loaded\n", true).starts_with("the server was not ready in time"));
    }
}

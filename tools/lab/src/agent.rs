//! The host's end of the conversation with a machine's first process (`guest/init.sh`).

use crate::interrupt::Interrupt;
use anyhow::{bail, ensure, Context, Result};
use run::lines::{clean, Lines};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

/// The longest line that an agent takes, in bytes: its terminal cuts what is longer, up to 4,095 (termios(3), canonical mode).
const LONGEST: usize = 4000;
/// How many lines of the kernel's console are kept for an error message.
const KEPT: usize = 15;

/// What the agent says: see `guest/init.sh`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    Ready,
    Loaded,
    Listening,
    Silent,
    Output(String),
    Inspected,
    Exit(i32),
    /// A program in the machine wants a command to be started on a node: `on NODE COMMAND`.
    On(String, String),
    /// A command that was started for another node has ended, with its status and the command.
    Also(String),
    Failed(String),
}

impl Message {
    /// Behind what the kernel puts in front of each line: its time, and with some kernels the caller, in brackets.
    fn parse(line: &str) -> Option<Self> {
        let mut text = line;
        while let Some((_, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
            text = rest;
        }
        let text = text.trim_start().strip_prefix('@')?;
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        Some(match word {
            "ready" => Self::Ready,
            "loaded" => Self::Loaded,
            "listening" => Self::Listening,
            "silent" => Self::Silent,
            "|" => Self::Output(rest.to_owned()),
            "inspected" => Self::Inspected,
            "exit" => Self::Exit(rest.parse().ok()?),
            "on" => {
                let (node, command) = rest.split_once(' ')?;
                Self::On(node.to_owned(), command.to_owned())
            }
            "also" => Self::Also(rest.to_owned()),
            "failed" => Self::Failed(rest.to_owned()),
            _ => return None,
        })
    }
}

/// The console of a machine: the agent's lines, and the kernel's between them.
pub struct Agent {
    /// Name of the machine, for messages.
    name: String,
    pub console: UnixStream,
    /// Whether the machine is gone.
    pub closed: bool,
    lines: Lines,
    messages: VecDeque<Message>,
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
    ///
    /// # Errors
    /// The line would not arrive as it is, or its machine takes nothing any more.
    pub fn say(&mut self, line: &str) -> Result<()> {
        check_line(line)?;
        match self.console.write_all(format!("{line}\n").as_bytes()) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                bail!("the {} takes no more commands: it does not read its console\n{}", self.name, self.console_end())
            }
            _ => Ok(()),
        }
    }

    /// Reads what has come and gives the next message, without waiting.
    pub fn receive(&mut self) -> Option<Message> {
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

    /// Whether a certain message has come; others are dropped.
    fn has_said(&mut self, wanted: &Message) -> Result<bool> {
        while let Some(message) = self.receive() {
            if let Message::Failed(reason) = &message {
                bail!("the {} could not be set up: {reason}\n{}", self.name, self.console_end());
            }
            if message == *wanted {
                return Ok(true);
            }
        }
        ensure!(!self.closed, "the {} ended before it was {wanted:?}\n{}", self.name, self.console_end());
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
        match Message::parse(&line) {
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

/// Whether a command arrives as it is: on the terminal that brings it, characters such as Ctrl-U and the newline act.
pub fn check_line(command: &str) -> Result<()> {
    ensure!(
        command.len() <= LONGEST,
        "a command of more than {LONGEST} bytes is too long for a machine that runs: put it into a script, and bring that along \
         (--bring PATH). It begins with {:.60}",
        command
    );
    let acts = |c: &char| c.is_ascii_control() && *c != '\t';
    if let Some(character) = command.chars().find(acts) {
        bail!("a machine that runs takes a command of one line, and this one holds {character:?}: {command:?}");
    }
    Ok(())
}

/// Waits for a certain message of all agents. All consoles are read meanwhile: a socket is full after a few hundred bytes, and
/// what a kernel says to a port that takes nothing is lost.
pub fn await_all(
    mut agents: Vec<&mut Agent>,
    wanted: &Message,
    interrupt: &Interrupt,
    deadline: Instant,
) -> Result<()> {
    loop {
        let mut silent = Vec::new();
        for agent in agents {
            if !agent.has_said(wanted)? {
                silent.push(agent);
            }
        }
        agents = silent;
        let Some(first) = agents.first() else { return Ok(()) };
        ensure!(Instant::now() < deadline, "the {} was not {wanted:?} in time\n{}", first.name, first.console_end());
        let streams: Vec<_> = agents.iter().map(|agent| (agent.console.as_fd(), false)).collect();
        interrupt.wait(&streams, deadline)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn agent() -> (Agent, UnixStream) {
        let (ours, guests) = UnixStream::pair().unwrap();
        (Agent::new("server", ours).unwrap(), guests)
    }

    fn awaited(mut agent: Agent, wanted: Message, deadline: Instant) -> anyhow::Error {
        await_all(vec![&mut agent], &wanted, &Interrupt::default(), deadline).unwrap_err()
    }

    #[test]
    fn a_machine_that_dies_or_gives_up_ends_the_wait() {
        let soon = Instant::now() + Duration::from_secs(5);
        let (first, mut guest) = agent();
        guest.write_all(b"modprobe: no rxe\n@failed no RDMA device\n").unwrap();
        let error = awaited(first, Message::Ready, soon);
        assert!(error.to_string().contains("no RDMA device\nThe end of its console:\n  modprobe: no rxe"), "{error}");

        let (second, guest) = agent();
        drop(guest);
        let error = awaited(second, Message::Ready, soon);
        assert!(error.to_string().starts_with("the server ended before it was Ready"), "{error}");
    }

    #[test]
    fn silence_ends_at_the_deadline() {
        let (agent, _guest) = agent();
        let soon = Instant::now() + Duration::from_millis(20);
        let error = awaited(agent, Message::Loaded, soon);
        assert!(error.to_string().starts_with("the server was not Loaded in time"), "{error}");
    }
}

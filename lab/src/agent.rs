//! The host's end of the conversation with a machine's first process (`guest/init.sh`).

use crate::interrupt::Interrupt;
use crate::lines::{clean, Lines};
use anyhow::{bail, Context, Result};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

/// How many lines of the kernel's console are kept for an error message.
const KEPT: usize = 15;

/// What the agent says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// The machine is set up.
    Ready,
    /// The program is unpacked.
    Loaded,
    /// Something listens in the machine, or has not for a long time.
    Listening,
    /// One line of an inspected command's output.
    Output(String),
    /// The inspected command has ended.
    Inspected,
    /// The program has ended with this status; 128 and more for a signal.
    Exit(i32),
    /// A program in the machine wants a command to be started on a node: `on NODE COMMAND`.
    On(String, String),
    /// A command that was started for another node has ended, with its status and the command.
    Also(String),
    /// The machine could not be set up.
    Failed(String),
}

impl Message {
    fn parse(line: &str) -> Option<Self> {
        let text = line.strip_prefix('@')?;
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        Some(match word {
            "ready" => Self::Ready,
            "loaded" => Self::Loaded,
            "listening" => Self::Listening,
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
#[derive(Debug)]
pub struct Agent {
    /// Name of the machine, for messages.
    name: String,
    console: UnixStream,
    lines: Lines,
    messages: VecDeque<Message>,
    kernel: VecDeque<String>,
    /// Lines of the kernel that nobody has taken yet.
    fresh: Vec<String>,
    /// The beginning of an agent's line into which the kernel has spoken.
    torn: Option<String>,
    closed: bool,
}

impl Agent {
    /// Takes a machine's console.
    ///
    /// # Errors
    /// The socket cannot be made non-blocking.
    pub fn new(name: &str, console: UnixStream) -> Result<Self> {
        console.set_nonblocking(true).context("cannot prepare the console")?;
        Ok(Self {
            name: name.to_owned(),
            console,
            lines: Lines::default(),
            messages: VecDeque::new(),
            kernel: VecDeque::new(),
            fresh: Vec::new(),
            torn: None,
            closed: false,
        })
    }

    /// The socket, to wait for.
    #[must_use]
    pub fn stream(&self) -> &UnixStream {
        &self.console
    }

    /// Whether the machine is gone.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Says one line to the agent. A machine that is gone hears nothing; that shows when it is read.
    pub fn say(&mut self, line: &str) {
        let _ = self.console.write_all(format!("{line}\n").as_bytes());
    }

    /// Reads what has come and gives the next message, without waiting.
    pub fn receive(&mut self) -> Option<Message> {
        let mut bytes = [0; 4096];
        loop {
            match self.console.read(&mut bytes) {
                Ok(0) => self.closed = true,
                Ok(count) => {
                    for line in self.lines.push_raw(&bytes[..count]) {
                        self.sort(&line);
                    }
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => self.closed = true,
            }
            return self.messages.pop_front();
        }
    }

    /// Waits for a certain message.
    ///
    /// # Errors
    /// The machine ended or gave up, the deadline passed (the message shows the console's last lines), or
    /// the lab was interrupted.
    pub fn await_message(&mut self, wanted: &Message, interrupt: &Interrupt, deadline: Instant) -> Result<()> {
        loop {
            match self.receive() {
                Some(message) if message == *wanted => return Ok(()),
                Some(Message::Failed(reason)) => {
                    bail!("the {} could not be set up: {reason}\n{}", self.name, self.console_end())
                }
                Some(_) => continue,
                None => {}
            }
            if self.closed {
                bail!("the {} ended before it was {wanted:?}\n{}", self.name, self.console_end());
            }
            if Instant::now() >= deadline {
                bail!("the {} was not {wanted:?} in time\n{}", self.name, self.console_end());
            }
            interrupt.wait(&[(self.console.as_fd(), false)], deadline)?;
        }
    }

    /// The last lines of the kernel's console.
    #[must_use]
    pub fn console_end(&self) -> String {
        if self.kernel.is_empty() {
            return "Its console is empty.".to_owned();
        }
        let lines: Vec<&str> = self.kernel.iter().map(String::as_str).collect();
        format!("The end of its console:\n  {}", lines.join("\n  "))
    }

    /// What the kernel has said since the last call.
    pub fn take_kernel(&mut self) -> Vec<String> {
        std::mem::take(&mut self.fresh)
    }

    /// The kernel ends its lines with a carriage return, too, and begins them with a time stamp, perhaps in the middle of a line
    /// of the agent: the rest of that comes after it.
    fn sort(&mut self, line: &[u8]) {
        let text = clean(line);
        let stamp = time_stamp(&text).filter(|_| line.ends_with(b"\r\n"));
        match stamp {
            Some(at) if self.torn.is_some() || text.starts_with('@') => {
                let (head, kernels) = text.split_at(at);
                self.torn.get_or_insert_with(String::new).push_str(head);
                self.kernel_says(kernels.to_owned());
            }
            Some(_) => self.kernel_says(text),
            None => {
                let whole = self.torn.take().unwrap_or_default() + &text;
                match Message::parse(&whole) {
                    Some(message) => self.messages.push_back(message),
                    None => self.kernel_says(whole),
                }
            }
        }
    }

    fn kernel_says(&mut self, line: String) {
        if line.is_empty() {
            return;
        }
        self.fresh.push(line.clone());
        self.kernel.push_back(line);
        if self.kernel.len() > KEPT {
            self.kernel.pop_front();
        }
    }
}

/// Where the time stamp of a kernel's message begins: `[   12.345678] `.
fn time_stamp(text: &str) -> Option<usize> {
    let is_stamp = |at: &usize| {
        let Some((stamp, _)) = text[at + 1..].split_once("] ") else { return false };
        let Some((seconds, micros)) = stamp.trim_start().split_once('.') else { return false };
        micros.len() == 6 && [seconds, micros].iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    text.match_indices('[').map(|(at, _)| at).find(is_stamp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn agent() -> (Agent, UnixStream) {
        let (ours, guests) = UnixStream::pair().unwrap();
        (Agent::new("server", ours).unwrap(), guests)
    }

    #[test]
    fn kernel_lines_and_agent_lines_are_told_apart() {
        let (mut agent, mut guest) = agent();
        guest.write_all(b"[ 1.0] some driver\n@| a b  c\n@exit 137\n@nonsense\n").unwrap();
        assert_eq!(agent.receive(), Some(Message::Output("a b  c".to_owned())));
        assert_eq!(agent.receive(), Some(Message::Exit(137)));
        assert_eq!(agent.receive(), None);
        assert!(agent.console_end().contains("some driver"));
    }

    #[test]
    fn a_line_that_the_kernel_has_torn_is_whole_again() {
        let (mut agent, mut guest) = agent();
        guest
            .write_all(b"@ex[    7.000001] rxe0: one\r\n[    7.000002] rxe0: two\r\nit[   17.000003] three\r\n 0\n")
            .unwrap();
        assert_eq!(agent.receive(), Some(Message::Exit(0)));
        assert_eq!(
            agent.take_kernel(),
            ["[    7.000001] rxe0: one", "[    7.000002] rxe0: two", "[   17.000003] three"]
        );
        guest.write_all(b"@| [    8.000001] what dmesg says\n[    9.000001] alone\r\n@exit 1\n").unwrap();
        assert_eq!(agent.receive(), Some(Message::Output("[    8.000001] what dmesg says".to_owned())));
        assert_eq!(agent.receive(), Some(Message::Exit(1)));
        assert_eq!(agent.take_kernel(), ["[    9.000001] alone"]);
    }

    #[test]
    fn a_machine_that_dies_or_gives_up_ends_the_wait() {
        let soon = Instant::now() + Duration::from_secs(5);
        let (mut first, mut guest) = agent();
        guest.write_all(b"modprobe: no rxe\n@failed no RDMA device\n").unwrap();
        let error = first.await_message(&Message::Ready, &Interrupt::default(), soon).unwrap_err();
        assert!(error.to_string().contains("no RDMA device\nThe end of its console:\n  modprobe: no rxe"), "{error}");

        let (mut second, guest) = agent();
        drop(guest);
        let error = second.await_message(&Message::Ready, &Interrupt::default(), soon).unwrap_err();
        assert!(error.to_string().starts_with("the server ended before it was Ready"), "{error}");
    }

    #[test]
    fn silence_ends_at_the_deadline() {
        let (mut agent, _guest) = agent();
        let soon = Instant::now() + Duration::from_millis(20);
        let error = agent.await_message(&Message::Loaded, &Interrupt::default(), soon).unwrap_err();
        assert!(error.to_string().starts_with("the server was not Loaded in time"), "{error}");
    }
}

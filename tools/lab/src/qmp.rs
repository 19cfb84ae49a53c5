//! Talking to QEMU: its machine protocol, one JSON object per line, over a socket pair.

use crate::interrupt::Interrupt;
use anyhow::{bail, ensure, Context, Result};
use serde_json::{json, Value};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How often a wait looks whether the lab was told to stop.
const MOMENT: Duration = Duration::from_millis(50);

/// A conversation with one QEMU.
#[derive(Debug)]
pub struct Qmp<'a> {
    stream: BufReader<&'a UnixStream>,
    interrupt: &'a Interrupt,
    deadline: Instant,
    resumed: bool,
}

impl<'a> Qmp<'a> {
    /// Starts the conversation: QEMU greets, and wants to be told that the greeting was understood.
    pub fn greet(stream: &'a UnixStream, interrupt: &'a Interrupt, deadline: Instant) -> Result<Self> {
        stream.set_read_timeout(Some(MOMENT)).context("cannot set a deadline for QEMU")?;
        let mut qmp = Self { stream: BufReader::new(stream), interrupt, deadline, resumed: false };
        qmp.message()?;
        qmp.execute("qmp_capabilities", json!({}))?;
        // Memory that is a file of its own need not be copied.
        let capability = json!({ "capability": "x-ignore-shared", "state": true });
        qmp.execute("migrate-set-capabilities", json!({ "capabilities": [capability] }))?;
        Ok(qmp)
    }

    /// Runs one command and gives what it returns.
    pub fn execute(&mut self, command: &str, arguments: Value) -> Result<Value> {
        let line = json!({ "execute": command, "arguments": arguments }).to_string();
        self.stream.get_mut().write_all(format!("{line}\n").as_bytes()).context("QEMU closed its control socket")?;
        loop {
            let mut message = self.message()?;
            if let Some(error) = message.get("error") {
                bail!("QEMU refuses `{command}`: {}", error["desc"].as_str().unwrap_or("no reason given"));
            }
            if let Some(value) = message.get_mut("return") {
                return Ok(value.take());
            }
        }
    }

    /// Writes the state of the machine but for its memory into a shell command (`cat >FILE`).
    pub fn save(&mut self, shell_command: &str) -> Result<()> {
        self.execute("migrate", json!({ "uri": format!("exec:{shell_command}") }))?;
        loop {
            let state = self.execute("query-migrate", json!({}))?;
            match state["status"].as_str().unwrap_or_default() {
                "completed" => return Ok(()),
                "failed" | "cancelled" => bail!("QEMU could not write the machine's state. Is the disk full?"),
                _ if Instant::now() >= self.deadline => bail!("QEMU did not finish writing the machine's state"),
                _ => self.interrupt.pause(Duration::from_millis(10))?,
            }
        }
    }

    /// Begins to load what [`Qmp::save`] wrote, from a shell command (`cat FILE`).
    pub fn restore(&mut self, shell_command: &str) -> Result<()> {
        self.execute("migrate-incoming", json!({ "uri": format!("exec:{shell_command}") })).map(drop)
    }

    /// Waits until a restored machine runs.
    pub fn await_running(&mut self) -> Result<()> {
        let status = self.execute("query-status", json!({}))?;
        while status["status"] != "running" && !self.resumed {
            self.message()?;
        }
        Ok(())
    }

    /// The next message. An event that the lab waits for is remembered.
    fn message(&mut self) -> Result<Value> {
        let mut line = String::new();
        // What has come of a line stays in it when the time is over.
        while !line.ends_with('\n') {
            match self.stream.read_line(&mut line) {
                Ok(0) => bail!("QEMU ended"),
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    self.interrupt.check()?;
                    ensure!(Instant::now() < self.deadline, "QEMU did not answer in time");
                }
                Err(error) => return Err(error).context("cannot read QEMU's answer"),
            }
        }
        let message: Value = serde_json::from_str(&line).context("QEMU's answer is not JSON")?;
        self.resumed |= message["event"] == "RESUME";
        Ok(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How a conversation ends with a QEMU that answers this, and then goes or stays.
    fn error(answers: &str, stays: bool) -> String {
        let (ours, mut qemu) = UnixStream::pair().unwrap();
        qemu.write_all(answers.as_bytes()).unwrap();
        let _qemu = stays.then_some(qemu);
        let (interrupt, deadline) = (Interrupt::default(), Instant::now() + Duration::from_millis(200));
        let done = Qmp::greet(&ours, &interrupt, deadline);
        done.and_then(|mut qmp| qmp.execute("stop", json!({}))).unwrap_err().to_string()
    }

    #[test]
    fn refusals_carry_qemus_words_and_silence_is_not_the_end() {
        let greeting = "{\"QMP\":{}}\n{\"return\":{}}\n{\"return\":{}}\n";
        let refusal = greeting.to_owned() + "{\"error\":{\"desc\":\"no such thing\"}}\n";
        assert_eq!(error(&refusal, true), "QEMU refuses `stop`: no such thing");
        assert_eq!(error(greeting, true), "QEMU did not answer in time");
        assert_eq!(error("", false), "QEMU ended");
    }
}

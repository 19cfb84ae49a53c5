//! Starting programs, and ending them.

use super::inbox::Inbox;
use anyhow::{Context, Result};
use device::rim::port;
use device::rim::tap::{self, Tap};
use rustix::process::{kill_process, Pid, Signal};
use std::env;
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

/// The variable with the device's name, see `verbs/context.rs`.
const DEVICE_NAME: &str = "NIC_NAME";

/// A line for the shell; its device gets a socket, if we are the wire.
pub fn command(line: &str, socket: Option<UdpSocket>) -> Command {
    let mut sh = Command::new("sh");
    // `exec`: the program itself is what is waited for, and killed.
    sh.args(["-c", &format!("exec {line}")]);
    sh.env(port::WIRE, if socket.is_some() { "1" } else { "" });
    sh.stdin(socket.map_or_else(Stdio::null, |socket| OwnedFd::from(socket).into()));
    sh
}

/// A shell with this terminal.
pub fn shell() -> Command {
    Command::new(env::var_os("SHELL").unwrap_or_else(|| "sh".into()))
}

pub struct Program {
    pid: Option<Pid>,
    was_asked: bool,
    /// How it ended: its status, or 128 and the signal.
    pub exit: Option<i32>,
}

impl Program {
    /// Starts a node's program with our libraries in front of the system's, and its device's tap. Its end will be told, too.
    pub fn start(mut command: Command, node: usize, library: &Path, inbox: &Inbox) -> Result<Program> {
        let in_front = |own: &Path, variable: &str| {
            let others = env::var(variable).unwrap_or_default();
            format!("{}:{others}", own.display()).trim_end_matches(':').to_owned()
        };
        command
            .env("LD_LIBRARY_PATH", in_front(library, "LD_LIBRARY_PATH"))
            .env("PATH", in_front(library.parent().unwrap_or(library), "PATH"))
            // The name of the lab's device: lessons open it, unless they are told another one.
            .env(DEVICE_NAME, env::var(DEVICE_NAME).unwrap_or_else(|_| "rxe0".into()))
            .env(tap::TAP, &inbox.name)
            .env(tap::NODE, node.to_string());
        let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let pid = Pid::from_raw(child.id() as i32);
        let tap = Tap::to(&inbox.name, node as u8);
        thread::spawn(move || tap.exits(child.wait().map_or(-1, number)));
        Ok(Program { pid, was_asked: false, exit: None })
    }

    /// Asks it to end, and ends it by force if it is asked again; whether this was the first time.
    pub fn end(&mut self) -> bool {
        let was_asked = std::mem::replace(&mut self.was_asked, true);
        if let Some(pid) = self.pid {
            let _ = kill_process(pid, if was_asked { Signal::KILL } else { Signal::TERM });
        }
        !was_asked
    }
}

fn number(status: ExitStatus) -> i32 {
    status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

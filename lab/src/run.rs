//! What to run: the two commands, and what to do to them while they run.

use anyhow::{bail, Result};
use std::path::PathBuf;
use std::time::Duration;

/// One of the two machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The machine that listens: 10.47.91.1, fd47:91::1.
    Server,
    /// The machine that connects: 10.47.91.2, fd47:91::2.
    Client,
}

impl Side {
    /// Both, in the order of their numbers.
    pub const BOTH: [Self; 2] = [Self::Server, Self::Client];

    /// `server` or `client`: the machine's host name, too.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }

    /// Its IPv4 address.
    #[must_use]
    pub fn address(self) -> &'static str {
        match self {
            Self::Server => "10.47.91.1",
            Self::Client => "10.47.91.2",
        }
    }

    /// Its place in arrays, and its port on the switch.
    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

/// Something done on purpose while the programs run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The program gets SIGKILL.
    Kill,
    /// The machine loses its power.
    PowerOff,
}

/// A fault, and the log line of either side that sets it off.
#[derive(Debug, Clone)]
pub(crate) struct Trap {
    pub fault: Fault,
    pub victim: Side,
    pub text: String,
}

/// A run of one or two programs. Built with [`Run::lesson`] or [`Run::programs`].
#[derive(Debug, Clone)]
pub struct Run {
    pub(crate) name: String,
    pub(crate) commands: [Option<String>; 2],
    pub(crate) traps: Vec<Trap>,
    pub(crate) inspect: Option<String>,
    pub(crate) deadline: Duration,
    pub(crate) pcap: Option<PathBuf>,
}

/// How long a run may take unless it says otherwise.
const DEADLINE: Duration = Duration::from_secs(120);
/// How long a shell may run: a person may leave it open overnight, but not for ever.
const SHELL_DEADLINE: Duration = Duration::from_secs(24 * 3600);
/// The client's command of a shell's run.
const SHELL: &str = include_str!("../guest/shell.sh");

impl Run {
    /// Both sides of a lesson: `"04"` runs `lesson-04 server` and `lesson-04 client -a 10.47.91.1`.
    ///
    /// # Errors
    /// The number has not two digits.
    pub fn lesson(number: &str) -> Result<Self> {
        if number.len() != 2 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            bail!("`{number}` is not the number of a lesson; an example is 04");
        }
        let server = format!("lesson-{number} server");
        let client = format!("lesson-{number} client");
        Ok(Self::new(number, [Some(server), Some(client)]).client_args(""))
    }

    /// Any programs; say which with [`Run::server`] and [`Run::client`].
    #[must_use]
    pub fn programs() -> Self {
        Self::new("exec", [None, None])
    }

    /// An interactive shell on the client, beside `server`, a line for the server's shell. `size` is the terminal's, in
    /// rows and columns. For [`Lab::shell`](crate::Lab::shell).
    ///
    /// # Errors
    /// The line holds a NUL.
    pub fn shell(server: &str, size: Option<(u16, u16)>) -> Result<Self> {
        let size = size.map(|(rows, columns)| format!("rows {rows} cols {columns}")).unwrap_or_default();
        let client = format!("size='{size}' server_command={}\n{SHELL}", shlex::try_quote(server)?);
        let run = Self::new("shell", [Some(server.to_owned()), Some(client)]);
        Ok(run.deadline(SHELL_DEADLINE))
    }

    fn new(name: &str, commands: [Option<String>; 2]) -> Self {
        let name = name.to_owned();
        Self { name, commands, traps: Vec::new(), inspect: None, deadline: DEADLINE, pcap: None }
    }

    /// The server's command, a line for the shell.
    #[must_use]
    pub fn server(mut self, command: &str) -> Self {
        self.commands[0] = Some(command.to_owned());
        self
    }

    /// The client's command, a line for the shell.
    #[must_use]
    pub fn client(mut self, command: &str) -> Self {
        self.commands[1] = Some(command.to_owned());
        self
    }

    /// More arguments for a lesson's server.
    #[must_use]
    pub fn server_args(mut self, arguments: &str) -> Self {
        self.commands[0] = Some(join(&format!("lesson-{} server", self.name), arguments));
        self
    }

    /// More arguments for a lesson's client. It connects to the lab's server unless they say where to.
    #[must_use]
    pub fn client_args(mut self, arguments: &str) -> Self {
        let mut command = format!("lesson-{} client", self.name);
        if !names_address(arguments) {
            command = join(&command, &format!("-a {}", Side::Server.address()));
        }
        self.commands[1] = Some(join(&command, arguments));
        self
    }

    /// Kills a side's program as soon as a log line of either side contains `text`.
    #[must_use]
    pub fn kill_when(self, victim: Side, text: &str) -> Self {
        self.trap(Fault::Kill, victim, text)
    }

    /// Cuts a machine's power as soon as a log line of either side contains `text`.
    #[must_use]
    pub fn power_off_when(self, victim: Side, text: &str) -> Self {
        self.trap(Fault::PowerOff, victim, text)
    }

    fn trap(mut self, fault: Fault, victim: Side, text: &str) -> Self {
        self.traps.push(Trap { fault, victim, text: text.to_owned() });
        self
    }

    /// Runs a shell command in both machines before the programs start and again after they have ended. What it
    /// prints is in [`crate::Ended::before`] and [`crate::Ended::after`].
    #[must_use]
    pub fn inspect(mut self, command: &str) -> Self {
        self.inspect = Some(command.to_owned());
        self
    }

    /// How long the programs may run; 120 s unless this says otherwise.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Another place for a copy of the capture.
    #[must_use]
    pub fn pcap(mut self, file: PathBuf) -> Self {
        self.pcap = Some(file);
        self
    }
}

fn join(command: &str, arguments: &str) -> String {
    format!("{command} {arguments}").trim_end().to_owned()
}

/// Whether a client's arguments hold `-a ADDR`, `-aADDR`, `--addr…`.
fn names_address(arguments: &str) -> bool {
    let words = shlex::split(arguments).unwrap_or_default();
    words.iter().any(|word| word.starts_with("--addr") || (word.starts_with("-a") && !word.starts_with("--")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(arguments: &str) -> String {
        Run::lesson("04").unwrap().client_args(arguments).commands[1].clone().unwrap()
    }

    #[test]
    fn the_client_goes_to_the_server_unless_told_otherwise() {
        assert_eq!(client(""), "lesson-04 client -a 10.47.91.1");
        assert_eq!(client("--len 2500"), "lesson-04 client -a 10.47.91.1 --len 2500");
        assert_eq!(client("-a server -p 9"), "lesson-04 client -a server -p 9");
        assert_eq!(client("-afd47:91::1"), "lesson-04 client -afd47:91::1");
        assert_eq!(client("--address=x"), "lesson-04 client --address=x");
        assert_eq!(client("-s 'hi -a'"), "lesson-04 client -a 10.47.91.1 -s 'hi -a'");
    }

    #[test]
    fn a_lesson_has_two_digits() {
        for wrong in ["4", "004", "x4", ""] {
            assert!(Run::lesson(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Run::lesson("01").unwrap().commands[0].as_deref(), Some("lesson-01 server"));
    }
}

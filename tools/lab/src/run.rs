//! What to run: the command of each node, and what to do to them while they run.

use crate::agent::check_line;
use crate::fault::{Fault, Trap};
use crate::fetch;
use crate::interrupt::Stopped;
use crate::options::Options;
use anyhow::{Context, Result};
use run::programs::{self, Node, CLIENT, SERVER};
use run::rules::Rules;
use std::time::Duration;

/// One server and eight others.
const MOST: usize = 9;
/// How long a shell may run: a person may leave it open overnight, but not for ever.
const SHELL_DEADLINE: Duration = Duration::from_secs(24 * 3600);
/// Names that mean something else in a run file, or in every machine.
const RESERVED: [&str; 2] = ["lab", "localhost"];
/// The name of a shell's run.
const SHELL_NAME: &str = "shell";
/// The client's command of a shell's run.
const SHELL: &str = include_str!("../guest/shell.sh");

/// The IPv4 address of the node with this index.
pub fn address(index: usize) -> String {
    format!("10.47.91.{}", index + 1)
}

/// The Ethernet address of the machine of node so-and-so.
pub(crate) fn ethernet(index: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0, index as u8 + 1]
}

/// A run of programs on nodes. Built with [`Run::lesson`], [`Run::programs`] or [`Run::shell`].
#[must_use]
#[derive(Debug, Clone)]
pub struct Run {
    pub(crate) name: String,
    pub(crate) nodes: Vec<Node>,
    pub(crate) inspect: Option<String>,
    pub(crate) options: Options,
}

impl Run {
    /// Both sides of a lesson: `"04"`, or `"lesson-04"`, runs `lesson-04 server` and `lesson-04 client -a 10.47.91.1`.
    pub fn lesson(lesson: &str) -> Result<Self> {
        let number =
            programs::number(lesson).with_context(|| format!("`{lesson}` is no lesson; an example is lesson-04"))?;
        Ok(Self::new(number).server_args("").client_args(""))
    }

    /// Any programs; say which with [`Run::server`], [`Run::client`] and [`Run::node`].
    pub fn programs() -> Self {
        Self::new("exec")
    }

    /// An interactive shell on the client, beside `server`, a line for the server's shell. `size` is the terminal's, in
    /// rows and columns. For [`Lab::shell`](crate::Lab::shell).
    pub fn shell(server: &str, size: Option<(u16, u16)>) -> Result<Self> {
        let size = size.map(|(rows, columns)| format!("rows {rows} cols {columns}")).unwrap_or_default();
        let client = format!("size='{size}' server_command={}\n{SHELL}", shlex::try_quote(server)?);
        Ok(Self::new(SHELL_NAME).server(server).client(&client).deadline(SHELL_DEADLINE))
    }

    fn new(name: &str) -> Self {
        let nodes = [SERVER, CLIENT].map(|name| Node::new(name, None)).into();
        Self { name: name.to_owned(), nodes, inspect: None, options: Options::default() }
    }

    /// The server's command, a line for the shell.
    pub fn server(self, command: &str) -> Self {
        self.node(SERVER, command)
    }

    /// The client's command, a line for the shell.
    pub fn client(self, command: &str) -> Self {
        self.node(CLIENT, command)
    }

    /// The command of any node, if it has one. A new name is one machine more; the client's machine is left out if there are
    /// others, and it has nothing to do.
    pub fn node<'a>(self, name: &str, command: impl Into<Option<&'a str>>) -> Self {
        self.with(Node::new(name, command))
    }

    /// Another node, or another command for it.
    pub fn with(mut self, node: Node) -> Self {
        match self.index(&node.name) {
            Some(at) => self.nodes[at] = node,
            None => {
                self.nodes.retain(|node| node.name != CLIENT || node.command.is_some());
                self.nodes.push(node);
            }
        }
        self
    }

    /// Lets so many clients do what the client does, all at once: `client-1`, `client-2` and so on. A lesson's server is told
    /// how many there are, unless its arguments say so.
    pub fn clients(mut self, count: usize) -> Self {
        programs::multiply_client(&mut self.nodes, count);
        self
    }

    /// More arguments for a lesson's server.
    pub fn server_args(self, arguments: &str) -> Self {
        let command = programs::server(&self.name, arguments);
        self.server(&command)
    }

    /// More arguments for a lesson's client. It connects to the lab's server unless they say where to.
    pub fn client_args(self, arguments: &str) -> Self {
        let command = programs::client(&self.name, &address(0), arguments);
        self.client(&command)
    }

    /// Kills a node's program as soon as a log line of any node contains `text`.
    pub fn kill_when(mut self, victim: &str, text: &str) -> Self {
        self.options.faults.push(Trap::new(Fault::Kill, victim, text));
        self
    }

    /// Cuts a machine's power as soon as a log line of any node contains `text`.
    pub fn power_off_when(mut self, victim: &str, text: &str) -> Self {
        self.options.faults.push(Trap::new(Fault::PowerOff, victim, text));
        self
    }

    /// Acts on packets: `drop 1st "RC Acknowledge" from server`, for example. [`run::rules`] says what else. Rules add up.
    pub fn wire(mut self, rules: &str) -> Self {
        self.options.wire.push_str(&format!("; {rules}"));
        self
    }

    /// Runs a shell command in all machines before the programs start and again after they have ended. What it
    /// prints is in [`crate::Ended::before`] and [`crate::Ended::after`].
    pub fn inspect(mut self, command: &str) -> Self {
        self.inspect = Some(command.to_owned());
        self
    }

    /// How long the programs may run; 120 s unless this says otherwise.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.options.deadline = Some(deadline);
        self
    }

    /// Sets all that the command line has: memory, kernel, files to bring and so on. Faults and rules are added to those that
    /// are there, and a deadline that is there stays if these have none.
    pub fn options(mut self, options: Options) -> Self {
        let deadline = options.deadline.or(self.options.deadline);
        let faults = [self.options.faults, options.faults].concat();
        let (wire, more) = (self.options.wire, options.wire);
        self.options = Options { deadline, faults, wire, ..options };
        self.wire(&more)
    }

    /// Another name for the folder of the results.
    pub fn name(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    /// The text in which a node's programs are named: its command, its faults' and the server's test, or in a shell's run the commands of
    /// every node, as a shell starts programs everywhere.
    pub(crate) fn names_programs(&self, node: &Node) -> String {
        let is_meant = |other: &&Node| self.name == SHELL_NAME || other.name == node.name;
        let commands = self.nodes.iter().filter(is_meant).filter_map(|node| node.command.as_deref());
        let faults = self.options.faults.iter().filter(|trap| trap.node == node.name).filter_map(Trap::command);
        commands.chain(faults).chain(self.options.ready.as_deref()).collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn index(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// Names and addresses of the machines, for `/etc/hosts`.
    pub(crate) fn hosts(&self) -> String {
        let node = |(index, node): (usize, &Node)| {
            format!("{} {name}\nfd47:91::{} {name}\n", address(index), index + 1, name = node.name)
        };
        "127.0.0.1 localhost\n".to_owned() + &self.nodes.iter().enumerate().map(node).collect::<String>()
    }

    /// The machines' Ethernet addresses, for `ip -batch`. Several clients that start at once keep each other waiting, and then it
    /// happens that ARP's answer comes before the kernel's rdma_resolve_addr waits for it: that one goes on only when its
    /// time-out is over, two seconds later. So more than two machines know them beforehand. Two ask, as a lesson shows.
    pub(crate) fn neighbors(&self) -> String {
        let known = |at| format!("neigh replace {} lladdr 02:00:00:00:00:{:02x} dev eth0\n", address(at), at + 1);
        (0..self.nodes.len()).map(known).collect()
    }

    /// Looks for mistakes in names, and reads the rules.
    pub(crate) fn check(&self) -> Result<Rules, Stopped> {
        let (name, count, names) = (&self.name, self.nodes.len(), self.names());
        let fetched = self.options.out.iter().filter_map(|fetched| fetched.node.as_ref());
        let mut named = self.options.faults.iter().map(|trap| &trap.node).chain(fetched);
        let mistake = if name.is_empty() || name.starts_with('.') || name.contains('/') {
            format!("`{name}` cannot be the name of a folder for the results")
        } else if count > MOST {
            format!("{count} machines are too many: one server and up to {} others", MOST - 1)
        } else if let Some(wrong) = names.iter().find(|name| !is_host_name(name)) {
            format!("`{wrong}` cannot be the name of a machine: lower-case letters, digits and - are, as in worker-1")
        } else if let Some(name) = named.find(|name| self.index(name).is_none()) {
            format!("there is no node `{name}`; there are {}", names.join(", "))
        } else if let Some(wrong) = self.said().iter().find_map(|line| check_line(line).err()) {
            wrong.to_string()
        } else {
            return Rules::parse(&self.options.wire, &names).map_err(|error| Stopped::Usage(error.to_string()));
        };
        Err(Stopped::Usage(mistake))
    }

    /// What is said to machines that run, on their consoles. Their programs' own commands come on their drives.
    fn said(&self) -> Vec<String> {
        let Options { ready, faults, out, .. } = &self.options;
        let fetched = |name: &str| fetch::command(&out.iter().filter(|file| file.is_from(name)).collect::<Vec<_>>());
        let asked = self.inspect.iter().cloned().chain(self.names().into_iter().map(fetched));
        let lines = asked.map(|command| format!("inspect {command}"));
        let lines = lines.chain(ready.iter().map(|test| format!("await {test}")));
        lines.chain(faults.iter().filter_map(Trap::command).map(|command| format!("also {command}"))).collect()
    }

    /// The nodes' names, the server's first.
    pub fn names(&self) -> Vec<&str> {
        self.nodes.iter().map(|node| node.name.as_str()).collect()
    }
}

fn is_host_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    name.bytes().all(fits) && (1..64).contains(&name.len()) && !name.starts_with('-') && !RESERVED.contains(&name)
}

#[cfg(test)]
mod tests;

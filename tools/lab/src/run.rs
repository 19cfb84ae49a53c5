//! What to run: the command of each node, and what to do to them while they run.

use crate::driver::Driver;
use crate::fault::Trap;
use crate::interrupt::Stopped;
use crate::options::Options;
use crate::{modules, terminal, wire};
use anyhow::{bail, Result};
use run::programs::{Lesson, Node, CLIENT, SERVER};
use run::story::Story;
use run::wire::Wire;

/// One server and eight others.
const MOST: usize = 9;
/// Names that mean something else in a run file, or in every machine.
const RESERVED: [&str; 2] = ["lab", "localhost"];
/// The client's command of a shell's run.
const SHELL: &str = include_str!("../guest/shell.sh");

/// The IPv4 address of the node with this index.
pub fn address(index: usize) -> String {
    format!("10.47.91.{}", index + 1)
}

/// The Ethernet address of the machine of node so-and-so.
pub fn ethernet(index: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0, index as u8 + 1]
}

/// A run of programs on nodes.
#[derive(Debug)]
pub struct Run {
    /// The folder of the results, below `target/lab/runs`.
    pub name: String,
    /// Who takes part, the server first.
    pub nodes: Vec<Node>,
    pub is_shell: bool,
    /// As which story it is shown; None if every line and packet is.
    pub story: Option<Story>,
    pub options: Options,
}

impl Run {
    /// Both sides of a lesson.
    pub fn lesson(lesson: &Lesson, options: Options) -> Result<Self> {
        // siw, listening on [::], answers no client that comes over IPv4.
        let listens_at = (options.driver == Driver::Siw).then(|| address(0));
        let (number, nodes) = lesson.nodes(&address(0), listens_at.as_deref())?;
        if let Some(lacking) = options.driver.lacks(number) {
            bail!("lesson {number} can't run on {}: that has no {lacking}", options.driver.title());
        }
        Ok(Self { story: lesson.story(&options.wire)?, ..Self::new(number, nodes, options) })
    }

    /// Any programs, each a line for the shell, on these two machines and more. The client's is left out if there are others, and
    /// it has nothing to do.
    pub fn programs(name: &str, server: Option<&str>, client: Option<&str>, more: Vec<Node>, options: Options) -> Self {
        let mut nodes = vec![Node::new(SERVER, server), Node::new(CLIENT, client)];
        for node in more {
            match nodes.iter_mut().find(|other| other.name == node.name) {
                Some(other) => *other = node,
                None => {
                    nodes.retain(|node| node.name != CLIENT || node.command.is_some());
                    nodes.push(node);
                }
            }
        }
        Self::new(name, nodes, options)
    }

    fn new(name: &str, nodes: Vec<Node>, options: Options) -> Self {
        let name = options.name.clone().unwrap_or_else(|| name.to_owned());
        Self { name, nodes, is_shell: false, story: None, options }
    }

    /// An interactive shell on the client, beside `server`, a line for the server's shell.
    pub fn shell(server: &str, more: Vec<Node>, options: Options) -> Result<Self> {
        let size = terminal::size().map(|(rows, columns)| format!("rows {rows} cols {columns}")).unwrap_or_default();
        let client = format!("size='{size}' server_command={}\n{SHELL}", shlex::try_quote(server)?);
        Ok(Self { is_shell: true, ..Self::programs("shell", Some(server), Some(&client), more, options) })
    }

    /// The text in which a node's programs are named: its command, its faults' and the server's test, or in a shell's run the
    /// commands of every node, as a shell starts programs everywhere.
    pub fn names_programs(&self, node: &Node) -> String {
        let is_meant = |other: &&Node| self.is_shell || other.name == node.name;
        let commands = self.nodes.iter().filter(is_meant).filter_map(|node| node.command.as_deref());
        let faults = self.options.faults.iter().filter(|trap| trap.node == node.name).filter_map(Trap::command);
        commands.chain(faults).chain(self.options.ready.as_deref()).collect::<Vec<_>>().join("\n")
    }

    /// The modules that any node's commands name.
    pub fn requested(&self) -> Vec<&'static str> {
        let texts = self.nodes.iter().map(|node| self.names_programs(node));
        modules::requested(&texts.collect::<Vec<_>>().join("\n"))
    }

    pub fn index(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// Names and addresses of the machines, for `/etc/hosts`.
    pub fn hosts(&self) -> String {
        let node = |(index, node): (usize, &Node)| {
            format!("{} {name}\nfd47:91::{} {name}\n", address(index), index + 1, name = node.name)
        };
        "127.0.0.1 localhost\n".to_owned() + &self.nodes.iter().enumerate().map(node).collect::<String>()
    }

    /// The machines' Ethernet addresses, for `ip -batch`. Several clients that start at once keep each other waiting, and then it
    /// happens that ARP's answer comes before the kernel's rdma_resolve_addr waits for it: that one goes on only when its
    /// time-out is over, two seconds later. So more than two machines know them beforehand. Two ask, as a lesson shows.
    pub fn neighbors(&self) -> String {
        let known = |at| format!("neigh replace {} lladdr 02:00:00:00:00:{:02x} dev eth0\n", address(at), at + 1);
        (0..self.nodes.len()).map(known).collect()
    }

    /// Looks for mistakes in names, and reads what the wire is like.
    pub fn check(&self) -> Result<Wire, Stopped> {
        let (name, count, names) = (&self.name, self.nodes.len(), self.names());
        let fetched = self.options.out.iter().filter_map(|fetched| fetched.node.as_ref());
        let mut named = self.options.faults.iter().map(|trap| &trap.node).chain(fetched);
        let mistake = if name.is_empty() || name.starts_with('.') || name.contains('/') {
            format!("`{name}` cannot be the name of a folder for the results. Choose another --name")
        } else if count > MOST {
            format!("{count} machines are too many. The lab runs one server and up to {} others", MOST - 1)
        } else if let Some(wrong) = names.iter().find(|name| !is_host_name(name)) {
            format!("`{wrong}` cannot be the name of a machine. Use lower-case letters, digits and -, as in worker-1")
        } else if let Some(name) = named.find(|name| self.index(name).is_none()) {
            format!("there is no node `{name}`. This run has {}", names.join(", "))
        } else {
            return wire::parse(&self.options.wire, &names).map_err(|error| Stopped::Usage(error.to_string()));
        };
        Err(Stopped::Usage(mistake))
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
mod tests {
    use super::*;

    #[test]
    fn names_of_machines_are_host_names_and_there_are_nine_at_most() {
        let run = |names: &[&str]| {
            let nodes = names.iter().map(|name| Node::new(name, "true")).collect();
            Run::programs("x", Some("true"), None, nodes, Options::default())
        };
        let names: Vec<String> = (1..=9).map(|number| format!("worker-{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(run(&names[..8]).check().is_ok() && run(&names).check().is_err());
        for wrong in ["", "a b", "Worker", "-x", "lab", "ü"] {
            assert!(run(&[wrong]).check().is_err(), "{wrong}");
        }
    }
}

//! The programs of a run: who takes part, and what each is to do. The same in the lab and on the device.

use crate::file::Line;
use anyhow::Context;
use clap::Args;

/// The name of the first node: it listens.
pub const SERVER: &str = "server";
/// The name of the one that connects to it, unless there are several.
pub const CLIENT: &str = "client";

/// Who takes part. The first node is the server; the others start when that is ready.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name; in the lab the machine's host name, too.
    pub name: String,
    /// What it runs, a line for the shell. In the lab a node without waits for `on NAME COMMAND` on another one.
    pub command: Option<String>,
}

impl Node {
    /// A node, perhaps without a command.
    pub fn new<'a>(name: &str, command: impl Into<Option<&'a str>>) -> Node {
        Node { name: name.to_owned(), command: command.into().map(str::to_owned) }
    }

    /// The name of its program, for its lines: the command's first word without folders, variables and the shell's signs.
    pub fn program(&self) -> String {
        let words = shlex::split(self.command.as_deref().unwrap_or_default()).unwrap_or_default();
        let word = words.iter().find(|word| !word.contains('=')).map_or("", String::as_str);
        let word = word.rsplit('/').next().unwrap_or(word);
        let is_name = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "._-+".contains(c));
        // Whose lines have these names is no program.
        let is_taken = [Line::KERNEL, Line::LAB, Line::DEVICE].contains(&word);
        (if is_name && !is_taken { word } else { "sh" }).to_owned()
    }
}

/// Reads `NAME=COMMAND` or `NAME`.
impl From<&str> for Node {
    fn from(text: &str) -> Node {
        text.split_once('=').map_or_else(|| Node::new(text, None), |(name, command)| Node::new(name, command))
    }
}

/// The command line of `run`: both sides of a lesson.
#[derive(Args, Debug)]
pub struct Lesson {
    /// The lesson, for example lesson-04
    pub lesson: String,
    /// More arguments for the server
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    pub server_args: String,
    /// More arguments for the client
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    pub client_args: String,
    /// So many clients, all at once: client-1, client-2 …
    #[arg(long, default_value_t = 1)]
    pub clients: usize,
}

impl Lesson {
    /// The lesson's number, and who takes part: the client connects to this address of the server's unless its arguments say
    /// where to.
    ///
    /// # Errors
    /// It is no lesson.
    pub fn nodes(&self, address: &str) -> anyhow::Result<(&str, Vec<Node>)> {
        let number =
            number(&self.lesson).with_context(|| format!("`{}` is no lesson; an example is lesson-04", self.lesson))?;
        let (server, client) = (server(number, &self.server_args), client(number, address, &self.client_args));
        let mut nodes = vec![Node::new(SERVER, &*server), Node::new(CLIENT, &*client)];
        multiply_client(&mut nodes, self.clients);
        Ok((number, nodes))
    }
}

/// The two digits in a lesson's name; None if it is no lesson.
fn number(lesson: &str) -> Option<&str> {
    let number = lesson.strip_prefix("lesson-").unwrap_or(lesson);
    (number.len() == 2 && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(number)
}

/// The command of a lesson's server.
fn server(number: &str, arguments: &str) -> String {
    format!("lesson-{number} server {arguments}").trim_end().to_owned()
}

/// The command of a lesson's client. It connects to the server's address unless its arguments say where to.
fn client(number: &str, server: &str, arguments: &str) -> String {
    let to = if names_address(arguments) { String::new() } else { format!("-a {server} ") };
    format!("lesson-{number} client {to}{arguments}").trim_end().to_owned()
}

/// Whether a client's arguments hold `-a ADDR`, `-aADDR`, `--addr…`.
fn names_address(arguments: &str) -> bool {
    let words = shlex::split(arguments).unwrap_or_default();
    words.iter().any(|word| word.starts_with("--addr") || (word.starts_with("-a") && !word.starts_with("--")))
}

/// Lets so many clients do what the client does: `client-1`, `client-2` and so on. A lesson's server is told how many there
/// are, unless its arguments say so.
fn multiply_client(nodes: &mut Vec<Node>, count: usize) {
    let Some(at) = nodes.iter().position(|node| node.name == CLIENT).filter(|_| count > 1) else { return };
    let client = nodes.remove(at);
    nodes.extend((1..=count).map(|number| Node { name: format!("{CLIENT}-{number}"), ..client.clone() }));
    if let Some(server) = nodes.first_mut().and_then(|node| node.command.as_mut()) {
        if server.starts_with("lesson-") && !server.contains(" -n") {
            server.push_str(&format!(" -n {count}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_a_name() {
        let program = |command| Node::new("client", command).program();
        assert_eq!(program("/usr/bin/rping -s"), "rping");
        assert_eq!(program("RUST_LOG=DATA lesson-04 server"), "lesson-04");
        assert_eq!(program("'/tmp/ping' it"), "ping");
        for nameless in ["(sleep 1) & x", "", "./lab x"] {
            assert_eq!(program(nameless), "sh", "{nameless}");
        }
    }

    #[test]
    fn the_client_goes_to_the_server_unless_told_otherwise() {
        for (arguments, to) in [
            ("--len 2500", "-a 10.47.91.1 "),
            ("-a server -p 9", ""),
            ("-afd47:91::1", ""),
            ("--address=x", ""),
            ("-s 'hi -a'", "-a 10.47.91.1 "),
        ] {
            assert_eq!(client("04", "10.47.91.1", arguments), format!("lesson-04 client {to}{arguments}"));
        }
    }
}

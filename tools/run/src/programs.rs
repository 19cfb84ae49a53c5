//! The programs of a run: who takes part, and what each is to do. The same in the lab and on the device.

use crate::file::Line;
use crate::story::{self, Story};
use anyhow::{ensure, Context, Result};
use clap::Args;
use std::env;
use std::io::{self, Write};
use std::iter;
use std::process::Command;

/// The name of the first node: it listens.
pub const SERVER: &str = "server";
/// The name of the one that connects to it, unless there are several.
pub const CLIENT: &str = "client";

/// Who takes part. The first node is the server; the others start when that is ready.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name, which in the lab is also the machine's host name.
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
    /// Show every line and packet, not only the lesson's story. RUST_LOG also does that
    #[arg(long)]
    pub all: bool,
}

impl Lesson {
    /// The story that the run tells, which is the one whose options are closest to its own; None if everything should be shown.
    pub fn story(&self, wire: &str) -> Result<Option<Story>> {
        if self.all || env::var_os("RUST_LOG").is_some() {
            return Ok(None);
        }
        let stories = story::bundled()?.into_iter().filter(|story| self.lesson.ends_with(story.number()));
        let found = story::closest(stories, [&self.server_args, &self.client_args], wire);
        Ok(found.map(|(story, _)| Story { clients: self.clients, ..story }))
    }

    /// If a side is only asked for its help, prints that, and says why there's no run: its program ends at once, and the other one
    /// would wait for it. A command line that the program doesn't understand is left to the run.
    pub fn prints_help(&self) -> Result<bool> {
        let (_, nodes) = self.nodes(SERVER, None)?;
        let words = |node: &Node| node.command.as_deref().and_then(shlex::split).unwrap_or_default();
        let is_asked = |node: &&Node| words(node).iter().any(|word| ["-h", "--help"].contains(&word.as_str()));
        let Some(node) = nodes.iter().find(is_asked) else { return Ok(false) };
        let (words, other) = (words(node), if node.name == SERVER { CLIENT } else { SERVER });
        // Lessons are beside this program, or wherever programs are.
        let beside = env::current_exe().context("where is this program?")?.with_file_name(&words[0]);
        let program = if beside.exists() { beside } else { words[0].clone().into() };
        let said =
            Command::new(program).args(&words[1..]).output().with_context(|| format!("cannot run {}", words[0]))?;
        if said.status.success() {
            let why =
                format!("The {} prints this and ends. The {other} would wait for it, so it wasn't started.", node.name);
            writeln!(io::stdout(), "{}\n{why}", String::from_utf8_lossy(&said.stdout))
                .context("cannot print the help")?;
        }
        Ok(said.status.success())
    }

    /// The lesson's number, and who takes part: the client connects to this address of the server's unless its arguments say
    /// where to. With `listens_at` the server listens only there, unless either side's arguments name an address.
    pub fn nodes(&self, address: &str, listens_at: Option<&str>) -> Result<(&str, Vec<Node>)> {
        let number = self.lesson.strip_prefix("lesson-").unwrap_or(&self.lesson);
        let is_lesson = number.len() == 2 && number.bytes().all(|byte| byte.is_ascii_digit());
        ensure!(is_lesson, "`{}` isn't a lesson. Name one like lesson-04", self.lesson);
        let mut server = format!("lesson-{number} server {}", self.server_args).trim_end().to_owned();
        // It is told how many clients there are, unless its arguments say so.
        if self.clients > 1 && !server.contains(" -n") {
            server += &format!(" -n {}", self.clients);
        }
        let is_free = !names_address(&self.server_args) && !names_address(&self.client_args);
        if let Some(address) = listens_at.filter(|_| is_free) {
            server += &format!(" -a {address}");
        }
        let client = client(number, address, &self.client_args);
        let names = match self.clients {
            0 | 1 => vec![CLIENT.to_owned()],
            several => (1..=several).map(|number| format!("{CLIENT}-{number}")).collect(),
        };
        let clients = names.iter().map(|name| Node::new(name, &*client));
        Ok((number, iter::once(Node::new(SERVER, &*server)).chain(clients).collect()))
    }
}

/// The command of a lesson's client. It connects to the server unless its arguments say where to: `-a ADDR`, `-aADDR`, `--addr…`.
fn client(number: &str, server: &str, arguments: &str) -> String {
    let to = if names_address(arguments) { String::new() } else { format!("-a {server} ") };
    format!("lesson-{number} client {to}{arguments}").trim_end().to_owned()
}

fn names_address(arguments: &str) -> bool {
    let words = shlex::split(arguments).unwrap_or_default();
    words.iter().any(|word| word.starts_with("--addr") || word.starts_with("-a"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_a_name() {
        for (command, name) in [
            ("RUST_LOG=DATA lesson-04 server", "lesson-04"),
            ("'/tmp/ping' it", "ping"),
            ("(sleep 1) & x", "sh"),
            ("", "sh"),
            ("./lab x", "sh"),
        ] {
            assert_eq!(Node::new("client", command).program(), name, "{command}");
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

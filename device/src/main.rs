//! `device run LESSON`, `device exec`, `device shell`: programs on the device of this crate, on this machine, with the packets
//! between them.
//!
//! Exit status: 0 all programs ended with 0 (a shell: it was left), 1 one did not, 2 wrong usage, 3 the programs could not be
//! run.

#![forbid(unsafe_code)]

mod runner;

use anyhow::{bail, Result};
use clap::{Args, Parser, Subcommand};
use runner::{library, Node, Run};
use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use wire::rules::Rules;

const PROGRAM_FAILED: u8 = 1;
const USAGE: u8 = 2;
const RUNNER_FAILED: u8 = 3;

/// Runs programs on a RoCEv2 device in user space, and shows the packets between them.
#[derive(Parser)]
#[command(name = "device")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run both sides of a lesson
    Run {
        /// The lesson, for example lesson-04
        lesson: String,
        /// More arguments for the server
        #[arg(long, default_value = "", allow_hyphen_values = true)]
        server_args: String,
        /// More arguments for the client
        #[arg(long, default_value = "", allow_hyphen_values = true)]
        client_args: String,
        /// So many clients, all at once: client-1, client-2 …
        #[arg(long, default_value_t = 1)]
        clients: usize,
        #[command(flatten)]
        common: Common,
    },
    /// Run any programs of this machine, for example --server "rping -s -C 3" --client 'rping -c -a $SERVER -C 3'
    Exec {
        /// The server's command
        #[arg(long)]
        server: String,
        /// The client's command; $SERVER is the server's address. It starts once the server listens
        #[arg(long)]
        client: Option<String>,
        /// One more program: --node 'worker-1=rping -c -a $SERVER -C 3'
        #[arg(long = "node", value_name = "NAME=COMMAND", value_parser = node)]
        nodes: Vec<(String, String)>,
        #[command(flatten)]
        common: Common,
    },
    /// An interactive shell in which programs use the device
    Shell {
        /// The server's command; the shell starts once it listens
        #[arg(long, default_value = "rping -s -P -v")]
        server: String,
        #[command(flatten)]
        common: Common,
    },
    /// Print the folder with the two libraries, for LD_LIBRARY_PATH
    Library,
}

#[derive(Args)]
struct Common {
    /// Show what the devices decide, too
    #[arg(long)]
    log: bool,
    /// Act on packets, for example: drop 1st "RC Acknowledge" from server (docs/lab.md has more)
    #[arg(long, default_value = "", hide_default_value = true)]
    wire: String,
    /// How long the programs may run, in seconds
    #[arg(long, default_value_t = 60)]
    deadline: u64,
    /// The folder of the results, below target/device/runs
    #[arg(long)]
    name: Option<String>,
    /// Copy the run file to this place, too
    #[arg(long)]
    pcap: Option<PathBuf>,
    /// Show nothing while the programs run
    #[arg(long)]
    quiet: bool,
}

fn main() -> ExitCode {
    match Cli::parse().command.carry_out() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(PROGRAM_FAILED),
        Err(error) => {
            let _ = writeln!(io::stderr(), "device: {error:#}");
            ExitCode::from(if error.is::<Misunderstood>() { USAGE } else { RUNNER_FAILED })
        }
    }
}

/// The command line is not understood.
#[derive(Debug)]
struct Misunderstood(String);

impl fmt::Display for Misunderstood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misunderstood {}

impl Command {
    fn carry_out(self) -> Result<bool> {
        match self {
            Command::Library => {
                println!("{}", library()?.display());
                Ok(true)
            }
            Command::Run { lesson, server_args, client_args, clients, common } => {
                let number = lesson.strip_prefix("lesson-").unwrap_or(&lesson);
                if number.len() != 2 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
                    bail!(Misunderstood(format!("`{lesson}` is no lesson; an example is lesson-04")));
                }
                let many =
                    if clients > 1 && !server_args.contains("-n") { format!(" -n {clients}") } else { String::new() };
                let server = format!("lesson-{number} server {server_args}{many}");
                let target = if names_address(&client_args) { "" } else { "-a $SERVER " };
                let client = format!("lesson-{number} client {target}{client_args}");
                let mut nodes = vec![Node::new("server", server)];
                if clients > 1 {
                    nodes.extend((1..=clients).map(|n| Node::new(&format!("client-{n}"), client.clone())));
                } else {
                    nodes.push(Node::new("client", client));
                }
                common.run(number, nodes)
            }
            Command::Exec { server, client, nodes, common } => {
                let named = [("server".to_owned(), Some(server)), ("client".to_owned(), client)].into_iter();
                let named = named.filter_map(|(name, command)| Some((name, command?)));
                common.run("exec", named.chain(nodes).map(|(name, command)| Node::new(&name, command)).collect())
            }
            Command::Shell { server, common } => {
                let mut run = common.prepare("shell", vec![Node::new("server", server)]);
                run.shell = true;
                run.deadline = Duration::from_secs(24 * 3600);
                runner::run(&run)
            }
        }
    }
}

impl Common {
    fn prepare(&self, name: &str, nodes: Vec<Node>) -> Run {
        let deadline = Duration::from_secs(self.deadline);
        let (name, copy) = (self.name.as_deref().unwrap_or(name).to_owned(), self.pcap.clone());
        let rules = self.wire.clone();
        Run { name, nodes, log: self.log, rules, quiet: self.quiet, shell: false, deadline, copy }
    }

    fn run(&self, name: &str, nodes: Vec<Node>) -> Result<bool> {
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        Rules::parse(&self.wire, &names).map_err(|error| Misunderstood(error.to_string()))?;
        runner::run(&self.prepare(name, nodes))
    }
}

fn node(text: &str) -> Result<(String, String), String> {
    let (name, command) = text.split_once('=').ok_or("an example is worker-1=rping -c -a $SERVER")?;
    Ok((name.to_owned(), command.to_owned()))
}

/// Whether a client's arguments say where to connect to.
fn names_address(arguments: &str) -> bool {
    let words = shlex::split(arguments).unwrap_or_default();
    words.iter().any(|word| word.starts_with("--addr") || (word.starts_with("-a") && !word.starts_with("--")))
}

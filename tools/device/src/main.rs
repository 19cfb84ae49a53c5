//! `device run LESSON`, `device exec`, `device shell`: programs on nodes with a device, on this machine, with the packets between
//! them. `device run -- COMMAND`: a command on such a node.
//!
//! Exit status: 0 all programs ended with 0 (a shell: it was left), 1 one did not, 2 wrong usage, 3 the programs could not be
//! run, or not be recorded to their end, 128 plus the number of a signal that has ended the run. A command that runs alone passes on its own
//! status, or 128 plus the signal that has ended it.

#![forbid(unsafe_code)]

mod runner;

use anyhow::{bail, ensure, Result};
use clap::{Parser, Subcommand};
use run::programs::{Lesson, Node, CLIENT, SERVER};
use runner::{Guest, Options, Run};
use std::io::{self, Write};
use std::process::ExitCode;

/// The name of a node that is alone.
const NODE: &str = "node";
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
    /// Run both sides of a lesson; or any command, on a node of its own, with this terminal: device run -- cargo test
    Run {
        #[command(flatten)]
        lesson: Option<Lesson>,
        /// A command instead of a lesson
        #[arg(last = true, value_name = "COMMAND", conflicts_with = "Lesson")]
        alone: Vec<String>,
        #[command(flatten)]
        options: Options,
    },
    /// Run any programs of this machine, for example --server "rping -s -C 3" --client 'rping -c -a $SERVER -C 3'
    Exec {
        /// The server's command
        #[arg(long)]
        server: String,
        /// The client's command; $SERVER is the server's address. It starts once the server listens
        #[arg(long)]
        client: Option<String>,
        /// One more program, for example --node 'worker-1=rping -c -a $SERVER -C 3'
        #[arg(long = "node", value_name = "NAME=COMMAND")]
        nodes: Vec<Node>,
        #[command(flatten)]
        options: Options,
    },
    /// An interactive shell in which programs use the device
    Shell {
        /// The server's command; the shell starts once it listens
        #[arg(long, default_value = "rping -s -P -v")]
        server: String,
        #[command(flatten)]
        options: Options,
    },
    /// What a run starts for itself: ends the processes of the run with this name, once standard input ends
    #[command(hide = true)]
    Guard { run: String },
}

fn main() -> ExitCode {
    let run = match Cli::parse().command.into_run() {
        Ok(Some(run)) => run,
        Ok(None) => return ExitCode::SUCCESS,
        Err(error) => return failed(&error, USAGE),
    };
    match runner::run(run) {
        Ok(status) => ExitCode::from(status),
        Err(error) => failed(&error, RUNNER_FAILED),
    }
}

fn failed(error: &anyhow::Error, status: u8) -> ExitCode {
    let _ = writeln!(io::stderr(), "device: {error:#}");
    ExitCode::from(status)
}

impl Command {
    /// What to run; None if it's already done. An error is a mistake in the command line.
    fn into_run(self) -> Result<Option<Run>> {
        let mut story = None;
        let (name, nodes, options, guest) = match self {
            Command::Guard { run } => {
                runner::guard(&run);
                return Ok(None);
            }
            Command::Run { lesson: Some(lesson), .. } if lesson.prints_help()? => return Ok(None),
            Command::Run { lesson: Some(lesson), options, .. } => {
                let (number, nodes) = lesson.nodes("$SERVER", None)?;
                story = lesson.story(&options.wire)?;
                (number.to_owned(), nodes, options, Guest::None)
            }
            Command::Run { lesson: None, alone, options } => {
                let line = shlex::try_join(alone.iter().map(String::as_str))?;
                ensure!(!line.is_empty(), "there is nothing to run. Name a lesson, or a command after --, for example device run -- ibv_devinfo");
                ("alone".to_owned(), vec![Node::new(NODE, &*line)], options, Guest::Only)
            }
            Command::Exec { server, client, nodes, options } => {
                let client = client.map(|command| Node::new(CLIENT, &*command));
                let nodes = [Node::new(SERVER, &*server)].into_iter().chain(client).chain(nodes).collect();
                ("exec".to_owned(), nodes, options, Guest::None)
            }
            Command::Shell { server, options } => {
                ("shell".to_owned(), vec![Node::new(SERVER, &*server)], options, Guest::Shell)
            }
        };
        if let Some(idle) = nodes.iter().find(|node| node.command.is_none()) {
            bail!("the node {} has no command. Add one, for example worker-1=rping -c -a $SERVER", idle.name);
        }
        let run = Run::new(name, nodes, options, guest)?;
        Ok(Some(run.told_as(story)))
    }
}

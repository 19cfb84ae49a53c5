//! `device run LESSON`, `device exec`, `device shell`: programs on the device of this crate, on this machine, with the packets
//! between them.
//!
//! Exit status: 0 all programs ended with 0 (a shell: it was left), 1 one did not, 2 wrong usage, 3 the programs could not be
//! run.

#![forbid(unsafe_code)]

mod runner;

use anyhow::{bail, Result};
use clap::{Parser, Subcommand};
use run::programs::{Lesson, Node, CLIENT, SERVER};
use runner::{library, Options, Run};
use std::io::{self, Write};
use std::process::ExitCode;

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
        #[command(flatten)]
        lesson: Lesson,
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
        /// One more program: --node 'worker-1=rping -c -a $SERVER -C 3'
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
    /// Print the folder with the two libraries, for LD_LIBRARY_PATH
    Library,
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    let done = match command.into_run() {
        Ok(Some(run)) => runner::run(run),
        Ok(None) => library().map(|folder| {
            println!("{}", folder.display());
            true
        }),
        Err(error) => return failed(&error, USAGE),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(PROGRAM_FAILED),
        Err(error) => failed(&error, RUNNER_FAILED),
    }
}

fn failed(error: &anyhow::Error, status: u8) -> ExitCode {
    let _ = writeln!(io::stderr(), "device: {error:#}");
    ExitCode::from(status)
}

impl Command {
    /// What is to be run, if it is more than a question. An error is one of the command line.
    fn into_run(self) -> Result<Option<Run>> {
        let (name, nodes, options, shell) = match self {
            Command::Library => return Ok(None),
            Command::Run { lesson, options } => {
                let (number, nodes) = lesson.nodes("$SERVER")?;
                (number.to_owned(), nodes, options, false)
            }
            Command::Exec { server, client, nodes, options } => {
                let client = client.map(|command| Node::new(CLIENT, &*command));
                let nodes = [Node::new(SERVER, &*server)].into_iter().chain(client).chain(nodes).collect();
                ("exec".to_owned(), nodes, options, false)
            }
            Command::Shell { server, options } => {
                ("shell".to_owned(), vec![Node::new(SERVER, &*server)], options, true)
            }
        };
        if let Some(idle) = nodes.iter().find(|node| node.command.is_none()) {
            bail!("{} has no command; an example is worker-1=rping -c -a $SERVER", idle.name);
        }
        Run::new(name, nodes, options, shell).map(Some)
    }
}

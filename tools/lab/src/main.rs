//! `lab run LESSON`, `lab exec`, `lab shell`: programs on SoftRoCE machines, two or more, with the packets between them.
//!
//! The machines are emulated by QEMU; this program starts them, is the cable that connects them, and therefore sees every packet.
//! It needs no root, opens no network port, and installs nothing.
//!
//! A run goes through these modules: [`kernel`] finds what to boot, [`initramfs`] builds the first file system, [`state`] boots the
//! machines once and keeps them, [`payload`] brings the programs, [`session`] runs them with their [`cards`] on a
//! [wire](::run::wire), [`record`] writes down what happens as it happens, [lanes](::run::lanes) draw it. A shell's run lends a machine the [`terminal`].
//!
//! Exit status: 0 all programs ended with 0 (a shell: it was left), 1 one did not, or was in trouble, 2 wrong usage, 3 the lab
//! itself failed, 130 interrupted.

mod agent;
mod arch;
mod archive;
mod cards;
mod driver;
mod elf;
mod fault;
mod fetch;
mod files;
mod initramfs;
mod intake;
mod interrupt;
mod kernel;
mod kvm;
mod lab;
mod libs;
mod machine;
mod modules;
mod options;
mod outcome;
mod payload;
mod port;
mod qmp;
mod record;
mod run;
mod seat;
mod session;
mod state;
mod summary;
mod terminal;
mod unpack;
mod usage;
mod wire;

use ::run::lanes::print;
use ::run::programs::{Lesson, Node};
use anyhow::{ensure, Context, Result};
use clap::{Parser, Subcommand};
use interrupt::Stopped;
use lab::Lab;
use options::Options;
use run::Run;
use std::env;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{self, ExitCode};
use terminal::Terminal;

/// A program ended with another status than 0, or did not end, or a machine's kernel broke under it.
const PROGRAM_FAILED: u8 = 1;
/// The command line is not understood, by the lab or by a lesson.
const USAGE: u8 = 2;
/// The lab itself failed, so we know nothing about the programs.
const LAB_FAILED: u8 = 3;
const INTERRUPTED: u8 = 130;

/// Runs programs on emulated SoftRoCE machines, two or more, and shows the packets between them.
#[derive(Parser)]
#[command(name = "lab")]
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
    /// Run any programs of this host, for example --server "rping -s -C 3" --client "rping -c -a server -C 3"
    Exec {
        /// The server's command; the client starts once it listens
        #[arg(long)]
        server: Option<String>,
        /// The client's command
        #[arg(long)]
        client: Option<String>,
        /// One more machine, with its command: --node "worker-1=rping -c -a server". Up to eight besides the server
        #[arg(long = "node", value_name = "NAME[=COMMAND]")]
        nodes: Vec<Node>,
        #[command(flatten)]
        options: Options,
    },
    /// An interactive shell on the client, with the packets printed as they pass
    Shell {
        /// The server's command; the shell starts once it listens
        #[arg(long, default_value = "rping -s -P -v")]
        server: String,
        /// One more machine; without a command it waits for `on NAME COMMAND` in the shell
        #[arg(long = "node", value_name = "NAME[=COMMAND]")]
        nodes: Vec<Node>,
        #[command(flatten)]
        options: Options,
    },
}

fn main() -> ExitCode {
    match find_tools().and_then(|()| carry_out(Cli::parse().command)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(PROGRAM_FAILED),
        Err(error) => {
            // The terminal may be the very thing that has gone, and `eprintln!` would panic then.
            let _ = writeln!(io::stderr(), "lab: {error:#}");
            ExitCode::from(match error.downcast_ref() {
                Some(Stopped::Interrupted(_)) => INTERRUPTED,
                Some(Stopped::Usage(_)) => USAGE,
                None => LAB_FAILED,
            })
        }
    }
}

/// Restarts this program with what set-up unpacked, if it was started without it.
fn find_tools() -> Result<()> {
    let program = env::current_exe().context("cannot find this program's own path")?;
    let tools = program.ancestors().nth(2).map(|target| target.join("tools/env"));
    if let Some(file) = tools.filter(|file| file.exists() && env::var_os("RDMA_TOOLS").is_none()) {
        let mut shell = process::Command::new("/bin/sh");
        shell.args(["-c", ". \"$0\" && exec \"$@\""]).arg(file).arg(program).args(env::args_os().skip(1));
        return Err(shell.exec().into());
    }
    Ok(())
}

/// Runs what is wanted, and says how it went; true if it went well.
fn carry_out(command: Command) -> Result<bool> {
    if let Command::Run { lesson, .. } = &command {
        if lesson.prints_help().map_err(|error| Stopped::Usage(format!("{error:#}")))? {
            return Ok(true);
        }
    }
    let is_shell = matches!(command, Command::Shell { .. });
    let run = command.into_run().map_err(|error| Stopped::Usage(format!("{error:#}")))?;
    let terminal = is_shell.then(Terminal::open).transpose()?;
    let outcome = Lab::open()?.run(&run, terminal)?;
    let text = match run.options.json {
        true => format!("{:#}\n", summary::json(&outcome)),
        false => summary::text(&outcome, run.options.timing),
    };
    print(&text);
    if let Some(signal) = outcome.stopped {
        return Err(Stopped::Interrupted(Some(signal)).into());
    }
    // How the last command in a shell ended is the person's own business.
    Ok(if is_shell { outcome.trouble.is_none() } else { outcome.told().succeeded() })
}

impl Command {
    /// What to run. An error is one of the command line.
    fn into_run(self) -> Result<Run> {
        match self {
            Self::Run { lesson, options } => Run::lesson(&lesson, options),
            Self::Exec { server, client, nodes, options } => {
                let is_any = server.is_some() || client.is_some() || !nodes.is_empty();
                ensure!(is_any, "there is nothing to run. Give at least one of --server, --client and --node");
                Ok(Run::programs("exec", server.as_deref(), client.as_deref(), nodes, options))
            }
            Self::Shell { server, nodes, options } => {
                ensure!(!options.json, "a shell is for a person, so it takes no --json. `lab exec` does");
                Run::shell(&server, nodes, options)
            }
        }
    }
}

//! `lab run LESSON`, `lab exec`, `lab shell`: programs on SoftRoCE machines, two or more, with the packets between them.
//!
//! Exit status: 0 all programs ended with 0 (a shell: it was left), 1 one did not, or was in trouble, 2 wrong usage, 3 the lab
//! itself failed, 130 interrupted.

mod summary;

use anyhow::{ensure, Context, Result};
use clap::{Args, Parser, Subcommand};
use lab::{Interrupt, Lab, Options, Outcome, Run, Stopped, Terminal, CLIENT, SERVER};
use run::lanes::Live;
use run::programs::{Lesson, Node};
use std::env;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{self, ExitCode};

/// A program ended with another status than 0, or did not end, or a machine's kernel broke under it.
const PROGRAM_FAILED: u8 = 1;
/// The command line is not understood, by the lab or by a lesson.
const USAGE: u8 = 2;
/// The lab could not do its work: nothing is said about the programs.
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
        common: Common,
    },
    /// Run any programs of this host, for example --server "rping -s -C 3" --client "rping -c -a server -C 3"
    Exec {
        /// The server's command; the client starts once it listens
        #[arg(long)]
        server: Option<String>,
        /// The client's command
        #[arg(long)]
        client: Option<String>,
        /// One more machine, with its command: --node "worker-1=rping -c -a server". Up to eight beside the server
        #[arg(long = "node", value_name = "NAME[=COMMAND]")]
        nodes: Vec<Node>,
        /// The folder of the results, below target/lab/runs
        #[arg(long, default_value = "exec")]
        name: String,
        #[command(flatten)]
        common: Common,
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
        common: Common,
    },
}

#[derive(Args)]
struct Common {
    /// Say at the end where the time went
    #[arg(long)]
    timing: bool,
    /// Print nothing but how it went, as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    options: Options,
}

/// Goes on as the same program with what set-up unpacked beside it, if it was started without.
fn find_tools() -> io::Result<()> {
    let program = env::current_exe()?;
    let tools = program.ancestors().nth(2).map(|target| target.join("tools/env"));
    if let Some(file) = tools.filter(|file| file.exists() && env::var_os("RDMA_TOOLS").is_none()) {
        let mut shell = process::Command::new("/bin/sh");
        shell.args(["-c", ". \"$0\" && exec \"$@\""]).arg(file).arg(program).args(env::args_os().skip(1));
        return Err(shell.exec());
    }
    Ok(())
}

fn main() -> ExitCode {
    if let Err(error) = find_tools() {
        return failed(&error.into(), LAB_FAILED);
    }
    let command = Cli::parse().command;
    let is_shell = matches!(command, Command::Shell { .. });
    let (run, common) = match command.into_run() {
        Ok(run) => run,
        Err(error) => return failed(&error, USAGE),
    };
    let done = if is_shell { run_shell(&run) } else { run_programs(&run, common.json) };
    let done = done.and_then(|outcome| {
        let text = if common.json {
            format!("{:#}\n", summary::json(&outcome))
        } else {
            summary::text(&outcome, common.timing)
        };
        io::stdout().write_all(text.as_bytes()).context("cannot print how it went")?;
        // How the last command in a shell ended is the person's own business.
        Ok(if is_shell { outcome.trouble.is_none() } else { outcome.succeeded() })
    });
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(PROGRAM_FAILED),
        Err(error) => match error.downcast_ref() {
            Some(Stopped::Interrupted) => failed(&error, INTERRUPTED),
            Some(Stopped::Usage(_)) => failed(&error, USAGE),
            None => failed(&error, LAB_FAILED),
        },
    }
}

fn failed(error: &anyhow::Error, status: u8) -> ExitCode {
    // The terminal may be the very thing that has gone, and `eprintln!` would panic then.
    let _ = writeln!(io::stderr(), "lab: {error:#}");
    ExitCode::from(status)
}

impl Command {
    fn into_run(self) -> Result<(Run, Common)> {
        let (run, nodes, common) = match self {
            Self::Run { lesson: Lesson { lesson, server_args, client_args, clients }, common } => {
                let run = Run::lesson(&lesson)?.server_args(&server_args).client_args(&client_args);
                (run.clients(clients), Vec::new(), common)
            }
            Self::Exec { server, client, nodes, name, common } => {
                let is_any = server.is_some() || client.is_some() || !nodes.is_empty();
                ensure!(is_any, "nothing to run: give --server, --client, --node or all of them");
                let run = Run::programs().name(&name);
                (run.node(SERVER, server.as_deref()).node(CLIENT, client.as_deref()), nodes, common)
            }
            Self::Shell { server, nodes, common } => {
                ensure!(!common.json, "a shell is for a person: it has no --json");
                (Run::shell(&server, lab::terminal_size())?, nodes, common)
            }
        };
        let run = nodes.into_iter().fold(run, Run::with);
        Ok((run.options(common.options.clone()), common))
    }
}

/// Runs with the lanes drawn live, or in silence.
fn run_programs(run: &Run, is_silent: bool) -> Result<Outcome> {
    let lab = Lab::open()?.stop_on(Interrupt::on_signals()?);
    let mut live = Live::new(&run.names(), is_silent);
    lab.run_observed(run, &mut |event| live.event(event))
}

fn run_shell(run: &Run) -> Result<Outcome> {
    let terminal = Terminal::open()?;
    Lab::open()?.stop_on(Interrupt::on_signals()?).shell(run, terminal)
}

//! The command line: `lesson-NN server …` and `lesson-NN client -a ADDR …`, and what a program's end looks like.
//!
//! Address, port, time-out, number of clients and `--stages` are here; all else is a lesson's own [`Opt`].
//! Exit status: 0 done, 1 failed, 2 wrong usage.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgMatches, Command};

use crate::error::{Error, Result};
use crate::{deadline, narrate};

mod opt;

pub use opt::{Opt, Side};

/// The port that all lessons use without -p, which is also rping's.
pub const PORT: u16 = 7471;

/// What the user asked for.
#[derive(Debug, Clone, Default)]
pub struct Args {
    /// A host name or address: the server's own, or the server to connect to.
    pub address: String,
    /// The RDMA-CM port; TCP's in a lesson that does without the connection manager.
    pub port: u16,
    count: u32,
    texts: HashMap<&'static str, String>,
    numbers: HashMap<&'static str, u32>,
    flags: HashSet<&'static str>,
}

impl Args {
    /// The text or word given for an option, or its default.
    pub fn text(&self, option: &Opt) -> &str {
        self.texts.get(option.name).map_or("", String::as_str)
    }

    /// The number given for an option.
    pub fn number(&self, option: &Opt) -> Option<usize> {
        self.numbers.get(option.name).map(|number| *number as usize)
    }

    /// Whether an option that takes nothing was given.
    pub fn flag(&self, option: &Opt) -> bool {
        self.flags.contains(option.name)
    }

    /// What `-n COUNT` says.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The clients that the server is to serve: `-n COUNT` of them, or, with 0, one after the other for ever.
    pub fn clients(&self) -> Clients {
        Clients { count: self.count, served: 0, failed: 0 }
    }
}

/// How many clients a server has served, and with how many of them it failed.
pub struct Clients {
    count: u32,
    served: u32,
    failed: u32,
}

impl Clients {
    /// Is another client to be served?
    pub fn more(&self) -> bool {
        self.count == 0 || self.served < self.count
    }

    /// One more is served. If that failed, the log says which client it was, which stage began last, and why.
    #[track_caller]
    pub fn note(&mut self, from: String, outcome: Result<()>) {
        self.served = self.served.saturating_add(1);
        if let Err(error) = outcome {
            self.failed += 1;
            let stage = narrate::last_stage();
            narrate::failed(&format!("client {} from {from}, last stage {stage}: {error}", self.served));
        }
    }

    /// How it all went: an error if the server failed with a client.
    ///
    /// # Errors
    /// `Error::Content`, with their number, if the server failed with any client.
    pub fn result(&self) -> Result<()> {
        let what = format!("{} of {} clients could not be served", self.failed, self.served);
        match self.failed {
            0 => Ok(()),
            _ => Err(Error::content(what, "The lines with ERR before this one say which, and why")),
        }
    }
}

/// Runs a lesson's `main`: reads the command line, starts the log, runs one side, and reports how it ended.
pub fn run(
    lesson: &'static str,
    about: &'static str,
    options: &[Opt],
    server: fn(&Args) -> Result<()>,
    client: fn(&Args) -> Result<()>,
) -> ExitCode {
    run_with_log(narrate::ALL, lesson, about, options, server, client)
}

/// The same, with only this part of the log unless `RUST_LOG` is set. `"SLOW"` costs nothing on the fast path.
pub fn run_with_log(
    log: &str,
    lesson: &'static str,
    about: &'static str,
    options: &[Opt],
    server: fn(&Args) -> Result<()>,
    client: fn(&Args) -> Result<()>,
) -> ExitCode {
    let mut command = opt::command(lesson, about, options);
    let words: Vec<OsString> = std::env::args_os().collect();
    let matches = match command.try_get_matches_from_mut(&words) {
        Ok(matches) => matches,
        Err(error) => {
            let _ = error.print();
            if error.use_stderr() {
                eprint!("{}", options_of(&mut command, &words));
            }
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let Some((role, matches)) = matches.subcommand() else {
        return ExitCode::from(2);
    };
    narrate::start(log);
    let args = read(matches, options);
    let result = if role == "server" { server(&args) } else { client(&args) };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            narrate::failed(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn read(matches: &ArgMatches, options: &[Opt]) -> Args {
    // try_get_one gives None for an option that this side doesn't have, instead of an error.
    let count = matches.try_get_one("count").ok().flatten().copied().unwrap_or(1);
    match matches.get_one::<u64>("timeout") {
        Some(seconds) => deadline::set(Duration::from_secs(*seconds)),
        None if count == 0 => deadline::wait_for_ever_for_a_knock(),
        None => {}
    }
    narrate::show_only(matches.get_many("stages").unwrap_or_default().cloned().collect());
    let text = |name| matches.try_get_one::<String>(name).ok().flatten().cloned();
    let number = |name| matches.try_get_one(name).ok().flatten().copied();
    let flag = |name: &&str| matches.try_get_one::<bool>(name).ok().flatten() == Some(&true);
    Args {
        address: text("address").unwrap_or_default(),
        port: matches.get_one("port").copied().unwrap_or(PORT),
        count,
        texts: options.iter().filter_map(|option| Some((option.name, text(option.name)?))).collect(),
        numbers: options.iter().filter_map(|option| Some((option.name, number(option.name)?))).collect(),
        flags: options.iter().map(|option| option.name).filter(flag).collect(),
    }
}

/// The options of the side that a command line names, so that somebody who has misspelled one sees their names.
fn options_of(command: &mut Command, words: &[OsString]) -> String {
    let side = words.get(1).and_then(|side| command.find_subcommand_mut(side));
    side.map_or(String::new(), |side| format!("\n{}", side.render_help()))
}

#[cfg(test)]
mod tests;

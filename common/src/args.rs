//! The command line: `lesson-NN server …` and `lesson-NN client -a ADDR …`, and what a program's end looks like.
//!
//! Address, port, time-out, number of clients and `--stages` are here; all else is a lesson's own [`Opt`].
//! Exit status: 0 done, 1 failed, 2 wrong usage.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::{value_parser, Arg, ArgAction, ArgMatches, Command};

use crate::error::{Error, Result};
use crate::{deadline, narrate};

/// The port that all lessons use unless -p says otherwise (rping's too).
pub const PORT: u16 = 7471;

/// An option that a lesson offers.
#[derive(Debug, Clone, Copy)]
pub struct Opt {
    name: &'static str,
    short: Option<char>,
    takes: Takes,
    side: Side,
    help: &'static str,
}

impl Opt {
    /// An option that takes one of some words; the first unless another is given.
    pub const fn choice(side: Side, name: &'static str, words: &'static [&'static str], help: &'static str) -> Self {
        Self { name, short: None, takes: Takes::OneOf(words), side, help }
    }

    /// An option that takes a text; this one unless another is given.
    pub const fn text(side: Side, name: &'static str, default: &'static str, help: &'static str) -> Self {
        Self { name, short: None, takes: Takes::Text(default), side, help }
    }

    /// An option that takes a number from 1 on, in place of the text of the option `instead`.
    pub const fn number(side: Side, name: &'static str, instead: &'static str, help: &'static str) -> Self {
        Self { name, short: None, takes: Takes::NumberInPlaceOf(instead), side, help }
    }

    /// An option that takes a number; this one, in decimal, unless another is given.
    pub const fn number_or(side: Side, name: &'static str, default: &'static str, help: &'static str) -> Self {
        Self { name, short: None, takes: Takes::Number(default), side, help }
    }

    /// An option that takes nothing: it is there, or not.
    pub const fn flag(side: Side, name: &'static str, help: &'static str) -> Self {
        Self { name, short: None, takes: Takes::Nothing, side, help }
    }

    /// The same with a letter.
    pub const fn short(self, letter: char) -> Self {
        Self { short: Some(letter), ..self }
    }
}

#[derive(Debug, Clone, Copy)]
enum Takes {
    OneOf(&'static [&'static str]),
    Text(&'static str),
    NumberInPlaceOf(&'static str),
    Number(&'static str),
    Nothing,
}

/// Who has an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Both sides.
    Both,
    /// The server alone.
    Server,
    /// The client alone.
    Client,
}

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

/// How many clients a server has served, and how many of them in vain.
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

    /// How it all went: an error if a client was served in vain.
    ///
    /// # Errors
    /// `Error::Content`, with how many of them, if a client was served in vain.
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
    let mut command = command(lesson, about, options);
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
    narrate::start();
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

fn command(lesson: &'static str, about: &'static str, options: &[Opt]) -> Command {
    let of = |side| options.iter().filter(move |option| option.side == side || option.side == Side::Both).map(argument);
    let count = Arg::new("count")
        .short('n')
        .value_name("COUNT")
        .default_value("1")
        .value_parser(value_parser!(u32))
        .help("Clients to serve, one after the other, whether well or in vain; 0: no end");
    let server = Command::new("server")
        .about("Waits for clients")
        .arg(address().default_value("::").help("The local address or host name to listen on; :: is all, IPv4 too"))
        .arg(count)
        .args(common())
        .args(of(Side::Server));
    let client = Command::new("client")
        .about("Connects to a server")
        .arg(address().required(true).help("The server's address or host name"))
        .args(common())
        .args(of(Side::Client));
    Command::new(lesson)
        .about(about)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(server)
        .subcommand(client)
}

fn address() -> Arg {
    Arg::new("address").short('a').long("address").value_name("ADDR")
}

fn common() -> [Arg; 3] {
    let port = Arg::new("port")
        .short('p')
        .long("port")
        .value_name("PORT")
        .default_value(PORT.to_string())
        .value_parser(value_parser!(u16).range(1..))
        .help("Port of the RDMA connection manager, or, in lessons without it, of TCP");
    let timeout = Arg::new("timeout")
        .long("timeout")
        .value_name("SECONDS")
        .value_parser(value_parser!(u64).range(1..=86_400))
        .help("Deadline of every wait [default: 10; a server waits 600 for its next client, with -n 0 for ever]");
    let stages = Arg::new("stages")
        .long("stages")
        .value_name("STAGE,…")
        .value_delimiter(',')
        .help("Log only these stages: the names in the square brackets");
    [port, timeout, stages]
}

fn argument(option: &Opt) -> Arg {
    let arg = Arg::new(option.name).long(option.name).help(option.help);
    let arg = option.short.into_iter().fold(arg, Arg::short);
    match option.takes {
        Takes::OneOf(words) => arg.value_name("WAY").default_value(words[0]).value_parser(words.to_vec()),
        Takes::Text(default) => arg.value_name("TEXT").default_value(default).value_parser(non_empty),
        Takes::NumberInPlaceOf(text) => {
            arg.value_name("NUMBER").value_parser(value_parser!(u32).range(1..)).conflicts_with(text)
        }
        Takes::Number(default) => arg.value_name("NUMBER").default_value(default).value_parser(value_parser!(u32)),
        Takes::Nothing => arg.action(ArgAction::SetTrue),
    }
}

fn non_empty(text: &str) -> std::result::Result<String, String> {
    match text {
        "" => Err("an empty text will not do".into()),
        text => Ok(text.into()),
    }
}

fn read(matches: &ArgMatches, options: &[Opt]) -> Args {
    // try_get_one: an option that this side does not have is no error, but None.
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

/// The options of the side that a command line names: who has misspelled one sees how they are called.
fn options_of(command: &mut Command, words: &[OsString]) -> String {
    let side = words.get(1).and_then(|side| command.find_subcommand_mut(side));
    side.map_or(String::new(), |side| format!("\n{}", side.render_help()))
}

#[cfg(test)]
mod tests;

//! What a command line may contain: the options that all lessons have, and those that one lesson offers.

use clap::{value_parser, Arg, ArgAction, Command};

use super::PORT;

/// An option that a lesson offers.
#[derive(Debug, Clone, Copy)]
pub struct Opt {
    pub(super) name: &'static str,
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

/// The whole command line of a program: both sides, each with its options.
pub(super) fn command(lesson: &'static str, about: &'static str, options: &[Opt]) -> Command {
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

//! The command line: `lesson-NN server …` and `lesson-NN client -a ADDR …`, and what a program's end looks like.
//!
//! Exit status: 0 done, 1 failed, 2 wrong usage.

use std::process::ExitCode;
use std::time::Duration;

use clap::{value_parser, Arg, ArgAction, ArgMatches, Command};

use crate::error::Result;
use crate::{deadline, narrate};

/// The port that all lessons use unless -p says otherwise (rping's too).
pub const PORT: u16 = 7471;

/// What a lesson offers beyond address, port and time-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    /// `--metadata`, on both sides.
    Metadata,
    /// `-s` and `--len`, on the client.
    Payload,
    /// `-m`, on both sides.
    Mode,
    /// `--closer` on both sides, and `--forget-established` on the server.
    Flush,
}

/// How the server's metadata travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MetadataBy {
    /// In a SEND, after the client's SEND.
    #[default]
    Send,
    /// In the private data of the REP.
    PrivateData,
}

/// Which one-sided operation both sides use (lesson 06 on).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Each WRITEs into the other's memory.
    #[default]
    Write,
    /// Each READs the other's memory.
    Read,
}

/// Which side hangs up first (lesson 07).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Closer {
    /// The client.
    #[default]
    Client,
    /// The server.
    Server,
}

/// What the user asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Args {
    /// A host name or address: the server's own, or the server to connect to.
    pub address: String,
    /// The RDMA-CM port.
    pub port: u16,
    /// How the server's metadata travels.
    pub metadata: MetadataBy,
    /// Which one-sided operation is used.
    pub mode: Mode,
    /// Which side hangs up first.
    pub closer: Closer,
    /// The server takes ESTABLISHED for an unknown event.
    pub forget_established: bool,
    count: u32,
    text: String,
    len: Option<usize>,
}

impl Args {
    /// The clients that the server serves: `-n COUNT` of them, or, with 0, one after the other until one of them fails.
    pub fn clients(&self) -> impl Iterator<Item = u32> {
        let count = self.count;
        (1..=u32::MAX).take_while(move |client| count == 0 || *client <= count)
    }

    /// What the client writes: the text of `-s`, or the `--len` bytes of a pattern.
    pub fn payload(&self) -> Vec<u8> {
        match self.len {
            // 251 is prime: a piece in a wrong place never looks right, as it could with 256.
            Some(len) => (0..len).map(|i| (i % 251) as u8).collect(),
            None => self.text.clone().into_bytes(),
        }
    }
}

/// Runs a lesson's `main`: reads the command line, starts the log, runs one side, and reports how it ended.
pub fn run(
    lesson: &'static str,
    about: &'static str,
    extras: &[Extra],
    server: fn(&Args) -> Result<()>,
    client: fn(&Args) -> Result<()>,
) -> ExitCode {
    let matches = command(lesson, about, extras).get_matches();
    let Some((role, matches)) = matches.subcommand() else {
        return ExitCode::from(2);
    };
    narrate::start();
    let args = read(matches);
    let result = match role {
        "server" => server(&args),
        _ => client(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            narrate::failure(&error.to_string());
            narrate::failure(&format!("the stages so far: {}", narrate::history()));
            ExitCode::FAILURE
        }
    }
}

fn command(lesson: &'static str, about: &'static str, extras: &[Extra]) -> Command {
    let mut server = Command::new("server")
        .about("Waits for clients")
        .arg(address().default_value("::").help("The local address or host name to listen on; :: is all, IPv4 too"))
        .arg(
            Arg::new("count")
                .short('n')
                .value_name("COUNT")
                .default_value("1")
                .value_parser(value_parser!(u32))
                .help("Clients to serve, one after the other; 0: until one of them fails"),
        )
        .args(common());
    let mut client = Command::new("client")
        .about("Connects to a server")
        .arg(address().required(true).help("The server's address or host name"))
        .args(common());
    if extras.contains(&Extra::Metadata) {
        server = server.arg(metadata());
        client = client.arg(metadata());
    }
    if extras.contains(&Extra::Mode) {
        server = server.arg(mode());
        client = client.arg(mode());
    }
    if extras.contains(&Extra::Flush) {
        server = server.arg(closer()).arg(forget_established());
        client = client.arg(closer());
    }
    if extras.contains(&Extra::Payload) {
        client = client.args(payload());
    }
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

fn common() -> [Arg; 2] {
    let port = Arg::new("port")
        .short('p')
        .long("port")
        .value_name("PORT")
        .default_value(PORT.to_string())
        .value_parser(value_parser!(u16).range(1..))
        .help("RDMA-CM port");
    let timeout = Arg::new("timeout")
        .long("timeout")
        .value_name("SECONDS")
        .value_parser(value_parser!(u64).range(1..=86_400))
        .help("Deadline of every wait [default: 10; a server waits 600 for its next client]");
    [port, timeout]
}

fn metadata() -> Arg {
    Arg::new("metadata")
        .long("metadata")
        .value_name("WAY")
        .default_value("send")
        .value_parser(["send", "private-data"])
        .help("How the server's {addr, rkey, len} travels; the same on both sides")
}

fn mode() -> Arg {
    Arg::new("mode")
        .short('m')
        .value_name("MODE")
        .default_value("write")
        .value_parser(["write", "read"])
        .help("Whether each side WRITEs into the other's memory or READs it; the same on both sides")
}

fn closer() -> Arg {
    Arg::new("closer")
        .long("closer")
        .value_name("SIDE")
        .default_value("client")
        .value_parser(["client", "server"])
        .help("Which side hangs up first; the same on both sides")
}

fn forget_established() -> Arg {
    Arg::new("forget-established")
        .long("forget-established")
        .action(ArgAction::SetTrue)
        .help("Take ESTABLISHED for an unknown event and die: the puzzle of this lesson")
}

fn payload() -> [Arg; 2] {
    let text = Arg::new("text")
        .short('s')
        .value_name("TEXT")
        .default_value("One side writes, and the other side's processor never knows.")
        .value_parser(non_empty)
        .help("The text to write");
    let len = Arg::new("len")
        .long("len")
        .value_name("BYTES")
        .value_parser(value_parser!(u32).range(1..))
        .conflicts_with("text")
        .help("Write a pattern of this many bytes instead");
    [text, len]
}

fn non_empty(text: &str) -> std::result::Result<String, String> {
    match text {
        "" => Err("there must be something to write".into()),
        text => Ok(text.into()),
    }
}

fn read(matches: &ArgMatches) -> Args {
    // try_get_one: an option that this lesson does not have is no error, but None.
    let text = |name| matches.try_get_one::<String>(name).ok().flatten().cloned();
    let number = |name| matches.try_get_one::<u32>(name).ok().flatten().copied();
    if let Some(seconds) = matches.get_one::<u64>("timeout") {
        deadline::set(Duration::from_secs(*seconds));
    }
    let count = number("count").unwrap_or(1);
    if count == 0 {
        deadline::wait_for_ever_for_a_knock();
    }
    let metadata = match text("metadata").as_deref() {
        Some("private-data") => MetadataBy::PrivateData,
        _ => MetadataBy::Send,
    };
    let mode = match text("mode").as_deref() {
        Some("read") => Mode::Read,
        _ => Mode::Write,
    };
    let closer = match text("closer").as_deref() {
        Some("server") => Closer::Server,
        _ => Closer::Client,
    };
    Args {
        address: text("address").unwrap_or_default(),
        port: matches.get_one("port").copied().unwrap_or(PORT),
        metadata,
        mode,
        closer,
        forget_established: matches!(matches.try_get_one("forget-established"), Ok(Some(true))),
        count,
        text: text("text").unwrap_or_default(),
        len: number("len").map(|len| len as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Extra; 4] = [Extra::Metadata, Extra::Payload, Extra::Mode, Extra::Flush];

    fn parse(extras: &[Extra], line: &str) -> std::result::Result<Args, clap::Error> {
        let matches = command("lesson-00", "a test", extras).try_get_matches_from(line.split(' '))?;
        Ok(read(matches.subcommand().unwrap().1))
    }

    #[test]
    fn the_command_is_well_formed() {
        command("lesson-00", "a test", &ALL).debug_assert();
    }

    #[test]
    fn defaults() {
        let server = parse(&ALL, "lesson-00 server").unwrap();
        assert_eq!((server.address.as_str(), server.port, server.clients().count()), ("::", 7471, 1));
        let client = parse(&ALL, "lesson-00 client -a server").unwrap();
        assert_eq!((client.address.as_str(), client.metadata), ("server", MetadataBy::Send));
        assert!(client.payload().starts_with(b"One side writes"));
    }

    #[test]
    fn everything_given() {
        let line = "lesson-00 client -a fd47:91::1 -p 7 --metadata private-data --len 253";
        let client = parse(&ALL, line).unwrap();
        assert_eq!((client.port, client.metadata), (7, MetadataBy::PrivateData));
        assert_eq!(client.payload()[249..], [249, 250, 0, 1]);
        let server = parse(&ALL, "lesson-00 server -m read --closer server --forget-established").unwrap();
        assert_eq!((server.mode, server.closer, server.forget_established), (Mode::Read, Closer::Server, true));
        assert_eq!(parse(&ALL, "lesson-00 server -n 3").unwrap().clients().count(), 3);
        assert_eq!(parse(&ALL, "lesson-00 server -n 0").unwrap().clients().take(9).count(), 9);
    }

    #[test]
    fn wrong_usage_exits_with_2() {
        let wrong = [
            "lesson-00",
            "lesson-00 peer",
            "lesson-00 client",
            "lesson-00 client -a x -p 0",
            "lesson-00 client -a x -p 65536",
            "lesson-00 client -a x -s a --len 1",
            "lesson-00 client -a x --len 0",
            "lesson-00 client -a x --timeout 0",
            "lesson-00 server -s a",
            "lesson-00 server --metadata pigeon",
            "lesson-00 server -m both",
            "lesson-00 client -a x --forget-established",
        ];
        for line in wrong {
            assert_eq!(parse(&ALL, line).unwrap_err().exit_code(), 2, "{line}");
        }
    }

    #[test]
    fn a_lesson_has_only_its_own_options() {
        assert!(parse(&[], "lesson-00 client -a x -s a").is_err());
        assert!(parse(&[], "lesson-00 server --metadata send").is_err());
    }
}

//! The command `wire`: reads RoCEv2 captures and explains them.

use clap::{value_parser, Arg, ArgMatches, Command};
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use wire::capture::Reader;
use wire::show::{self, Error};

fn command() -> Command {
    let file = Arg::new("file").value_name("FILE").help("pcap or pcapng file").required(true);
    let packet = Arg::new("packet").long("packet").value_name("N").conflicts_with("format");
    let format = Arg::new("format").long("format").value_parser(["ladder", "tsv"]).default_value("ladder");
    let show = Command::new("show")
        .about("Show a capture: a ladder, one packet byte by byte, or a table")
        .arg(file.value_parser(value_parser!(PathBuf)))
        .arg(packet.value_parser(value_parser!(u64).range(1..)).help("Only this frame, byte by byte"))
        .arg(format.help("A ladder for people, a table for machines"));
    Command::new("wire")
        .about("Read captures of RDMA traffic (RoCEv2)")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(show)
}

fn main() -> ExitCode {
    let matches = command().get_matches();
    let Some(("show", arguments)) = matches.subcommand() else { return ExitCode::from(2) };
    let Some(file) = arguments.get_one::<PathBuf>("file") else { return ExitCode::from(2) };
    match show(file, arguments) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of our output has seen enough: `wire show FILE | head`.
        Err(Error::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wire: {}: {error}", file.display());
            ExitCode::from(2)
        }
    }
}

fn open(file: &Path) -> Result<Reader<File>, Error> {
    let file = File::open(file).map_err(wire::capture::Error::Io)?;
    Ok(Reader::new(file)?)
}

fn show(file: &Path, arguments: &ArgMatches) -> Result<(), Error> {
    let mut reader = open(file)?;
    let mut out = BufWriter::with_capacity(64 << 10, std::io::stdout().lock());
    let format = arguments.get_one::<String>("format").map(String::as_str);
    let result = match (arguments.get_one::<u64>("packet"), format) {
        (Some(&number), _) => show::bytes::write(&mut reader, number, &mut out),
        (None, Some("tsv")) => show::tsv::write(&mut reader, &mut out),
        _ => {
            let clients = show::ladder::clients(&mut open(file)?);
            show::ladder::write(&mut reader, &clients, style(), &mut out)
        }
    };
    // What was read before an error is good, and is shown.
    out.flush()?;
    result
}

/// Colors and the width of the terminal, if there is one.
fn style() -> show::ladder::Style {
    let terminal = std::io::stdout().is_terminal();
    let color = terminal && std::env::var_os("NO_COLOR").map_or(true, |value| value.is_empty());
    let width = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    show::ladder::Style { color, width: width.filter(|_| terminal) }
}

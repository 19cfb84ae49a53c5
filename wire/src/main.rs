//! The command `wire`: reads RoCEv2 captures and explains them.

use clap::{value_parser, Arg, ArgAction, ArgMatches, Command};
use std::fs::File;
use std::io::{BufWriter, IsTerminal, LineWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use wire::capture::Reader;
use wire::compare::{self, Capture};
use wire::lanes::{self, Lanes};
use wire::pcapng::Section;
use wire::show::{self, Error};
use wire::story;

fn command() -> Command {
    let file = Arg::new("file").value_name("FILE").help("pcap or pcapng file").required(true);
    let packet = Arg::new("packet").long("packet").value_name("N").conflicts_with("format");
    let format = Arg::new("format").long("format").value_parser(["lanes", "ladder", "tsv"]);
    let follow = Arg::new("follow").long("follow").action(ArgAction::SetTrue).conflicts_with_all(["packet", "format"]);
    let show = Command::new("show")
        .about("Show a capture or a run: lanes or a ladder, one packet byte by byte, or a table")
        .arg(file.value_parser(value_parser!(PathBuf)))
        .arg(
            packet
                .value_parser(value_parser!(show::bytes::Which))
                .help("Only this frame, or a step's first, as step8, byte by byte"),
        )
        .arg(format.help(
            "Lanes with the log lines (of a run, unless told otherwise), a ladder of the packets, a table for machines",
        ))
        .arg(follow.help("Draw the lanes of a run while it happens, until its end or Ctrl-C"));
    Command::new("wire")
        .about("Read captures of RDMA traffic (RoCEv2)")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(show)
        .subcommand(annotate_command())
        .subcommand(compare_command())
        .subcommand(svg_command())
}

fn annotate_command() -> Command {
    let file = Arg::new("file").value_name("FILE").help("pcap or pcapng file").required(true);
    let story = Arg::new("story").long("story").value_name("NAME").required(true);
    let out = Arg::new("out").short('o').value_name("OUT").value_parser(value_parser!(PathBuf));
    Command::new("annotate")
        .about("Write a capture again, each packet with a comment for Wireshark: the step that it belongs to")
        .arg(file.value_parser(value_parser!(PathBuf)))
        .arg(story.help("A lesson's number, as 04, or one of its variants, as 04-multi-packet"))
        .arg(out.help("The new file; without this, FILE with -annotated.pcapng at its end"))
}

fn compare_command() -> Command {
    let file = |id, name| Arg::new(id).value_name(name).required(true).value_parser(value_parser!(PathBuf));
    Command::new("compare")
        .about("Say whether a capture tells the same story as another one, and if not, why")
        .after_help("Exit status: 0 the same story, 1 a different one, 2 a capture that cannot be judged")
        .arg(file("file", "MINE").help("Your capture"))
        .arg(file("reference", "REFERENCE").help("The capture to compare it with, for example that of a lesson"))
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON, for tools"))
}

fn svg_command() -> Command {
    let file = Arg::new("file").value_name("FILE").help("pcap or pcapng file").required(true);
    Command::new("svg")
        .about("Draw a picture to standard output: the lanes of a run, or the ladder of a capture")
        .arg(file.value_parser(value_parser!(PathBuf)))
        .arg(Arg::new("ladder").long("ladder").action(ArgAction::SetTrue).help("The ladder of a run, too"))
}

fn main() -> ExitCode {
    let matches = command().get_matches();
    let Some((name, arguments)) = matches.subcommand() else { return ExitCode::from(2) };
    let Some(file) = arguments.get_one::<PathBuf>("file") else { return ExitCode::from(2) };
    match name {
        "annotate" => return annotate(file, arguments),
        "compare" => return compare(file, arguments),
        _ => {}
    }
    let result = match name {
        "svg" => svg(file, arguments.get_flag("ladder")),
        _ => show(file, arguments),
    };
    match result {
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
    let mut out = BufWriter::with_capacity(64 << 10, std::io::stdout().lock());
    let format = arguments.get_one::<String>("format").map(String::as_str);
    let result = match (arguments.get_one("packet"), format) {
        (Some(&which), _) => show::bytes::write(&mut open(file)?, which, &mut out),
        (None, Some("tsv")) => show::tsv::write(&mut open(file)?, &mut out),
        (None, Some("ladder")) => ladder(file, &mut out),
        (None, None) if arguments.get_flag("follow") => draw(open_growing, file, &mut LineWriter::new(out.get_mut())),
        (None, None) if lanes::nodes(&mut open(file)?).is_none() => ladder(file, &mut out),
        _ => draw(open, file, &mut out),
    };
    // What was read before an error is good, and is shown.
    out.flush()?;
    result
}

fn ladder(file: &Path, out: &mut impl Write) -> Result<(), Error> {
    let clients = show::row::clients(&mut open(file)?);
    show::ladder::write(&mut open(file)?, clients, style(), out)
}

/// Draws lanes; `open` is called twice.
fn draw<R: Read>(
    open: impl Fn(&Path) -> Result<Reader<R>, Error>,
    file: &Path,
    out: &mut impl Write,
) -> Result<(), Error> {
    let nodes = lanes::nodes(&mut open(file)?).unwrap_or_default();
    let show::ladder::Style { color, width } = style();
    let style = lanes::Style { color, width: width.unwrap_or(lanes::Style::FILE.width) };
    lanes::write(&mut open(file)?, Lanes::new(&nodes, style), out)
}

fn open_growing(file: &Path) -> Result<Reader<Growing>, Error> {
    let file = File::open(file).map_err(wire::capture::Error::Io)?;
    Ok(Reader::new(Growing(file))?)
}

/// A file that somebody still writes: at its end there will be more.
struct Growing(File);

impl Read for Growing {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            match self.0.read(buffer)? {
                0 => std::thread::sleep(Duration::from_millis(50)),
                count => return Ok(count),
            }
        }
    }
}

fn svg(file: &Path, ladder: bool) -> Result<(), Error> {
    let run = std::fs::read(file).map_err(wire::capture::Error::Io)?;
    let (picture, _) = match ladder || lanes::nodes(&mut open(file)?).is_none() {
        true => lanes::ladder(&run)?,
        false => lanes::picture(&run, 0..=u64::MAX)?,
    };
    Ok(std::io::stdout().lock().write_all(picture.as_bytes())?)
}

/// Colors and the width of the terminal, if there is one.
fn style() -> show::ladder::Style {
    let terminal = std::io::stdout().is_terminal();
    let color = terminal && std::env::var_os("NO_COLOR").map_or(true, |value| value.is_empty());
    let width = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    show::ladder::Style { color, width: width.filter(|_| terminal) }
}

/// Exit status 0: every RoCE packet has its step; 1: some have none; 2: no new file.
fn annotate(file: &Path, arguments: &ArgMatches) -> ExitCode {
    match try_annotate(file, arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(what) => {
            eprintln!("wire: {what}");
            ExitCode::from(2)
        }
    }
}

fn try_annotate(file: &Path, arguments: &ArgMatches) -> Result<bool, String> {
    let name = arguments.get_one::<String>("story").map(String::as_str).unwrap_or_default();
    let story = story::named(name).map_err(|error| error.to_string())?;
    let out = match arguments.get_one::<PathBuf>("out") {
        Some(out) => out.clone(),
        None => {
            file.with_file_name(format!("{}-annotated.pcapng", file.file_stem().unwrap_or_default().to_string_lossy()))
        }
    };
    let about = format!("Lesson {}: {}", story.short_name(), story.about);
    let section = Section { comment: Some(&about), application: Some("wire annotate"), ..Section::default() };
    let mut reader = open(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let annotated = wire::annotate::annotate(&mut reader, &story, &section)
        .map_err(|error| format!("{}: {error}", file.display()))?;
    std::fs::write(&out, &annotated.file).map_err(|error| format!("cannot write {}: {error}", out.display()))?;
    for unexpected in &annotated.unexpected {
        println!("{unexpected}");
    }
    let count: usize = annotated.packets.iter().sum();
    println!(
        "{}: {count} packets of the story {}, {} others",
        out.display(),
        story.short_name(),
        annotated.unexpected.len()
    );
    Ok(annotated.unexpected.is_empty())
}

/// Compares two captures and prints what was found; the exit status tells the verdict.
fn compare(mine: &Path, arguments: &ArgMatches) -> ExitCode {
    let Some(reference) = arguments.get_one::<PathBuf>("reference") else { return ExitCode::from(2) };
    let load = |file: &Path| -> Result<Capture, String> {
        let capture = open(file).and_then(|mut reader| Ok(Capture::read(&mut reader)?));
        capture.map_err(|error| format!("wire: {}: {error}", file.display()))
    };
    let report = match (load(mine), load(reference)) {
        (Ok(mine), Ok(reference)) => compare::compare(&mine, &reference),
        (Err(error), _) | (_, Err(error)) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let text = match arguments.get_flag("json") {
        true => format!("{:#}\n", report.to_json()),
        false => report.to_string(),
    };
    // Whoever closes the pipe early still gets the verdict.
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::from(report.verdict() as u8)
}

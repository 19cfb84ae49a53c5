//! The command `wire`: reads RoCEv2 captures and explains them.

use clap::{value_parser, Arg, ArgAction, ArgMatches, Command};
use run::capture::{Error, Reader};
use run::lanes::{self, Lanes};
use run::look::Style;
use run::pcapng::Section;
use run::story;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, IsTerminal, LineWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use wire::compare::{self, Capture};
use wire::play::{self, Lesson};
use wire::show;

fn command() -> Command {
    let path =
        |id, name, help| Arg::new(id).value_name(name).help(help).required(true).value_parser(value_parser!(PathBuf));
    let file = || path("file", "FILE", "pcap or pcapng file");
    let option = |name| Arg::new(name).long(name);
    let flag = |name, help| option(name).action(ArgAction::SetTrue).help(help);
    let show = Command::new("show")
        .about("Show a capture or a run: lanes or a ladder, one packet byte by byte, or a table")
        .arg(file())
        .arg(
            option("packet")
                .value_name("N")
                .conflicts_with("format")
                .value_parser(value_parser!(show::bytes::Which))
                .help("Only this frame, or a step's first, as step8, byte by byte"),
        )
        .arg(option("format").value_parser(["lanes", "ladder", "tsv"]).help(
            "Lanes with the log lines (of a run, unless told otherwise), a ladder of the packets, a table for machines",
        ))
        .arg(
            flag("follow", "Draw the lanes of a run while it happens, until its end or Ctrl-C")
                .conflicts_with_all(["packet", "format"]),
        );
    let story = option("story").value_name("NAME").required(true);
    let out = Arg::new("out").short('o').value_name("OUT").value_parser(value_parser!(PathBuf));
    let annotate = Command::new("annotate")
        .about("Write a capture again, each packet with a comment for Wireshark: the step that it belongs to")
        .after_help("Exit status: 0 every RoCE packet has its step, 1 some have none, 2 no new file")
        .arg(file())
        .arg(story.help("A lesson's number, as 04, or one of its variants, as 04-multi-packet"))
        .arg(out.help("The new file; without this, FILE with -annotated.pcapng at its end"));
    let compare = Command::new("compare")
        .about("Say whether a capture tells the same story as another one, and if not, why")
        .after_help("Exit status: 0 the same story, 1 a different one, 2 a capture that cannot be judged")
        .arg(path("file", "MINE", "Your capture"))
        .arg(path("reference", "REFERENCE", "The capture to compare it with, for example that of a lesson"))
        .arg(flag("json", "Print JSON, for tools"));
    let svg = Command::new("svg")
        .about("Draw a picture to standard output: the lanes of a run, or the ladder of a capture")
        .arg(file())
        .arg(flag("ladder", "The ladder of a run, too"));
    let lesson = option("lesson").value_name("DIR").value_parser(value_parser!(PathBuf));
    let play = Command::new("play")
        .about("Write a web page that plays a run, or any capture, event by event; it needs nothing beside itself")
        .arg(file())
        .arg(lesson.help("The lesson that was run, as lessons/04_rdma_write: then the page shows its code, too"))
        .arg(flag("data", "Only the run as JSON, for a page that has the player"))
        .arg(
            Arg::new("out")
                .short('o')
                .value_name("OUT")
                .value_parser(value_parser!(PathBuf))
                .help("The new file; without this, FILE with .html or .json at its end, in the working directory"),
        );
    Command::new("wire")
        .about("Read captures of RDMA traffic (RoCEv2)")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([show, annotate, compare, svg, play])
}

fn main() -> ExitCode {
    let matches = command().get_matches();
    let Some((name, arguments)) = matches.subcommand() else { return ExitCode::from(2) };
    let Some(file) = arguments.get_one::<PathBuf>("file") else { return ExitCode::from(2) };
    let result = match name {
        "annotate" => annotate(file, arguments),
        "compare" => compare(file, arguments),
        "play" => play(file, arguments).map(|()| 0),
        "svg" => svg(file, arguments.get_flag("ladder")).map(|()| 0).map_err(in_file(file)),
        _ => show(file, arguments).map(|()| 0).map_err(in_file(file)),
    };
    match result {
        Ok(status) => ExitCode::from(status),
        // The reader of our output has seen enough: `wire show FILE | head`.
        Err((_, Error::Output(error))) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err((file, error)) => {
            eprintln!("wire: {}: {error}", file.display());
            ExitCode::from(2)
        }
    }
}

/// Whose error it is.
fn in_file<E: Into<Error>>(file: &Path) -> impl Fn(E) -> (PathBuf, Error) + '_ {
    |error| (file.to_owned(), error.into())
}

fn open(file: &Path, follow: bool) -> Result<Reader<Input>, Error> {
    let file = File::open(file).map_err(Error::Input)?;
    Reader::new(Input { file, follow })
}

/// A file; if somebody still writes it, at its end there will be more.
struct Input {
    file: File,
    follow: bool,
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            match self.file.read(buffer)? {
                0 if self.follow => std::thread::sleep(Duration::from_millis(50)),
                count => return Ok(count),
            }
        }
    }
}

fn show(file: &Path, arguments: &ArgMatches) -> Result<(), Error> {
    let mut out = BufWriter::with_capacity(64 << 10, std::io::stdout().lock());
    let format = arguments.get_one::<String>("format").map(String::as_str);
    let result = match (arguments.get_one("packet"), format) {
        (Some(&which), _) => show::bytes::write(&mut open(file, false)?, which, &mut out),
        (None, Some("tsv")) => show::tsv::write(&mut open(file, false)?, &mut out),
        (None, Some("ladder")) => ladder(file, &mut out),
        (None, None) if arguments.get_flag("follow") => draw(file, true, &mut LineWriter::new(out.get_mut())),
        (None, None) if lanes::nodes(&mut open(file, false)?).is_none() => ladder(file, &mut out),
        _ => draw(file, false, &mut out),
    };
    // What was read before an error is good, and is shown.
    out.flush()?;
    result
}

fn ladder(file: &Path, out: &mut impl Write) -> Result<(), Error> {
    let clients = run::row::clients(&mut open(file, false)?);
    // A file, or another program, gets whole lines.
    let whole = Style { width: usize::MAX, ..Style::FILE };
    let style = if std::io::stdout().is_terminal() { Style::of_output() } else { whole };
    show::ladder::write(&mut open(file, false)?, clients, style, out)
}

fn draw(file: &Path, follow: bool, out: &mut impl Write) -> Result<(), Error> {
    let nodes = lanes::nodes(&mut open(file, follow)?).unwrap_or_default();
    lanes::write(&mut open(file, follow)?, Lanes::new(&nodes, Style::of_output()), out)
}

fn svg(file: &Path, ladder: bool) -> Result<(), Error> {
    let run = std::fs::read(file).map_err(Error::Input)?;
    let ladder = ladder || lanes::nodes(&mut Reader::new(run.as_slice())?).is_none();
    let (picture, _) = if ladder { lanes::ladder(&run)? } else { lanes::picture(&run, 0..=u64::MAX)? };
    Ok(std::io::stdout().lock().write_all(picture.as_bytes())?)
}

/// Writes the page and says where it is.
fn play(file: &Path, arguments: &ArgMatches) -> Result<(), (PathBuf, Error)> {
    let lesson = arguments.get_one::<PathBuf>("lesson");
    let lesson = lesson.map(|folder| Lesson::read(folder).map_err(in_file(folder))).transpose()?;
    let capture = std::fs::read(file).map_err(|error| (file.to_owned(), Error::Input(error)))?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let run = play::run(&capture, &name, lesson.as_ref()).map_err(in_file(file))?;
    let (text, extension) = match arguments.get_flag("data") {
        true => (run.json(), "json"),
        false => (play::page::page(&run, &play::page::ladder(&capture)), "html"),
    };
    let beside = PathBuf::from(format!("{name}.{extension}"));
    let out = arguments.get_one("out").cloned().unwrap_or(beside);
    std::fs::write(&out, text).map_err(in_file(&out))?;
    let _ = writeln!(std::io::stdout(), "{}", out.display());
    Ok(())
}

/// Exit status 0: every RoCE packet has its step; 1: some have none.
fn annotate(file: &Path, arguments: &ArgMatches) -> Result<u8, (PathBuf, Error)> {
    let name = arguments.get_one::<String>("story").map(String::as_str).unwrap_or_default();
    let story = story::named(name).map_err(|error| (file.to_owned(), Error::Unfit(error.to_string())))?;
    let beside = format!("{}-annotated.pcapng", file.file_stem().unwrap_or_default().to_string_lossy());
    let out = arguments.get_one("out").cloned().unwrap_or_else(|| file.with_file_name(beside));
    let about = format!("Lesson {}: {}", story.short_name(), story.about);
    let section = Section { comment: Some(&about), application: Some("wire annotate"), ..Section::default() };
    let annotated = open(file, false).and_then(|mut reader| wire::annotate::annotate(&mut reader, &story, &section));
    let annotated = annotated.map_err(in_file(file))?;
    std::fs::write(&out, &annotated.file).map_err(in_file(&out))?;
    for unexpected in &annotated.unexpected {
        println!("{unexpected}");
    }
    let (count, others) = (annotated.packets.iter().sum::<usize>(), annotated.unexpected.len());
    println!("{}: {count} packets of the story {}, {others} others", out.display(), story.short_name());
    Ok(u8::from(others > 0))
}

/// Compares two captures and prints what was found; the exit status tells the verdict.
fn compare(mine: &Path, arguments: &ArgMatches) -> Result<u8, (PathBuf, Error)> {
    let reference = arguments.get_one::<PathBuf>("reference").map_or(mine, PathBuf::as_path);
    let load = |file| open(file, false).and_then(|mut reader| Capture::read(&mut reader)).map_err(in_file(file));
    let report = compare::compare(&load(mine)?, &load(reference)?);
    let text = if arguments.get_flag("json") { format!("{:#}\n", report.to_json()) } else { report.to_string() };
    // Whoever closes the pipe early still gets the verdict.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(report.verdict() as u8)
}

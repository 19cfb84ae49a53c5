//! The command `wire`: reads RoCEv2 captures and explains them.

mod source;

use clap::{Parser, Subcommand, ValueEnum};
use run::capture::{Error, Events, Reader};
use run::lanes::{self, Lanes};
use run::look::Style;
use run::pcapng::Section;
use run::plot;
use run::story;
use source::Source;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, LineWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use wire::compare::{self, Capture, Verdict};
use wire::play::{self, Lesson};
use wire::show;

/// Read captures of RDMA traffic (RoCEv2)
#[derive(Parser)]
#[command(arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show a capture or a run: lanes or a ladder, one packet byte by byte, or a table
    Show {
        /// pcap or pcapng file, perhaps compressed by gzip, zstd or lz4; - is standard input
        file: PathBuf,
        /// Show only this frame, or the first frame of a step like step8, byte by byte
        #[arg(long, value_name = "N", conflicts_with = "format")]
        packet: Option<show::bytes::Which>,
        /// Lanes with the log lines (the default for a run), a ladder of the packets, a table for machines, or a plot of what
        /// waits in a switch, rates and pauses over time
        #[arg(long)]
        format: Option<Format>,
        /// Draw the lanes of a run while it happens, until its end or Ctrl-C
        #[arg(long, conflicts_with_all = ["packet", "format"])]
        follow: bool,
    },
    /// Write a capture again, each packet with a comment for Wireshark: the step that it belongs to
    #[command(after_help = "Exit status: 0 every RoCE packet has its step, 1 some have none, 2 no new file")]
    Annotate {
        /// pcap or pcapng file, perhaps compressed by gzip, zstd or lz4; - is standard input
        file: PathBuf,
        /// A lesson's number, like 04, or one of its variants, like 04-multi-packet
        #[arg(long, value_name = "NAME")]
        story: String,
        /// The new file; without it, FILE with -annotated.pcapng at its end
        #[arg(short, value_name = "OUT")]
        out: Option<PathBuf>,
    },
    /// Say whether a capture tells the same story as another one, and if not, why
    #[command(
        after_help = "Exit status: 0 compared, 2 a capture that cannot be judged; with --exit-code 1 a different story"
    )]
    Compare {
        /// Your capture; - is standard input, for one of the two
        mine: PathBuf,
        /// The capture to compare it with, for example that of a lesson
        reference: PathBuf,
        /// The reference is a lesson's capture; use the variant with the same options as your run
        #[arg(long)]
        variant: bool,
        /// Exit with 1 if the story is a different one, as `git diff --exit-code` does
        #[arg(long)]
        exit_code: bool,
        /// Print JSON, for tools
        #[arg(long)]
        json: bool,
    },
    /// Say what went wrong in a capture, in sentences that name their frames
    #[command(
        after_help = "Exit status: 0 nothing went wrong, 1 something did, 2 not one packet could be judged, or the file can't be read"
    )]
    Explain {
        /// pcap or pcapng file, perhaps compressed by gzip, zstd or lz4; - is standard input
        file: PathBuf,
        /// Print JSON, for tools
        #[arg(long)]
        json: bool,
    },
    /// Draw a picture to standard output: the lanes of a run, the ladder of a capture, or a plot
    Svg {
        /// pcap or pcapng file, perhaps compressed by gzip, zstd or lz4; - is standard input
        file: PathBuf,
        /// Draw a ladder, even for a run
        #[arg(long)]
        ladder: bool,
        /// Draw a plot of what waits in a switch, rates and pauses over time
        #[arg(long, conflicts_with = "ladder")]
        plot: bool,
    },
    /// Write a web page that plays a run, or any capture, event by event, in one file
    Play {
        /// pcap or pcapng file, perhaps compressed by gzip, zstd or lz4; - is standard input
        file: PathBuf,
        /// The lesson that was run, like lessons/04_rdma_write; the page then also shows its code
        #[arg(long, value_name = "DIR")]
        lesson: Option<PathBuf>,
        /// Write only the run as JSON, for a page that has the player
        #[arg(long)]
        data: bool,
        /// The new file; without it, FILE with .html or .json at its end, in the working directory
        #[arg(short, value_name = "OUT")]
        out: Option<PathBuf>,
    },
}

/// The most memory, in bytes, that a capture may take to be drawn as a picture.
const MOST_DRAWN: usize = 256 << 20;

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Lanes,
    Ladder,
    Tsv,
    Plot,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Show { file, packet, format, follow } => {
            show(&file, packet, format, follow).map(|()| 0).map_err(in_file(&file))
        }
        Command::Annotate { file, story, out } => annotate(&file, &story, out),
        Command::Compare { mine, reference, variant, exit_code, json } => compare(&mine, &reference, variant, json)
            .map(|verdict| match verdict {
                Verdict::Different if !exit_code => 0,
                verdict => verdict as u8,
            }),
        Command::Explain { file, json } => explain(&file, json).map_err(in_file(&file)),
        Command::Svg { file, ladder, plot } => svg(&file, ladder, plot).map(|()| 0).map_err(in_file(&file)),
        Command::Play { file, lesson, data, out } => play(&file, lesson, data, out).map(|()| 0),
    };
    match result {
        Ok(status) => ExitCode::from(status),
        // The reader of our output has seen enough: `wire show FILE | head`.
        Err(error) if error.downcast_ref().map(io::Error::kind) == Some(ErrorKind::BrokenPipe) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wire: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Adds the file to an error, and says that it was writing if the system reports it.
fn in_file<E: Into<Error>>(file: &Path) -> impl Fn(E) -> Error + '_ {
    |error| {
        let error = error.into();
        let writing = if error.is::<io::Error>() { ": writing failed" } else { "" };
        error.context(format!("{}{writing}", file.display()))
    }
}

fn show(file: &Path, packet: Option<show::bytes::Which>, format: Option<Format>, follow: bool) -> Result<(), Error> {
    let source = if follow { Source::followed(file)? } else { Source::open(file)? };
    let mut out = BufWriter::with_capacity(64 << 10, std::io::stdout().lock());
    let result = match (packet, format) {
        (Some(which), _) => show::bytes::write(&mut source.once()?, which, &mut out),
        (None, Some(Format::Tsv)) => show::tsv::write(&mut source.once()?, &mut out),
        (None, Some(Format::Ladder)) => ladder(&mut source.once()?, &mut out),
        (None, Some(Format::Plot)) => {
            let (seen, read) = plot::read(&mut source.once()?);
            out.write_all(seen.text().as_bytes())?;
            read
        }
        (None, None) if follow => draw(&source, &mut LineWriter::new(out.get_mut())),
        (None, format) => {
            let source = source.kept()?;
            match format.is_none() && lanes::nodes(&mut source.reader()?).is_none() {
                true => ladder(&mut source.reader()?, &mut out),
                false => draw(&source, &mut out),
            }
        }
    };
    // What was read before an error is good, and is shown.
    out.flush()?;
    result
}

fn ladder(reader: &mut Reader<impl Read>, out: &mut impl Write) -> Result<(), Error> {
    // A file, or another program, gets whole lines.
    let whole = Style { width: usize::MAX, ..Style::FILE };
    let style = if std::io::stdout().is_terminal() { Style::of_output() } else { whole };
    show::ladder::write(reader, style, out)
}

fn draw(source: &Source, out: &mut impl Write) -> Result<(), Error> {
    let nodes = lanes::nodes(&mut source.reader()?).unwrap_or_default();
    lanes::write(&mut source.reader()?, Lanes::new(&nodes, Style::of_output()), out)
}

/// Explains a capture. Exit status 0: nothing went wrong; 1: something did; 2: not one packet could be judged.
fn explain(file: &Path, is_json: bool) -> Result<u8, Error> {
    let told = wire::explain::explain(&mut Source::open(file)?.once()?)?;
    let text = if is_json { format!("{:#}\n", told.to_json()) } else { told.text(Style::of_output().width) };
    // Whoever closes the pipe early still gets the verdict.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(told.status())
}

fn svg(file: &Path, ladder: bool, is_plot: bool) -> Result<(), Error> {
    if is_plot {
        let (seen, read) = plot::read(&mut Source::open(file)?.once()?);
        read?;
        return Ok(std::io::stdout().lock().write_all(seen.picture().0.as_bytes())?);
    }
    let run = Events::most(Source::open(file)?.once()?, MOST_DRAWN);
    if run.more() > 0 {
        return Err(Error::msg(
            "it's too large for a picture: cut a part out with `editcap -r`, or look at it with `wire show`",
        ));
    }
    let ladder = ladder || run.nodes().is_none();
    let (picture, _) = if ladder { lanes::ladder(&run)? } else { lanes::picture(&run, 0..=u64::MAX)? };
    Ok(std::io::stdout().lock().write_all(picture.as_bytes())?)
}

/// Writes the page and says where it is.
fn play(file: &Path, lesson: Option<PathBuf>, is_data: bool, out: Option<PathBuf>) -> Result<(), Error> {
    let lesson = lesson.map(|folder| Lesson::read(&folder).map_err(in_file(&folder))).transpose()?;
    let source = Source::open(file).map_err(in_file(file))?;
    let name = source.name().to_owned();
    let beside = source.beside(if is_data { ".json" } else { ".html" });
    let capture = Events::most(source.once().map_err(in_file(file))?, play::MOST_KEPT);
    let run = play::run(&capture, &name, lesson.as_ref());
    let text = match is_data {
        true => run.json(),
        false => play::page::page(&run, &play::page::ladder(&capture)),
    };
    // Beside the capture, as all that is made of one: in the folder where somebody happens to be nobody looks for it.
    let out = out.unwrap_or(beside);
    std::fs::write(&out, text).map_err(in_file(&out))?;
    let out = out.canonicalize().unwrap_or(out);
    let _ = writeln!(std::io::stdout(), "{}{}", out.display(), if is_data { "" } else { ": open it in a browser" });
    Ok(())
}

/// Exit status 0: every RoCE packet has its step; 1: some have none.
fn annotate(file: &Path, story: &str, out: Option<PathBuf>) -> Result<u8, Error> {
    let story = story::named(story).map_err(in_file(file))?;
    let source = Source::open(file).map_err(in_file(file))?;
    let out = out.unwrap_or_else(|| source.beside("-annotated.pcapng"));
    let about = format!("Lesson {}: {}", story.short_name(), story.about);
    let section = Section { comment: Some(&about), application: Some("wire annotate"), ..Section::default() };
    let annotated = source.once().and_then(|mut reader| wire::annotate::annotate(&mut reader, &story, &section));
    let annotated = annotated.map_err(in_file(file))?;
    std::fs::write(&out, &annotated.file).map_err(in_file(&out))?;
    for unexpected in &annotated.unexpected {
        println!("{unexpected}");
    }
    let (count, others) = (annotated.packets.iter().sum::<usize>(), annotated.unexpected.len());
    println!("{}: {count} packets of the story {}, {others} others", out.display(), story.short_name());
    Ok(u8::from(others > 0))
}

/// Compares two captures and prints what was found.
fn compare(mine: &Path, reference: &Path, is_variant: bool, is_json: bool) -> Result<Verdict, Error> {
    source::are_two(mine, reference)?;
    let load = |source: &Source| source.reader().and_then(|mut reader| Capture::read(&mut reader));
    let source = Source::open(mine).and_then(Source::kept).map_err(in_file(mine))?;
    let choice = || source.reader().and_then(|mut reader| compare::variant::choose(&mut reader, reference));
    let (reference, note) = if is_variant { choice().map_err(in_file(mine))? } else { (reference.to_owned(), None) };
    let mine = load(&source).map_err(in_file(mine))?;
    let reference =
        Source::open(&reference).and_then(Source::kept).and_then(|it| load(&it)).map_err(in_file(&reference))?;
    let mut report = compare::compare(&mine, &reference);
    report.notes.extend(note);
    let text = if is_json { format!("{:#}\n", report.to_json()) } else { report.to_string() };
    // Whoever closes the pipe early still gets the verdict.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(report.verdict())
}

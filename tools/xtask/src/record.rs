//! `make record`: runs each lesson and variant in the lab, or on the device if the lab cannot, and keeps the run with its packets and log lines, if it tells the
//! story that the lesson's `steps.toml` promises.

use crate::docs;
use anyhow::{ensure, Context, Result};
use run::capture::Reader;
use run::files::{bytes, output, read, write};
use run::pcapng::Section;
use run::story::{self, proof, Story};
use std::env;
use std::path::PathBuf;
use std::process::Command;

/// The page that says what the captures are recorded with, in a line that begins like this.
const PAGE: &str = "captures/README.md";
const LINE: &str = "Recorded with ";

/// Where a story is run.
struct Runner {
    program: PathBuf,
    /// Where it keeps its runs.
    runs: PathBuf,
    /// What sends its packets.
    os: String,
    hardware: Option<String>,
}

/// The lab, and what it runs.
struct Lab {
    place: Runner,
    /// The machines' kernel, for example `Linux 6.1.0-56-amd64`.
    kernel: String,
    /// For example `rdma-core 44` and `QEMU 7.2.22`.
    rdma_core: String,
    qemu: String,
}

/// The runs of lesson 05 with RDMA inside TCP that are kept, each with its options: a page compares the first with the same lesson's
/// capture, and an exercise asks about the second.
const OVER_TCP: [(&str, &[&str]); 2] = [
    ("captures/over_tcp/05_rdma_read", &[]),
    ("captures/over_tcp/05_rdma_read-lost", &["--client-args=--len 5000", "--wire=drop 2nd \"RDMAP Write\""]),
];
/// What it is called on the command line.
const SIW: &str = "siw";

/// Renews all bundled captures, or those of one lesson, or one, as 04-private-data, or `siw`; then what the documentation shows of them.
pub fn record(lesson: Option<&str>) -> Result<()> {
    if lesson == Some(SIW) {
        return over_tcp();
    }
    let mut recordings = Vec::new();
    let is_chosen = |story: &Story| lesson.map_or(true, |name| [story.number(), &*story.short_name()].contains(&name));
    let stories: Vec<Story> = story::bundled()?.into_iter().filter(is_chosen).collect();
    let lab = if stories.iter().all(|story| story.device) { None } else { Some(Lab::find()?) };
    let device = Runner::device()?;
    for story in &stories {
        let name = story.file_name();
        println!("{name}: {}", story.about);
        let place = lab.as_ref().map(|lab| &lab.place).filter(|_| !story.device).unwrap_or(&device);
        let recording = place.run(story).with_context(|| format!("recording {name}"))?;
        recordings.push((format!("captures/{name}.pcapng"), recording));
    }
    for (file, recording) in &recordings {
        write(file, recording)?;
    }
    if let Some(lab) = lab.filter(|_| lesson.is_none()) {
        lab.tell()?;
    }
    docs::write()
}

/// Renews the runs with RDMA inside TCP. They have no stories to be judged by: their programs must end well, and tests look at their
/// units (`tools/wire/tests/all/iwarp.rs`).
fn over_tcp() -> Result<()> {
    let (program, runs) = program("lab")?;
    for (file, options) in OVER_TCP {
        let name = format!("05-{SIW}");
        let mut command = Command::new(&program);
        command.args(["run", "lesson-05", "--driver=siw", &format!("--name={name}")]).args(options);
        output(command.env("RUST_LOG", "info"))?;
        let capture = bytes(runs.join(name).join("wire.pcapng"))?;
        write(format!("{file}.pcapng"), &capture)?;
    }
    docs::write()
}

impl Lab {
    /// Finds the lab beside this program, and asks one of its machines for its kernel; its libraries are this machine's.
    fn find() -> Result<Lab> {
        let (program, runs) = program("lab")?;
        output(Command::new(&program).args(["exec", "--server", "uname -sr"]))?;
        let kernel = read(runs.join("exec/server.log"))?;
        // The package's version follows that of the library's interface: 1.14.44.0 is rdma-core 44.
        let library = output(Command::new("pkg-config").args(["--modversion", "libibverbs"]))?;
        let rdma_core = library.split('.').nth(2).context("libibverbs does not say its version")?;
        let qemu = output(Command::new(format!("qemu-system-{}", env::consts::ARCH)).arg("--version"))?;
        let qemu = qemu.split_whitespace().nth(3).context("QEMU does not say its version")?;
        let (kernel, rdma_core) = (kernel.trim().to_owned(), format!("rdma-core {rdma_core}"));
        let (os, qemu) = (format!("{kernel} with SoftRoCE (rdma_rxe), {rdma_core}"), format!("QEMU {qemu}"));
        let place = Runner { program, runs, os, hardware: Some(qemu.clone()) };
        Ok(Lab { place, kernel, rdma_core, qemu })
    }

    /// Writes to the page with what all captures have been recorded.
    fn tell(&self) -> Result<()> {
        let text = read(PAGE)?;
        let Lab { kernel, rdma_core, qemu, .. } = self;
        let line = format!("{LINE}{kernel} (SoftRoCE: `rdma_rxe`) on all machines, {rdma_core} and {qemu}.");
        let lines = text.lines().map(|old| if old.starts_with(LINE) { line.as_str() } else { old });
        write(PAGE, lines.flat_map(|line| [line, "\n"]).collect::<String>())
    }
}

/// A program beside this one, and where it keeps its runs.
fn program(name: &str) -> Result<(PathBuf, PathBuf)> {
    let program = env::current_exe()?.with_file_name(name);
    ensure!(program.exists(), "{} does not exist; build it with `cargo build --workspace`", program.display());
    let runs = program.with_file_name("").join(format!("../{name}/runs"));
    Ok((program, runs))
}

impl Runner {
    fn device() -> Result<Runner> {
        let (program, runs) = program("device")?;
        Ok(Runner { program, runs, os: "Linux with the device in user space (tools/device)".into(), hardware: None })
    }

    /// Runs a story; the capture with a comment on each packet.
    fn run(&self, story: &Story) -> Result<Vec<u8>> {
        let output = Command::new(&self.program)
            .args(["run", &format!("lesson-{}", story.number())])
            .env("RUST_LOG", "info")
            .arg(format!("--server-args={}", story.server))
            .arg(format!("--client-args={}", story.client))
            .arg(format!("--clients={}", story.clients))
            .arg(format!("--wire={}", story.wire))
            .output()
            .with_context(|| format!("cannot run {}", self.program.display()))?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.code() == Some(i32::from(story.exit != 0)),
            "{} ended with {}: {}",
            self.program.display(),
            output.status,
            errors.trim()
        );

        let capture = bytes(self.runs.join(story.number()).join("wire.pcapng"))?;
        let problems = proof::problems(story, &capture);
        ensure!(problems.is_empty(), "the run does not tell the story:\n  {}", problems.join("\n  "));
        let about = format!("Lesson {}: {}", story.short_name(), story.about);
        let section = Section {
            comment: Some(&about),
            os: Some(&self.os),
            application: Some("make record"),
            hardware: self.hardware.as_deref(),
        };
        Ok(wire::annotate::annotate(&mut Reader::new(capture.as_slice())?, story, &section)?.file)
    }
}

//! `make record`: runs each lesson and variant in the lab, and keeps the run with its packets and log lines, if it tells the
//! story that the lesson's `steps.toml` promises.

use crate::versions::Versions;
use crate::{block, root, sibling};
use anyhow::{bail, ensure, Context, Result};
use std::fs;
use std::path::Path;
use std::process::Command;
use wire::capture::Reader;
use wire::pcapng::Section;
use wire::story::{self, proof, Story};

/// What is kept of one run.
struct Recording {
    story: Story,
    capture: Vec<u8>,
    packets: usize,
}

/// Renews all bundled captures, or none.
///
/// # Errors
/// A run fails, or does not tell its story.
pub fn record() -> Result<()> {
    let lab = sibling("lab")?;
    let runs = lab.with_file_name("").join("../lab/runs");
    let versions = Versions::find(&lab, &runs)?;
    let mut recordings = Vec::new();
    for story in story::bundled()? {
        println!("{}: {}", story.file_name(), story.about);
        let name = story.file_name();
        recordings.push(run(&lab, &runs, &versions, story).with_context(|| format!("recording {name}"))?);
    }
    let folder = root().join("captures");
    for recording in &recordings {
        let name = recording.story.file_name();
        write(&folder.join(format!("{name}.pcapng")), &recording.capture)?;
    }
    let readme = folder.join("README.md");
    let text = fs::read_to_string(&readme).with_context(|| format!("cannot read {}", readme.display()))?;
    write(&readme, block::replace(&text, "recordings", &table(&recordings, &versions))?.as_bytes())
}

fn write(file: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(file, bytes).with_context(|| format!("cannot write {}", file.display()))
}

fn run(lab: &Path, runs: &Path, versions: &Versions, story: Story) -> Result<Recording> {
    let output = Command::new(lab)
        .args(["run", &format!("lesson-{}", story.number())])
        .arg(format!("--server-args={}", story.server))
        .arg(format!("--client-args={}", story.client))
        .output()
        .context("cannot run the lab")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(i32::from(story.exit != 0)), "the lab's {}: {}", output.status, errors.trim());

    let capture = fs::read(runs.join(story.number()).join("wire.pcapng")).context("the run left no file")?;
    let problems = proof::problems(&story, &capture);
    if !problems.is_empty() {
        bail!("the run does not tell the story:\n  {}", problems.join("\n  "));
    }
    let about = format!("Lesson {}: {}", story.short_name(), story.about);
    let os = format!("{} with SoftRoCE (rdma_rxe), {}", versions.kernel, versions.rdma_core);
    let section = Section {
        comment: Some(&about),
        os: Some(&os),
        application: Some("make record"),
        hardware: Some(&versions.qemu),
    };
    let annotated = wire::annotate::annotate(&mut Reader::new(capture.as_slice())?, &story, &section)?;
    let packets = annotated.packets.iter().sum();
    Ok(Recording { story, capture: annotated.file, packets })
}

/// The generated part of captures/README.md.
fn table(recordings: &[Recording], versions: &Versions) -> String {
    let Versions { kernel, rdma_core, qemu } = versions;
    let mut text =
        format!("Recorded with {kernel} (SoftRoCE: `rdma_rxe`) on both machines, {rdma_core} and {qemu}.\n\n");
    text.push_str("| capture | what it shows | options | RoCE packets |\n|---|---|---|---|\n");
    for Recording { story, packets, .. } in recordings {
        text.push_str(&row(story, *packets));
        text.push('\n');
    }
    text
}

/// One line of that table.
pub fn row(story: &Story, packets: usize) -> String {
    let (name, about) = (story.file_name(), &story.about);
    format!("| [{name}]({name}.pcapng) | {about} | {} | {packets} |", options(story))
}

fn options(story: &Story) -> String {
    let sides = [("server", &story.server), ("client", &story.client)];
    let given = sides.iter().filter(|(_, options)| !options.is_empty());
    given.map(|(side, options)| format!("{side} `{options}`")).collect::<Vec<_>>().join(", ")
}

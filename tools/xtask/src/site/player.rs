//! The player of every bundled run, where a page shows that run's ladder. The runs are scripts, for a page that is opened from a
//! folder may load those, and nothing else.

use super::pages::block;
use crate::docs::drawings::{self, PROTOCOLS};
use crate::docs::sources::files;
use anyhow::{Context, Result};
use run::capture::{Events, Reader};
use run::files::{bytes, name, write};
use run::story;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use wire::play::{self, page, Lesson};

/// What stands for the list of runs on a page of the book's own.
pub const LIST: &str = "<!-- runs -->";

/// What of the player the workbench is made of.
pub const PARTS: &str = "el, isPacket, rightNode, sentence, button, pair, region, Moment, Ladder, Packet";

/// A classic script that adds these names to an object of the page.
pub fn classic(object: &str, script: &str, names: &str) -> String {
    format!(
        "(() => {{\n\"use strict\";\n{script}\nObject.assign((globalThis.{object} ??= {{}}), {{ {names} }});\n}})();\n"
    )
}

/// Writes the player, its look and the runs.
pub fn lay_out(to: &Path) -> Result<()> {
    write(
        to.join("player.js"),
        classic("player", &page::script(), &format!("mount, mountBeside, parts: {{ {PARTS} }}")),
    )?;
    write(to.join("player.css"), page::LOOK)?;
    for story in story::bundled()? {
        let name = story.file_name();
        lay_out_run(to, Some(&lesson(&story.lesson)?), &format!("captures/{name}.pcapng"), &name)?;
    }
    for path in files("captures/changes", ".pcapng")? {
        let file = name(Path::new(&path));
        let change = file.trim_end_matches(".pcapng");
        lay_out_run(to, Some(&lesson(&folder(change)?)?), &path, change)?;
    }
    for folder in ["met", "over_tcp"] {
        for path in files(&format!("captures/{folder}"), ".pcapng")? {
            let file = name(Path::new(&path));
            let run = file.trim_end_matches(".pcapng");
            let of = lesson(run.split('-').next().unwrap_or_default())?;
            lay_out_run(to, Some(&of), &path, &format!("{folder}/{run}"))?;
        }
    }
    for path in files(PROTOCOLS, ".pcapng")? {
        let file = name(Path::new(&path));
        lay_out_run(to, None, &path, &format!("protocols/{}", file.trim_end_matches(".pcapng")))?;
    }
    Ok(())
}

fn lay_out_run(to: &Path, lesson: Option<&Lesson>, path: &str, name: &str) -> Result<()> {
    let run = play::run(&Events::read(&bytes(path)?[..])?, name, lesson);
    let run = format!("((globalThis.player ??= {{}}).runs ??= {{}})[{}] = {};\n", json!(name), run.json());
    write(to.join(format!("runs/{name}.js")), run)
}

fn lesson(name: &str) -> Result<Lesson> {
    Lesson::read(Path::new(&format!("lessons/{name}")))
}

/// The folder of the lesson that a change is of.
pub fn folder(change: &str) -> Result<String> {
    Ok(story::named(change.split('-').next().unwrap_or_default())?.lesson)
}

/// The names of a lesson's changes that have a recorded capture.
pub fn recorded(lesson: &str) -> Result<Vec<String>> {
    let names = files("captures/changes", ".pcapng")?.into_iter();
    let of = |path: String| {
        Some(name(Path::new(&path)).strip_prefix(lesson)?.strip_prefix('-')?.strip_suffix(".pcapng")?.to_owned())
    };
    Ok(names.filter_map(of).collect())
}

/// The run of a change beside the good one, if it was recorded; nothing without JavaScript.
pub fn beside(number: &str, change: &str) -> Result<Vec<String>> {
    let name = format!("{number}-{change}");
    let path = format!("captures/changes/{name}.pcapng");
    if !Path::new(&path).exists() {
        return Ok(Vec::new());
    }
    let good = good(&folder(number)?, &packets(&path)?)?;
    Ok(block(&format!("class=\"beside\" data-run=\"{name}\" data-good=\"{good}\""), ""))
}

/// The bundled run of a lesson that has most nearly the packets of another.
fn good(lesson: &str, changed: &BTreeSet<String>) -> Result<String> {
    let mut all = Vec::new();
    for story in story::bundled()?.iter().filter(|story| story.lesson == lesson) {
        let name = story.file_name();
        let packets = packets(&format!("captures/{name}.pcapng"))?;
        all.push((packets.symmetric_difference(changed).count(), name));
    }
    // Of two that are alike, the first.
    all.into_iter().min_by_key(|(others, _)| *others).map(|(_, name)| name).context("a lesson without a run")
}

/// The names of the packets in a capture.
fn packets(path: &str) -> Result<BTreeSet<String>> {
    let (file, mut names) = (bytes(path)?, BTreeSet::new());
    let mut reader = Reader::new(&file[..])?;
    while let Some(record) = reader.next()? {
        if let Some(packet) = record.packet() {
            names.insert(packet.told().to_string());
        }
    }
    Ok(names)
}

/// A run to be played; without JavaScript, its ladder.
pub fn run(name: &str, ladder: &str) -> Vec<String> {
    block(&format!("class=\"run\" data-run=\"{name}\""), ladder)
}

/// A run, and links to all.
pub fn list() -> Result<String> {
    let first = "04_rdma_write";
    let ladder = drawings::link("play.md", &["ladder", first])?;
    let mut text = run(first, &ladder).join("\n") + "\n\n| run | what it shows |\n|---|---|\n";
    for story in story::bundled()? {
        text += &format!("| [{0}](play.html?run={0}) | {1} |\n", story.file_name(), story.about);
    }
    Ok(text)
}

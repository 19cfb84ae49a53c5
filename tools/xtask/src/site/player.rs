//! The player of every bundled run, where a page shows that run's ladder. The runs are scripts, for a page that is opened from a
//! folder may load those, and nothing else.

use super::pages::block;
use crate::docs::drawings;
use anyhow::Result;
use run::files::{bytes, write};
use run::story;
use serde_json::json;
use std::path::Path;
use wire::play::{self, page, Lesson};

/// What stands for the list of runs on a page of the book's own.
pub const LIST: &str = "<!-- runs -->";

/// Writes the player, its look and the runs.
pub fn lay_out(to: &Path) -> Result<()> {
    let script = page::script();
    write(
        to.join("player.js"),
        format!("(() => {{\n\"use strict\";\n{script}\n(globalThis.player ??= {{}}).mount = mount;\n}})();\n"),
    )?;
    write(to.join("player.css"), page::LOOK)?;
    for story in story::bundled()? {
        let name = story.file_name();
        let lesson = Lesson::read(Path::new(&format!("lessons/{}", story.lesson)))?;
        let run = play::run(&bytes(format!("captures/{name}.pcapng"))?, &name, Some(&lesson))?;
        let run = format!("((globalThis.player ??= {{}}).runs ??= {{}})[{}] = {};\n", json!(name), run.json());
        write(to.join(format!("runs/{name}.js")), run)?;
    }
    Ok(())
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

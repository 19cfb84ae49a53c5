//! The workbench, for a page that has the mark `<!-- workbench: NAME -->`: its scripts and its program, as scripts, for a page that is
//! opened from a folder may load those, and nothing else.

use super::player::{classic, PARTS};
use super::{copy, pages};
use anyhow::Result;
use run::files::{read, write};
use std::path::Path;
use wire::play::page;

const FOLDER: &str = "tools/book/workbench";
/// Its modules, each after those that it imports.
const MODULES: [&str; 12] = [
    "core",
    "schedule",
    "playhead",
    "queues",
    "node",
    "stage",
    "form",
    "actions",
    "editor",
    "challenge",
    "details",
    "workbench",
];
/// What tools/book/program.sh has made of tools/workbench, if there was a compiler.
const PROGRAM: &str = "workbench.js";

/// What a page of the site has that shows one.
pub const CLASS: &str = "class=\"workbench\"";

/// What's read where no script runs, and where there's no program.
const THERE: &str = "*Two NICs that you can touch: they need JavaScript, and run in this page.*";
const MISSING: &str =
    "**The workbench is not in this copy of the book**: where it was built, there was no compiler for WebAssembly.";

/// A page's text; without the program its workbench says that it's missing.
pub fn here(tools: &Path, text: String) -> String {
    match tools.join(PROGRAM).exists() {
        true => text,
        false => text.replace(CLASS, "class=\"missing\"").replace(THERE, MISSING),
    }
}

/// The place on a page. `start` is the one of the start page, which shows one thing; other names are those of pages that have challenges.
pub fn place(name: &str) -> Vec<String> {
    let attributes = match name {
        "start" => format!("data-start=\"{}\"", in_attribute(&start())),
        "all" => format!("data-script=\"{}\"", in_attribute(&good())),
        page => format!("data-page=\"{page}\""),
    };
    pages::block(&format!("{CLASS} {attributes}"), THERE)
}

fn in_attribute(script: &str) -> String {
    script.replace('\n', "&#10;").replace('"', "&quot;")
}

const WRITE: &str = "client ibv_post_send WRITE 0..60 to server 0";

/// One program writes into the other's memory.
fn good() -> String {
    format!("{SETUP}{WRITE}\nclient ibv_poll_cq\n")
}

/// What the start page shows: a WRITE, and three ways to break it.
fn start() -> String {
    let lost = good() + "wire drop 1st RDMA Write Only from client\n";
    let refused = good().replace(WRITE, &format!("{WRITE} key=wrong"));
    let dead = good() + "at 5 us server dies\n";
    [good(), lost, refused, dead].join("\n")
}

const SETUP: &str = "\
client ibv_reg_mr 0..60 LOCAL_WRITE
server ibv_reg_mr 0..60 LOCAL_WRITE|REMOTE_WRITE
client memcpy 0 \"One side writes, and the other side's processor never knows.\"
";

/// Lays out what such a page loads.
pub fn lay_out(tools: &Path, to: &Path) -> Result<()> {
    if !tools.join(PROGRAM).exists() {
        return Ok(());
    }
    let modules: Result<Vec<_>> = MODULES.iter().map(|name| read(format!("{FOLDER}/{name}.js"))).collect();
    let modules = modules?;
    let script = page::in_one(&modules.iter().map(String::as_str).collect::<Vec<_>>());
    write(
        to.join("workbench.js"),
        classic("workbench", &format!("const {{ {PARTS} }} = player.parts;\n{script}"), "mount"),
    )?;
    copy(&format!("{FOLDER}/workbench.css"), to.join("workbench.css"))?;
    copy(&tools.join(PROGRAM).to_string_lossy(), to.join("program.js"))
}

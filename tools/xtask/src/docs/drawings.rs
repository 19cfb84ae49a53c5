//! What is drawn from the captures: their ladders, their lanes as text, and the parts of lanes that pages show as pictures.

use super::excerpts;
use super::page::Page;
use super::sources::files;
use anyhow::{anyhow, ensure, Context, Result};
use run::capture::{Events, Reader};
use run::files::{bytes, read, write};
use run::lanes::{self, Style};
use run::plot;
use run::story;
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::{env, fs};

const FOLDER: &str = "docs/images";
/// Runs of other people's protocols, which belong to no lesson and have no story.
pub const PROTOCOLS: &str = "captures/protocols";
/// Where runs of RDMA inside TCP are.
pub const OVER_TCP: &str = "captures/over_tcp";
/// How the pictures over time begin, which a small screen shows as a whole.
const PLOTS: &str = "docs/images/plot_";
/// How the pictures of the lessons' ideas begin, which are drawn by hand.
const BY_HAND: &str = "docs/images/idea_";

/// Compares all drawings with what would be drawn now, or draws again what is not like that.
pub fn renew(pages: &[Page], renewing: bool) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let drawings = all(pages)?;
    for (path, drawing) in &drawings {
        match drawing {
            Err(error) => problems.push(format!("{path}: {error:#}")),
            Ok(drawing) if read(path).is_ok_and(|kept| kept == *drawing) => {}
            Ok(drawing) if renewing => {
                write(path, drawing)?;
                println!("{path} written");
            }
            Ok(_) => problems.push(format!("{path}: is not what `make docs` draws: run it and commit")),
        }
    }
    let by_hand = |path: &str| path.starts_with(BY_HAND);
    for path in files(FOLDER, ".svg")?.iter().filter(|path| !drawings.contains_key(*path) && !by_hand(path)) {
        if renewing {
            fs::remove_file(path).with_context(|| format!("cannot remove {path}"))?;
            println!("{path} removed: nothing shows it");
        } else {
            problems.push(format!("{path}: nothing shows it: run `make docs`"));
        }
    }
    Ok(problems)
}

fn all(pages: &[Page]) -> Result<BTreeMap<String, Result<String>>> {
    let mut drawings = BTreeMap::new();
    for story in story::bundled()? {
        let name = story.file_name();
        let text = events(&name).and_then(|run| lanes::text(&run, Style::FILE, 0..=u64::MAX));
        drawings.insert(format!("captures/{name}.txt"), text);
    }
    for folder in [PROTOCOLS, OVER_TCP] {
        for path in files(folder, ".pcapng")? {
            let name = path.trim_start_matches("captures/").trim_end_matches(".pcapng");
            let text = events(name).and_then(|run| lanes::text(&run, Style::FILE, 0..=u64::MAX));
            drawings.insert(path.replace(".pcapng", ".txt"), text);
        }
    }
    for mark in pages.iter().flat_map(|page| &page.marks).filter(|mark| mark.kind == "generated") {
        if let Some((path, drawn)) = picture(&mark.words()) {
            drawings.insert(path, drawn.map(|(svg, _)| svg));
        }
    }
    Ok(drawings)
}

fn events(name: &str) -> Result<Events> {
    Events::read(&capture(name)?[..])
}

fn capture(name: &str) -> Result<Vec<u8>> {
    bytes(format!("captures/{name}.pcapng"))
}

/// The file of a picture, all packets of a run (`ladder NAME`), a part of its lanes (`lanes NAME FROM..TO`) or the run over time
/// (`plot NAME`), with the picture and what it shows in words.
fn picture(what: &[&str]) -> Option<(String, Result<(String, String)>)> {
    Some(match what {
        ["ladder", name] => {
            let drawn = events(name).and_then(|run| lanes::ladder(&run));
            (format!("{FOLDER}/{name}.svg"), drawn)
        }
        ["lanes", name, range] => {
            let part = excerpts::part(&format!("captures/{name}.pcapng"), range);
            let drawn = part.and_then(|part| lanes::picture(&events(name)?, part));
            (format!("{FOLDER}/{name}_{}.svg", range.replace("..", "_").replace([':', '@'], "-")), drawn)
        }
        ["plot", name] => {
            let drawn = capture(name).and_then(|run| {
                let (seen, read) = plot::read(&mut Reader::new(run.as_slice())?);
                read.map(|()| seen.picture())
            });
            (format!("{PLOTS}{name}.svg"), drawn)
        }
        ["two-flows"] => {
            let drawn = two_flows().map(|(words, _, picture)| (picture.clone(), words.clone()));
            (format!("{PLOTS}two_flows.svg"), drawn)
        }
        _ => return None,
    })
}

/// The paper's two flows, as tools/nic/examples/two_flows runs them: in words, as a table, and as a picture. They run once.
fn two_flows() -> Result<&'static (String, String, String)> {
    static RUN: OnceLock<Result<(String, String, String), String>> = OnceLock::new();
    let run = || -> Result<_> {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["run", "--quiet", "--package", "nic", "--example", "two_flows"]).stderr(Stdio::inherit());
        let output = command.output().context("cargo")?;
        ensure!(output.status.success(), "`cargo run --package nic --example two_flows` failed: {}", output.status);
        let text = String::from_utf8(output.stdout)?;
        let mut parts = text.splitn(3, "\n\n").map(|part| part.trim_end().to_owned());
        let mut next = || parts.next().context("the example two_flows prints words, a table and a picture");
        Ok((next()?, next()?, next()? + "\n"))
    };
    RUN.get_or_init(|| run().map_err(|error| format!("{error:#}"))).as_ref().map_err(|error| anyhow!("{error}"))
}

/// The picture of the two flows, and the table below it.
pub fn two_flows_with_table(page: &str) -> Result<Vec<String>> {
    let table = two_flows()?.1.lines().map(String::from);
    Ok([link(page, &["two-flows"])?, String::new()].into_iter().chain(table).collect())
}

/// The line that leads to a lesson's run in one of the folders of captures: `met`, `over_tcp`.
pub fn elsewhere(folder: &str, name: &str) -> Result<String> {
    let path = format!("captures/{folder}/{name}.pcapng");
    bytes(&path)?;
    let lesson = name.split('_').next().unwrap_or_default();
    Ok(format!("[The recorded run](../{path}); `make play-{lesson} PCAP={path}` writes a page that plays it."))
}

/// The line that leads to the run of a protocol.
pub fn protocol(name: &str) -> Result<String> {
    let path = format!("{PROTOCOLS}/{name}.pcapng");
    bytes(&path)?;
    Ok(format!("[The recorded run](../{path}), and [the same as text](../{PROTOCOLS}/{name}.txt)."))
}

/// The line that shows a picture on a page.
pub fn link(page: &str, what: &[&str]) -> Result<String> {
    let (path, drawn) = picture(what).context("there is no such picture")?;
    let words = drawn?.1.replace('[', "(").replace(']', ")");
    let path = if page.starts_with("docs/") { path.trim_start_matches("docs/") } else { &path };
    Ok(format!("![{words}]({path})"))
}

//! `make screenshots`: Wireshark itself, with the bundled profile, shows the key packets of the lessons.
//!
//! Wireshark runs on a screen that exists only in memory, with a home of its own, and its keys are pressed by xdotool.
//! Where a field is in its tree is asked of tshark. Look at every picture before you commit it.

mod manifest;
mod screen;

use crate::docs::Problem;
use crate::output;
use anyhow::{Context, Result};
use screen::Screen;
use std::path::Path;

/// A packet, and what of it is shown. One whose name ends in `_run` has the log lines around it, too.
struct Picture {
    /// The file, without `.png`.
    name: &'static str,
    /// The capture, without `.pcapng`.
    capture: &'static str,
    /// A display filter: the packet is the first that it finds.
    packet: &'static str,
    /// The line of the tree at the top, by how it begins.
    top: &'static str,
    /// The line of the tree that is selected, and whose bytes are marked.
    field: &'static str,
}

/// A line for each picture, below the names of the columns.
const PICTURES: &str = include_str!("pictures.txt");

fn pictures() -> Vec<Picture> {
    let picture = |line: &'static str| {
        let cells: Vec<&str> = line.split(" | ").map(str::trim).collect();
        let [name, capture, packet, top, field] = cells[..] else { return None };
        Some(Picture { name, capture, packet, top, field })
    };
    PICTURES.lines().skip(1).filter_map(picture).collect()
}

/// Takes the pictures that are missing or show an earlier capture, and notes which captures they show. To have one taken
/// anew, delete it.
///
/// # Errors
/// A program is missing, or Wireshark does not show what it should.
pub fn take(root: &Path) -> Result<()> {
    let mut wanted = Vec::new();
    for picture in pictures() {
        if manifest::is_stale(root, (picture.name, picture.capture))? {
            wanted.push(picture);
        }
    }
    println!("{} of {} pictures are to be taken", wanted.len(), pictures().len());
    if !wanted.is_empty() {
        let screen = Screen::open(&root.join("captures/wireshark-profile"))?;
        for picture in &wanted {
            let capture = root.join(format!("captures/{}.pcapng", picture.capture));
            let file = root.join(format!("docs/images/{}.png", picture.name));
            let taken = place(&screen, picture, &capture)
                .and_then(|place| screen.picture(&capture, picture.packet, &place, &file));
            taken.with_context(|| picture.name.to_string())?;
            println!("docs/images/{}.png", picture.name);
        }
    }
    manifest::record(root, &shown())
}

/// Pictures that do not show the captures as they are now, and what lies beside them and is none.
pub fn problems(root: &Path) -> Result<Vec<Problem>> {
    manifest::problems(root, &shown())
}

/// All pictures, each with the capture that it shows.
fn shown() -> Vec<(&'static str, &'static str)> {
    pictures().iter().map(|picture| (picture.name, picture.capture)).collect()
}

/// So many packets fit above an open tree.
const MOST: usize = 20;

/// Where things are in Wireshark's window.
struct Place {
    /// The list above the tree: a display filter, and how many lines it has.
    filter: String,
    rows: usize,
    /// Its columns Info and Step, in pixels.
    info: usize,
    step: usize,
    /// Lines of the tree from 0, when all below the line `InfiniBand` is open.
    infiniband: usize,
    top: usize,
    field: usize,
    /// How many lines there are.
    lines: usize,
}

fn place(screen: &Screen, picture: &Picture, capture: &Path) -> Result<Place> {
    let tshark =
        |options: &[&str]| output(screen.command("tshark").args(["-C", "rdma", "-r"]).arg(capture).args(options));
    let text = tshark(&["-Y", picture.packet, "-O", "infiniband"])?;
    // The first packet found, to the empty line below it.
    let lines: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let frame = lines.iter().find_map(|line| line.strip_prefix("Frame ")?.split(':').next()?.parse::<u64>().ok());
    let frame = frame.with_context(|| format!("{} has no packet {}", picture.capture, picture.packet))?;
    let find = |from: usize, start: &str| {
        // Bits come before the name: `1... .... = Acknowledge Request: True`.
        let name = |line: &str| line.split_once(" = ").map_or(line, |(_, name)| name).starts_with(start);
        let found = lines.iter().skip(from).position(|line| name(line));
        found.map(|at| at + from).with_context(|| format!("the packet's tree has no line `{start}`"))
    };
    let infiniband = find(0, "InfiniBand")?;
    let top = find(infiniband, picture.top)?;
    let field = find(top, picture.field)?;
    let (filter, rows, info, step) = if picture.name.ends_with("_run") {
        // The packet is in the middle of what happens around it.
        (format!("frame.number in {{{}..{}}}", frame.saturating_sub(15), frame + 11), 27, 678, 320)
    } else {
        let text = tshark(&["-Y", "infiniband", "-T", "fields", "-e", "frame.number"])?;
        let all: Vec<u64> = text.lines().filter_map(|number| number.parse().ok()).collect();
        let at = all.iter().position(|number| *number == frame).unwrap_or_default();
        // Of many, those around it: the tree needs room, too.
        let (first, last) =
            if all.len() <= MOST { (0, all.len()) } else { (at.saturating_sub(8), all.len().min(at + 8)) };
        let only = format!("infiniband and frame.number in {{{}..{}}}", all[first], all[last - 1]);
        (if last - first == all.len() { "infiniband".into() } else { only }, last - first, 238, 391)
    };
    Ok(Place { filter, rows, info, step, infiniband, top, field, lines: lines.len() })
}

//! Files that a run brings back: a machine writes them to its drive as a tar archive, the lab reads it from there.

use crate::files::{scratch, succeed};
use crate::options::Fetched;
use crate::outcome::Outcome;
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io::Seek;
use std::path::Path;
use std::process::Command;

/// What may come from this node.
pub fn wanted<'a>(out: &'a [Fetched], node: &str) -> Vec<&'a Fetched> {
    out.iter().filter(|fetched| fetched.node.as_ref().map_or(true, |wanted| wanted == node)).collect()
}

/// The command that makes a machine write what it has of these to its drive.
pub fn command(wanted: &[&Fetched]) -> String {
    let paths = wanted.iter().map(|fetched| format!(" '.{}'", fetched.path.replace('\'', r"'\''")));
    format!("cd /; tar -cf /dev/vda{} 2>/dev/null; sync", paths.collect::<String>())
}

/// Takes what the machines have written to their drives, which are in the order of the nodes. What no machine had makes the run
/// no good.
pub fn all<'a>(out: &[Fetched], drives: impl Iterator<Item = &'a mut File>, outcome: &mut Outcome) -> Result<()> {
    let mut found = Vec::new();
    for (node, drive) in outcome.nodes.iter().zip(drives).filter(|(node, _)| node.fetched) {
        let folder = outcome.folder.join("out").join(&node.name);
        let taken = take(drive, wanted(out, &node.name), &folder);
        found.extend(taken.with_context(|| format!("cannot fetch files of the {}", node.name))?);
    }
    if let Some(fetched) = out.iter().find(|fetched| !found.contains(fetched)) {
        let who = fetched.node.as_ref().map_or("no machine has".to_owned(), |node| format!("the {node} has no"));
        outcome.trouble.get_or_insert_with(|| format!("{who} {} after the run (--out)", fetched.path));
    }
    Ok(())
}

/// Puts what is wanted of a machine's drive in its place, and gives what was there. What is on the drive is only as good as the
/// programs that ran there: tar lets no path lead out of its folder, and links and devices stay behind.
fn take<'a>(drive: &mut File, wanted: Vec<&'a Fetched>, folder: &Path) -> Result<Vec<&'a Fetched>> {
    fs::create_dir_all(folder)?;
    let unpacked = scratch(folder)?;
    let all = unpacked.path();
    drive.rewind()?;
    succeed(Command::new("tar").arg("-xC").arg(all).stdin(drive.try_clone()?))?;
    succeed(Command::new("chmod").args(["-R", "u+rwX"]).arg(all))?;
    succeed(Command::new("find").arg(all).args(["!", "-type", "f", "!", "-type", "d", "-delete"]))?;
    let is_there = |fetched: &&Fetched| all.join(&fetched.path[1..]).exists();
    let found: Vec<&Fetched> = wanted.into_iter().filter(is_there).collect();
    for fetched in &found {
        let own = || folder.join(Path::new(&fetched.path).file_name().unwrap_or_default());
        let here = fetched.here.clone().unwrap_or_else(own);
        fs::create_dir_all(here.parent().unwrap_or(&here))?;
        succeed(Command::new("cp").args(["-rT", "--"]).arg(all.join(&fetched.path[1..])).arg(here))?;
    }
    Ok(found)
}

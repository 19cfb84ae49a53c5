//! What a run leaves behind: `wire.pcapng`, `server.log`, `client.log`, `timeline.txt`.

use crate::lanes::Lanes;
use crate::outcome::{Entry, Outcome, What};
use crate::run::{Run, Side};
use crate::session::Finished;
use anyhow::{Context, Result};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::SystemTime;
use wire::pcapng::{Section, Writer};
use wire::LinkType;

/// Writes the files into `folder/NAME` and replaces those of the run before.
///
/// # Errors
/// No space or no permission; the message names the folder.
pub fn keep(folder: &Path, run: &Run, finished: Finished) -> Result<Outcome> {
    let Finished { ended: [server, client], timeline, started, trouble, .. } = finished;
    let target = folder.join(&run.name);
    let outcome = Outcome { server, client, timeline, started, trouble, folder: target.clone() };
    let capture = capture(&outcome.timeline, started).context("cannot put the capture together")?;
    write_all(folder, &target, &outcome, &capture)
        .with_context(|| format!("cannot write the results to {}", target.display()))?;
    if let Some(copy) = &run.pcap {
        fs::write(copy, &capture).with_context(|| format!("cannot write {}", copy.display()))?;
    }
    Ok(outcome)
}

fn write_all(folder: &Path, target: &Path, outcome: &Outcome, capture: &[u8]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let scratch = tempfile::Builder::new().prefix(".new-").tempdir_in(folder)?;
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755))?;
    fs::write(scratch.path().join("wire.pcapng"), capture)?;
    for side in Side::BOTH {
        let mut text = outcome.side(side).log.join("\n");
        text.push('\n');
        fs::write(scratch.path().join(format!("{}.log", side.name())), text.trim_start_matches('\n'))?;
    }
    fs::write(scratch.path().join("timeline.txt"), timeline(outcome))?;
    replace(scratch.path(), target)?;
    // The folder has another name now, so there is nothing left to remove.
    let _ = scratch.keep();
    Ok(())
}

/// Renames a folder over another one. A run of the same name at the same time may be doing so, too; the last one wins.
fn replace(new: &Path, target: &Path) -> io::Result<()> {
    for _ in 0..100 {
        // If it cannot be removed, the renaming says so.
        let _ = fs::remove_dir_all(target);
        if fs::rename(new, target).is_ok() {
            return Ok(());
        }
    }
    fs::rename(new, target)
}

fn capture(timeline: &[Entry], started: SystemTime) -> io::Result<Vec<u8>> {
    let section = Section { application: Some("lab"), ..Section::default() };
    let mut writer = Writer::new(Vec::new(), LinkType::ETHERNET, &section)?;
    for entry in timeline {
        if let What::Frame(frame) = &entry.what {
            let time = (started + entry.at).duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            writer.packet(time.as_nanos() as u64, frame, None)?;
        }
    }
    writer.into_inner()
}

fn timeline(outcome: &Outcome) -> String {
    let lanes = Lanes::for_file();
    let mut text = lanes.heading();
    for entry in &outcome.timeline {
        text.push_str(&lanes.entry(entry));
    }
    text
}

//! Files and programs, with errors that name them.

use crate::interrupt::Interrupt;
use anyhow::{Context, Result};
use rustix::fs::flock;
pub use rustix::fs::FlockOperation::{self, NonBlockingLockExclusive as CHANGE, NonBlockingLockShared as READ};
use rustix::io::Errno;
use std::cmp::Reverse;
use std::collections::hash_map::DefaultHasher;
use std::env;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// What tells a file from others that were at its place before: path, size and time of change. To read it would take longer.
pub fn stamp(path: &Path) -> Result<(PathBuf, u64, i64, i64)> {
    let metadata = fs::metadata(path).with_context(|| format!("cannot look at {}", path.display()))?;
    Ok((path.to_owned(), metadata.len(), metadata.mtime(), metadata.mtime_nsec()))
}

/// A name for what depends on these files, which count by their stamps, and on something more.
pub fn key<'a>(files: impl Iterator<Item = &'a PathBuf>, more: impl Hash) -> Result<String> {
    let stamps = files.map(|path| stamp(path)).collect::<Result<Vec<_>>>()?;
    let mut hasher = DefaultHasher::new();
    (stamps, more).hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}

/// A folder for what is not complete yet. If the lab is killed, [`remove_abandoned`] removes it.
pub fn scratch(folder: &Path) -> Result<TempDir> {
    let scratch = tempfile::Builder::new().prefix(".new-").tempdir_in(folder);
    scratch.with_context(|| format!("cannot write to {}", folder.display()))
}

/// Writes a whole file so that it is there completely or not at all, and creates its folder.
pub fn write(path: &Path, content: &[u8]) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let attempt = || -> std::io::Result<()> {
        fs::create_dir_all(folder)?;
        let mut file = tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o644)).tempfile_in(folder)?;
        std::io::Write::write_all(&mut file, content)?;
        file.persist(path)?;
        Ok(())
    };
    attempt().with_context(|| format!("cannot write {}", path.display()))
}

/// Finds a program: a path with a slash as it is, a bare name in `PATH` and the system folders
/// that an ordinary user's `PATH` lacks.
pub fn program(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return executable(PathBuf::from(name));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.filter(|folder| folder.is_absolute()).find_map(|folder| executable(folder.join(name)))
}

fn executable(path: PathBuf) -> Option<PathBuf> {
    let metadata = fs::metadata(&path).ok()?;
    (metadata.is_file() && metadata.permissions().mode() & 0o111 != 0).then_some(path)
}

/// What is in a folder, but for hidden entries and locks: that which was changed last comes first.
pub fn newest_first(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_hidden = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    let mut paths: Vec<PathBuf> = entries.filter(|path| !is_hidden(path) && !path.ends_with("lock")).collect();
    paths.sort_by_key(|path| Reverse(fs::metadata(path).and_then(|metadata| metadata.modified()).ok()));
    paths
}

/// Removes all but the newest `count` of a folder's entries, and the scratch folders of labs that were killed; call it with
/// the folder locked. What cannot be removed goes the next time.
pub fn keep_newest(folder: &Path, count: usize) {
    remove_abandoned(folder);
    newest_first(folder).into_iter().skip(count).for_each(|path| drop(fs::remove_dir_all(path)));
}

/// Removes the scratch folders of labs that were killed; call it with the folder locked.
pub fn remove_abandoned(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    for path in entries.filter(|path| path.to_string_lossy().contains("/.new-")) {
        let _ = fs::remove_dir_all(path);
    }
}

/// Adds to an error that a folder is somebody else's: whoever runs the lab as root once has it made for root.
fn whose(folder: &Path) -> String {
    let existing = folder.ancestors().find_map(|folder| fs::metadata(folder).ok().map(|metadata| (folder, metadata)));
    let own = rustix::process::geteuid().as_raw();
    let Some((folder, metadata)) = existing.filter(|(_, metadata)| metadata.uid() != own) else { return String::new() };
    let (folder, user) = (folder.display(), metadata.uid());
    format!(
        ": {folder} belongs to user {user}, whose lab made it. The lab needs no root; `sudo chown -R $USER {folder}` gives it \
         back"
    )
}

/// How long another lab may hold a lock: a download on a slow line, or a boot on a slow machine.
const LOCK_LIMIT: Duration = Duration::from_secs(600);

/// Locks a folder, which is created if need be, against other labs: for itself, or together with those that only read there.
/// `work` is what the one who holds the lock is doing. The lock ends with the file that is returned, also if this process is
/// killed.
pub fn lock(folder: &Path, how: FlockOperation, work: &str, interrupt: &Interrupt) -> Result<File> {
    let path = folder.join("lock");
    let open = || -> std::io::Result<File> {
        fs::create_dir_all(folder)?;
        File::options().create(true).append(true).open(&path)
    };
    let file = open().with_context(|| format!("cannot write {}{}", path.display(), whose(folder)))?;
    let limit = Instant::now() + LOCK_LIMIT;
    let mut told = false;
    while let Err(error) = flock(&file, how) {
        let is_held = matches!(error, Errno::WOULDBLOCK | Errno::INTR);
        anyhow::ensure!(
            is_held,
            "cannot lock {}: {error}. `CARGO_TARGET_DIR=/var/tmp/rdma make …` puts it on another file system",
            path.display()
        );
        anyhow::ensure!(Instant::now() < limit, "another lab has kept {} locked for too long: {error}", path.display());
        if !told {
            eprintln!("lab: another lab is {work}; waiting for it");
            told = true;
        }
        interrupt.pause(Duration::from_millis(50))?;
    }
    Ok(file)
}

/// Runs a command whose output only matters when it fails.
pub fn succeed(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run `{name}`"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{command:?} failed ({}):\n{}", output.status, said.trim());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_lab_waits_for_a_lock_unless_both_only_read() {
        let folder = tempfile::tempdir().unwrap();
        let lock = |how| lock(folder.path(), how, "testing", &Interrupt::default());
        let held = [lock(READ).unwrap(), lock(READ).unwrap()];
        std::thread::scope(|scope| {
            let second = scope.spawn(|| lock(CHANGE));
            std::thread::sleep(Duration::from_millis(100));
            assert!(!second.is_finished());
            drop(held);
            assert!(second.join().unwrap().is_ok());
        });
    }
}

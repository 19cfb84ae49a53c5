//! Files and programs, with errors that name them.

use crate::interrupt::Interrupt;
use anyhow::{Context, Result};
use rustix::fs::{flock, FlockOperation};
use rustix::io::Errno;
use std::cmp::Reverse;
use std::env;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
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
/// the folder locked. What is in use, or cannot be removed, goes the next time.
pub fn keep_newest(folder: &Path, count: usize) {
    remove_abandoned(folder);
    for path in newest_first(folder).into_iter().skip(count) {
        // Nobody begins to use it until it is gone.
        let opened = File::open(&path);
        if !opened.as_ref().is_ok_and(|file| flock(file, FlockOperation::NonBlockingLockExclusive).is_err()) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Marks an entry of such a folder as in use, until the file is closed. Fails while the entry is being removed.
pub fn mark_as_used(entry: &File) -> Result<()> {
    flock(entry, FlockOperation::NonBlockingLockShared).context("it is being removed")
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

/// Locks a folder, which is created if need be, against other labs. `work` is what the one who holds the lock is doing.
/// The lock ends with the file that is returned, also if this process is killed.
pub fn lock(folder: &Path, work: &str, interrupt: &Interrupt) -> Result<File> {
    let path = folder.join("lock");
    let open = || -> std::io::Result<File> {
        fs::create_dir_all(folder)?;
        File::options().create(true).append(true).open(&path)
    };
    let file = open().with_context(|| format!("cannot write {}{}", path.display(), whose(folder)))?;
    let limit = Instant::now() + LOCK_LIMIT;
    let mut told = false;
    while let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
        let is_held = matches!(error, Errno::WOULDBLOCK | Errno::INTR);
        anyhow::ensure!(
            is_held,
            "cannot lock {}: {error}. `CARGO_TARGET_DIR=/var/tmp/rdma make …` puts it on another file system",
            path.display()
        );
        anyhow::ensure!(Instant::now() < limit, "another lab holds {} for too long: {error}", path.display());
        if !told {
            eprintln!("lab: another lab is {work}; waiting for it");
            told = true;
        }
        interrupt.pause(Duration::from_millis(50))?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_what_a_killed_lab_began_goes() {
        let folder = tempfile::tempdir().unwrap();
        for (age, name) in ["6.1.0-9", "6.1.0-56", "6.12", ".new-killed"].iter().enumerate() {
            let path = folder.path().join(name);
            fs::create_dir(&path).unwrap();
            let time = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(age as u64);
            File::open(&path).unwrap().set_modified(time).unwrap();
        }
        fs::write(folder.path().join("lock"), b"").unwrap();
        let used = File::open(folder.path().join("6.1.0-9")).unwrap();
        mark_as_used(&used).unwrap();
        keep_newest(folder.path(), 2);
        let left = |names: &[&str]| names.iter().map(|name| folder.path().join(name)).collect::<Vec<_>>();
        assert_eq!(newest_first(folder.path()), left(&["6.12", "6.1.0-56", "6.1.0-9"]));
        drop(used);
        // A program that another test starts at this moment has the lock, too, until it is another program.
        let deadline = Instant::now() + Duration::from_secs(10);
        while newest_first(folder.path()).len() > 2 && Instant::now() < deadline {
            keep_newest(folder.path(), 2);
        }
        assert_eq!(newest_first(folder.path()), left(&["6.12", "6.1.0-56"]));
        assert!(folder.path().join("lock").exists() && !folder.path().join(".new-killed").exists());
    }

    #[test]
    fn a_second_lab_waits_for_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let held = lock(folder.path(), "testing", &Interrupt::default()).unwrap();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| lock(folder.path(), "testing", &Interrupt::default()));
            std::thread::sleep(Duration::from_millis(100));
            assert!(!second.is_finished());
            drop(held);
            assert!(second.join().unwrap().is_ok());
        });
    }
}

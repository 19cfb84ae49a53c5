//! The shared libraries a program needs in a machine that has nothing but what it is given.

use crate::arch::{library_folder, HOST};
use crate::files;
use anyhow::{bail, Context, Result};
use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The libraries of `programs`, the loader and all they need in turn, as the loader finds them on this host. A
/// program without any (static, or a script) has none.
pub fn closure<P: AsRef<Path>>(programs: &[P]) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    for program in programs {
        // What `ldd` does, without its shell script: ten times as fast, and it is on the way of every run.
        let output = Command::new(HOST.loader)
            .arg("--list")
            .arg(program.as_ref())
            .output()
            .with_context(|| format!("cannot run the dynamic loader {}", HOST.loader))?;
        let listed = parse(&String::from_utf8_lossy(&output.stdout));
        found.extend(listed.with_context(|| format!("cannot run {}", program.as_ref().display()))?);
    }
    Ok(found)
}

/// Reads lines such as `libc.so.6 => /lib/libc.so.6 (0x…)` and `/lib64/ld-linux.so.2 (0x…)`.
fn parse(text: &str) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    for line in text.lines() {
        let line = line.trim();
        if let Some(name) = line.strip_suffix("=> not found") {
            bail!("it needs the shared library {}, which is not installed here", name.trim());
        }
        let target = line.split_once(" => ").map_or(line, |(_, target)| target);
        if let Some((path, _)) = target.split_once(" (0x") {
            if path.starts_with('/') {
                found.insert(PathBuf::from(path));
            }
        }
    }
    Ok(found)
}

/// Where this host keeps `name`, for example `libibverbs.so.1`.
pub fn locate(name: &str) -> Result<PathBuf> {
    let found = folders().map(|folder| folder.join(name)).find(|path| path.exists());
    found.with_context(|| format!("cannot find {name}; {GET}"))
}

/// The part of libibverbs that speaks to a driver. It is loaded by name at run time, so the loader does not list it.
pub fn provider(driver: &str) -> Option<PathBuf> {
    let start = format!("lib{driver}-rdmav");
    let entries = folders().filter_map(|folder| folder.join("libibverbs").read_dir().ok()).flatten();
    let mut paths = entries.flatten().map(|entry| entry.path());
    paths.find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&start)))
}

/// This host's own folders first, then what set-up unpacked.
fn folders() -> impl Iterator<Item = PathBuf> {
    let multiarch = Path::new("/usr/lib").join(library_folder());
    let unpacked = unpacked().map(|root| root.join("usr/lib").join(library_folder()));
    [multiarch, PathBuf::from("/usr/lib64"), PathBuf::from("/usr/lib")].into_iter().chain(unpacked)
}

/// The folder below which set-up (`tools/lab/setup.sh`) unpacked what this host has not installed.
pub fn unpacked() -> Option<PathBuf> {
    env::var_os("RDMA_TOOLS").map(PathBuf::from)
}

/// Where a file of this host is in a machine: what was unpacked goes where it would have been installed.
pub fn inside(path: &Path) -> PathBuf {
    let rest = unpacked().and_then(|root| path.strip_prefix(root).ok().map(Path::to_owned));
    rest.map_or_else(|| path.to_owned(), |rest| Path::new("/").join(rest))
}

/// A program by name or path.
pub fn required(name: &str) -> Result<PathBuf> {
    files::program(name).with_context(|| format!("cannot find the program `{name}`; {GET}"))
}

/// What brings all that the lab needs.
pub const GET: &str = "`make setup` gets it, or says what to install";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_loader_lists_is_taken_and_what_it_misses_is_named() {
        let found =
            parse("\tlinux-vdso.so.1 (0x7f)\n\tlibc.so.6 => /lib/libc.so.6 (0x7f)\n\t/lib64/ld.so.2 (0x7f)\n").unwrap();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["/lib/libc.so.6", "/lib64/ld.so.2"].map(PathBuf::from));
        let error = parse("\tlibrdmacm.so.1 => not found\n").unwrap_err();
        assert!(error.to_string().contains("librdmacm.so.1"), "{error}");
    }
}

//! The shared libraries a program needs in a machine that has nothing but what it is given.

use crate::arch::Arch;
use crate::files;
use anyhow::{bail, Context, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The libraries of `programs`, the loader and all they need in turn, as `ldd` finds them on this host.
///
/// # Errors
/// `ldd` is missing, or a program needs a library that this host does not have.
pub fn closure<P: AsRef<Path>>(programs: &[P]) -> Result<BTreeSet<PathBuf>> {
    if programs.is_empty() {
        return Ok(BTreeSet::new());
    }
    // The exit status is of no use: it is 1 as soon as one of the files is static or a script.
    let output = Command::new("ldd")
        .args(programs.iter().map(AsRef::as_ref))
        .env("LC_ALL", "C")
        .output()
        .context("cannot run `ldd` (package libc-bin)")?;
    parse(&String::from_utf8_lossy(&output.stdout))
}

/// Reads lines such as `libc.so.6 => /lib/libc.so.6 (0x…)` and `/lib64/ld-linux.so.2 (0x…)`.
fn parse(text: &str) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    for line in text.lines() {
        let line = line.trim();
        if let Some(name) = line.strip_suffix("=> not found") {
            bail!("a program needs the shared library {}, which is not installed here", name.trim());
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
#[must_use]
pub fn locate(name: &str, arch: &Arch) -> Option<PathBuf> {
    folders(arch).map(|folder| folder.join(name)).find(|path| path.exists())
}

/// The part of libibverbs that speaks to SoftRoCE. It is loaded by name at run time, so `ldd` does not list it.
#[must_use]
pub fn rxe_provider(arch: &Arch) -> Option<PathBuf> {
    let entries = folders(arch).filter_map(|folder| folder.join("libibverbs").read_dir().ok()).flatten();
    let mut paths = entries.flatten().map(|entry| entry.path());
    paths.find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("librxe-rdmav")))
}

fn folders(arch: &Arch) -> impl Iterator<Item = PathBuf> {
    let multiarch = Path::new("/usr/lib").join(arch.library_folder);
    [multiarch, PathBuf::from("/usr/lib64"), PathBuf::from("/usr/lib")].into_iter()
}

/// A program by name or path, with an error that says what to install.
///
/// # Errors
/// It is not on this host.
pub fn required(name: &str, package: &str) -> Result<PathBuf> {
    files::program(name).with_context(|| format!("cannot find the program `{name}`; install the package {package}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ldd_lines_are_understood() {
        let text = "/usr/bin/a:\n\tlinux-vdso.so.1 (0x00007f)\n\tlibc.so.6 => /lib/libc.so.6 (0x00007f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n/usr/bin/b:\n\tnot a dynamic executable\n";
        let found: Vec<PathBuf> = parse(text).unwrap().into_iter().collect();
        assert_eq!(found, [PathBuf::from("/lib/libc.so.6"), PathBuf::from("/lib64/ld-linux-x86-64.so.2")]);
    }

    #[test]
    fn a_missing_library_is_named() {
        let error = parse("\tlibrdmacm.so.1 => not found\n").unwrap_err();
        assert!(error.to_string().contains("librdmacm.so.1"), "{error}");
    }

    #[test]
    fn a_real_program_brings_its_loader() {
        let found = closure(&["/bin/sh"]).unwrap();
        assert!(found.iter().any(|path| path.to_string_lossy().contains("/ld-linux")), "{found:?}");
    }
}

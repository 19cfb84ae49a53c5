//! What a machine gets for one run: the program with its libraries, on a small drive.
//!
//! The drive holds a cpio archive from its first byte. It is a file without a name: nothing is left of it,
//! however the lab ends.

use crate::arch::Arch;
use crate::cpio::Archive;
use crate::elf;
use crate::files::{self, read};
use crate::initramfs::Contents;
use crate::libs;
use anyhow::{bail, ensure, Context, Result};
use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Size of the drive in bytes. A saved machine remembers it, so it is the same for every program.
const SIZE: u64 = 64 << 20;
/// Variables of the host that reach the program.
const PASSED_ON: [&str; 2] = ["RUST_LOG", "RUST_BACKTRACE"];
/// A script longer than this is not searched for the programs that it calls.
const MAX_SCRIPT: usize = 64 << 10;

/// A drive with nothing on it, for a machine that is about to be saved.
///
/// # Errors
/// No temporary file can be made.
pub fn empty() -> Result<File> {
    let attempt = || -> std::io::Result<File> {
        let file = tempfile::tempfile()?;
        file.set_len(SIZE)?;
        Ok(file)
    };
    attempt().with_context(|| format!("cannot create a temporary file in {}", env::temp_dir().display()))
}

/// A drive with `own` files (path and text), `command`, a line for the shell, and the programs that the text `named` names.
/// Bare names are looked up in `folder` first.
///
/// # Errors
/// A program or library is missing, or it does not fit.
pub fn drive(
    command: Option<&str>,
    named: &str,
    own: &[(&str, String)],
    folder: &Path,
    contents: &Contents,
    arch: &Arch,
) -> Result<File> {
    let mut programs = Programs { folder, found: BTreeMap::new() };
    let mut archive = Archive::new();
    for (path, text) in own {
        archive.file(path, 0o644, text.as_bytes());
    }
    if let Some(command) = command {
        programs.first_word(command, contents)?;
        archive.file("/run/program.sh", 0o755, script(command)?.as_bytes());
    }
    programs.collect(named, contents);
    archive.folder(env::current_dir().context("the current folder is gone")?);
    let paths: Vec<&PathBuf> = programs.found.values().collect();
    for library in libs::closure(&paths, arch)?.iter().filter(|library| !contents.has_library(library)) {
        archive.file(libs::inside(library), 0o755, &read(library)?);
    }
    for (target, source) in &programs.found {
        archive.file(target, 0o755, &elf::loaded_part(read(source)?));
    }
    let bytes = archive.finish();
    ensure!(
        bytes.len() as u64 <= SIZE,
        "`{}` and its libraries take more than {} MiB",
        command.unwrap_or_default(),
        SIZE >> 20
    );
    let mut file = empty()?;
    file.write_all(&bytes).context("cannot write the drive of a machine")?;
    Ok(file)
}

/// The programs that a command names: where they go, and where they are on this host.
struct Programs<'a> {
    folder: &'a Path,
    found: BTreeMap<PathBuf, PathBuf>,
}

impl Programs<'_> {
    /// A command that begins with something that does not exist is a mistake worth naming early.
    fn first_word(&self, command: &str, contents: &Contents) -> Result<()> {
        let words = shlex::split(command).with_context(|| format!("a quote is not closed in `{command}`"))?;
        let Some(word) = words.first() else { bail!("the command is empty") };
        // A tool may be in the machine and not on this host: what set-up unpacked has its usual place there.
        let inside = word.strip_prefix("/usr/bin/").is_some_and(|name| contents.has_tool(name));
        ensure!(
            !word.contains('/') || inside || files::program(word).is_some(),
            "there is no program {word} to run in the machine"
        );
        Ok(())
    }

    /// Takes every word that is a program of this host and not already in the machine; too many do no harm.
    fn collect(&mut self, text: &str, contents: &Contents) {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_./+-".contains(c);
        for word in text.split(|c| !is_part(c)).filter(|word| !word.starts_with('-')) {
            let Some((target, source)) = self.place(word, contents) else { continue };
            if self.found.insert(target, source.clone()).is_some() {
                continue;
            }
            let bytes = read(&source).unwrap_or_default();
            if bytes.starts_with(b"#!") && bytes.len() <= MAX_SCRIPT {
                self.collect(&String::from_utf8_lossy(&bytes), contents);
            }
        }
    }

    fn place(&self, word: &str, contents: &Contents) -> Option<(PathBuf, PathBuf)> {
        if word.contains('/') {
            let source = files::program(word)?;
            // A relative path means the same in the machine: the program starts in a folder of the same name.
            return Some((env::current_dir().ok()?.join(&source), source));
        }
        if word.is_empty() || contents.has_tool(word) {
            return None;
        }
        let built = files::program(self.folder.join(word).to_str()?);
        let source = built.or_else(|| files::program(word))?;
        Some((Path::new("/usr/bin").join(word), source))
    }
}

/// The script that the machine runs: the same folder, the variables that matter, the command.
fn script(command: &str) -> Result<String> {
    let folder = env::current_dir().context("the current folder is gone")?;
    let folder = shlex::try_quote(folder.to_str().context("the current folder's name is not UTF-8")?)?.into_owned();
    // Colors are the lanes' business; the logs are plain text.
    let mut text = format!("echo $$ >/run/program.pid\ncd {folder}\nexport NO_COLOR=1\n");
    for name in PASSED_ON {
        if let Ok(value) = env::var(name) {
            text.push_str(&format!("export {name}={}\n", shlex::try_quote(&value)?));
        }
    }
    text.push_str(command);
    text.push('\n');
    Ok(text)
}

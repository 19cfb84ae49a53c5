//! What a machine gets for one run: programs with their libraries and what else was brought along, on a drive.
//!
//! The drive holds a cpio archive from its first byte, and after the run another one, with what goes back to the host.

use crate::archive::Archive;
use crate::elf;
use crate::fetch;
use crate::files::{self, read};
use crate::initramfs::{self, Contents};
use crate::kernel::Kernel;
use crate::libs;
use crate::modules;
use crate::options::Brought;
use crate::run::Run;
use anyhow::{bail, ensure, Context, Result};
use run::programs::Node;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Variables of the host that reach the program.
const PASSED_ON: [&str; 2] = ["RUST_LOG", "RUST_BACKTRACE"];

/// Puts on a drive what `node` needs: its name and the others', its command, the programs that are named, and what the run
/// brings. Bare names are looked up in `folder` first.
pub fn fill(
    mut drive: &File,
    run: &Run,
    node: &Node,
    folder: &Path,
    contents: &Contents,
    kernel: &Kernel,
) -> Result<()> {
    let options = &run.options;
    let mut packer =
        Packer { folder, contents, files: BTreeMap::new(), found: BTreeSet::new(), links: BTreeMap::new() };
    let mut archive = Archive::default();
    archive.file("/run/environment", 0o644, environment(&options.env)?.as_bytes())?;
    archive.folder(env::current_dir().context("cannot find the current folder; has it been removed?")?)?;
    if let Some(command) = &node.command {
        packer.first_word(command)?;
        let (shell, command) = packer.shell(command);
        let known = if run.nodes.len() > 2 { "/usr/bin/ip -batch /etc/neighbors\n" } else { "" };
        let script = format!("#!{shell}\necho $$ >/run/program.pid\n. /run/environment\n{known}{command}\n");
        archive.file("/run/program.sh", 0o755, script.as_bytes())?;
    }
    // What is done to a machine that runs: by its name here, as the console that brings commands takes no long ones.
    let faults = options.faults.iter().enumerate();
    let faults = faults.filter_map(|(number, trap)| Some((format!("/run/fault-{number}"), trap.command()?)));
    let ready = options.ready.iter().map(|test| ("/run/ready".to_owned(), test.as_str()));
    for (path, command) in faults.chain(ready) {
        archive.file(path, 0o644, format!("{command}\n").as_bytes())?;
    }
    archive.file("/run/inspect", 0o644, options.inspect.as_deref().unwrap_or_default().as_bytes())?;
    archive.file("/run/fetch", 0o644, fetch::command(&fetch::wanted(&options.out, &node.name)).as_bytes())?;
    packer.words(&run.names_programs(node));
    for Brought { source, target } in &options.bring {
        packer.bring(source, target)?;
    }
    packer.pack(&mut archive)?;
    let requested = modules::requested(&run.names_programs(node));
    if !requested.is_empty() {
        initramfs::pack_modules(&mut archive, kernel, &requested)?;
    }
    // Behind the rest, as the last one counts: a command that names such a file means the machine's, not this host's.
    archive.file("/etc/hosts", 0o644, run.hosts().as_bytes())?;
    archive.file("/etc/neighbors", 0o644, run.neighbors().as_bytes())?;
    archive.file("/etc/hostname", 0o644, format!("{}\n", node.name).as_bytes())?;
    let bytes = archive.finish()?;
    // The files of a machine are in its memory, and Linux gives them half of it; some of that is taken.
    let (name, memory, needed) = (&node.name, options.memory(), (bytes.len() >> 20) as u32);
    let (room, enough) = (memory / 2 - 48, (needed * 2 + 128).next_multiple_of(256));
    ensure!(
        needed < room,
        "what the {name} brings takes {needed} MiB, and a machine with {memory} MiB of memory has room for {room}: \
         `--memory {enough}` gives it more"
    );
    drive.write_all(&bytes).context("cannot write the drive of a machine")
}

/// What comes along: where it goes, and where it is on this host.
struct Packer<'a> {
    folder: &'a Path,
    contents: &'a Contents,
    files: BTreeMap<PathBuf, PathBuf>,
    /// Those that were not named, but are in a folder that was.
    found: BTreeSet<PathBuf>,
    /// Links within a folder that was brought, and what they point to.
    links: BTreeMap<PathBuf, PathBuf>,
}

impl Packer<'_> {
    /// A command that begins with something that does not exist is a mistake worth naming early.
    fn first_word(&self, command: &str) -> Result<()> {
        let words = shlex::split(command).with_context(|| format!("a quote isn't closed in `{command}`"))?;
        let Some(word) = words.first() else { bail!("the command is empty. Name a program to run") };
        // A tool may be in the machine and not on this host: what set-up unpacked has its usual place there.
        let inside = word.strip_prefix("/usr/bin/").is_some_and(|name| self.contents.has_tool(name));
        ensure!(
            !word.contains('/') || inside || files::program(word).is_some(),
            "there is no program {word} to run in the machine"
        );
        Ok(())
    }

    /// The shell for a command, and how it is told. The usual one takes its time to start on an emulated processor; busybox
    /// is quick, but takes its own `ip` for the real one, so it gets only a program that has come along, with plain arguments.
    fn shell(&self, command: &str) -> (&'static str, String) {
        let is_plain = command.chars().all(|c| c.is_ascii_alphanumeric() || " ._/:,@%+-".contains(c));
        let (word, rest) = command.split_once(' ').unwrap_or((command, ""));
        match self.place(word).filter(|_| is_plain) {
            Some((target, _)) => ("/bin/busybox sh", format!("exec {} {rest}", target.display())),
            None => ("/bin/sh", command.to_owned()),
        }
    }

    /// Takes every word that is a program of this host and not already in the machine; too many do no harm.
    fn words(&mut self, text: &str) {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_./+-".contains(c);
        for word in text.split(|c| !is_part(c)).filter(|word| !word.starts_with('-')) {
            if let Some((target, source)) = self.place(word) {
                self.file(target, source);
            }
        }
    }

    fn place(&self, word: &str) -> Option<(PathBuf, PathBuf)> {
        if word.contains('/') {
            let source = files::program(word)?;
            // A relative path means the same in the machine: the program starts in a folder of the same name.
            return Some((env::current_dir().ok()?.join(&source), source));
        }
        if word.is_empty() || self.contents.has_tool(word) {
            return None;
        }
        let built = files::program(self.folder.join(word).to_str()?);
        let source = built.or_else(|| files::program(word))?;
        Some((Path::new("/usr/bin").join(word), source))
    }

    /// Takes a file, and the interpreter if it is a script.
    fn file(&mut self, target: PathBuf, source: PathBuf) {
        let interpreter = interpreter(&source);
        if self.files.insert(target, source).is_none() {
            self.words(&interpreter);
        }
    }

    /// Takes a file, or a folder with all that is in it. A link within the folder stays one.
    fn bring(&mut self, source: &Path, target: &Path) -> Result<()> {
        if !source.is_dir() {
            self.file(target.to_owned(), source.to_owned());
            return Ok(());
        }
        let entries = fs::read_dir(source).with_context(|| format!("cannot look into {}", source.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot look into {}", source.display()))?;
            let (path, target) = (entry.path(), target.join(entry.file_name()));
            match fs::read_link(&path) {
                Ok(link) if link.is_relative() || path.is_dir() => drop(self.links.insert(target, link)),
                _ if path.is_dir() => self.bring(&path, &target)?,
                _ if path.is_file() => {
                    self.found.insert(path.clone());
                    self.file(target, path);
                }
                // A link to nowhere, a socket, a device.
                _ => {}
            }
        }
        Ok(())
    }

    fn pack(&self, archive: &mut Archive) -> Result<()> {
        let mut programs = Vec::new();
        for (target, source) in &self.files {
            let metadata = fs::metadata(source).with_context(|| format!("cannot look at {}", source.display()))?;
            let content = read(source)?;
            if content.starts_with(elf::MAGIC) {
                programs.push(source);
            }
            // Python takes its compiled modules only if their sources have the time that is noted in them.
            let bits = metadata.permissions().mode() & 0o777;
            archive.dated_file(target, bits, metadata.mtime(), &elf::loaded_part(content))?;
        }
        for (target, link) in &self.links {
            archive.symlink(target, &link.to_string_lossy())?;
        }
        let mut libraries = BTreeSet::new();
        for program in programs {
            match libs::closure(&[program]) {
                Ok(closure) => libraries.extend(closure),
                // A part of a large package may be of no use here.
                Err(_) if self.found.contains(program) => {}
                Err(error) => return Err(error),
            }
        }
        for library in libraries {
            let target = libs::inside(&library);
            if !self.contents.files.contains_key(&target) && !self.files.contains_key(&target) {
                archive.file(target, 0o755, &read(&library)?)?;
            }
        }
        Ok(())
    }
}

/// The words behind `#!` in a script's first line.
fn interpreter(script: &Path) -> String {
    let mut start = [0; 256];
    let count = File::open(script).and_then(|mut file| std::io::Read::read(&mut file, &mut start)).unwrap_or(0);
    let first = start[..count].split(|byte| *byte == b'\n').next().unwrap_or_default();
    first.strip_prefix(b"#!").map(|words| String::from_utf8_lossy(words).into_owned()).unwrap_or_default()
}

/// What goes before each command: the same folder, the variables that matter.
fn environment(variables: &[(String, String)]) -> Result<String> {
    let folder = env::current_dir().context("cannot find the current folder; has it been removed?")?;
    let folder = shlex::try_quote(folder.to_str().context("the current folder's name is not UTF-8")?)?.into_owned();
    // Colors are the lanes' business; the logs are plain text, each line with the place where it comes from.
    let mut text = format!("cd {folder}\nexport NO_COLOR=1 {}=1\n", run::source::WANTED);
    let passed_on = PASSED_ON.into_iter().filter_map(|name| Some((name.to_owned(), env::var(name).ok()?)));
    for (name, value) in passed_on.chain(variables.iter().cloned()) {
        text.push_str(&format!("export {name}={}\n", shlex::try_quote(&value)?));
    }
    Ok(text)
}

//! The workspace around copies of lessons: versions, profiles and patches as in the repository's own manifest, and what the
//! lessons call. No link leads out of a reader's: what is edited there is edited there alone.

use crate::page::Name;
use crate::project::Project;
use anyhow::{ensure, Context, Result};
use run::files::{files, name, output, read, tree, write};
use std::env;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crate that lessons call, in the repository's folder and in that of a workspace. Cargo takes a crate for the one that
/// it has built if version, files and times are the same, and it is in the same place, seen from the workspace's root.
pub(crate) const LIBRARY: &str = "common";
/// What is copied of it.
const PARTS: [&str; 3] = ["Cargo.toml", "src", "bindgen"];
/// Stands behind the version in a reader's workspace: whatever is written there, cargo never takes it for the repository's.
const MARK: &str = "-try";

/// What the set-up has told cargo about what it unpacked.
const UNPACKED: [&str; 7] = [
    "BINDGEN_EXTRA_CLANG_ARGS",
    HEADERS,
    "CPLUS_INCLUDE_PATH",
    LIBRARIES,
    "LIBRARY_PATH",
    "PKG_CONFIG_PATH",
    "PKG_CONFIG_SYSROOT_DIR",
];

/// Where programs look for libraries.
const LIBRARIES: &str = "LD_LIBRARY_PATH";

/// The workspace of a learner's own program, in its folder. In there the library has the place that it has in the repository, seen
/// from the workspace's root, so cargo takes it for the one that was built with the lessons.
const OWN: &str = ".workspace";
const OWN_MANIFEST: &str = ".workspace/Cargo.toml";
const OWN_LOCK: &str = ".workspace/Cargo.lock";
const CONFIG: &str = ".cargo/config.toml";

/// Where an editor's cargo builds, below target/, if it wouldn't take what `make` has built (see [`is_shared`]).
const EDITOR: &str = "editor";
/// The first cargo that compares the variables of a build script with those of its own configuration as well. An older one only
/// sees the shell's. An editor has none of them there, so it would build rdma-sys again, and `make` would after that.
const COMPARES: u32 = 86;

/// Where a C compiler looks for headers.
const HEADERS: &str = "C_INCLUDE_PATH";

/// The package of a copy.
pub(crate) fn package(member: &str) -> String {
    format!("lesson-{member}")
}

/// The manifest of a copy's package: the lesson's, under another name.
pub(crate) fn manifest(of: &Name, package: &str) -> Result<String> {
    let text = read(of.lesson.join("Cargo.toml"))?;
    with(&text, "name", &format!("{package:?}"))
}

/// The manifest of a workspace: the repository's, with other members, and with a mark behind its version.
fn manifest_of_all(root: &Path, members: &[String], mark: &str) -> Result<String> {
    // What the repository says of its tools is a warning in a workspace that doesn't have them.
    let text = sections(&read(root.join("Cargo.toml"))?, |section| section != "[profile.dev.package]");
    let text = with(&text, "members", &format!("{members:?}"))?;
    let version = text.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    let version = version.context("the repository's manifest has no version")?;
    with(&text, "version", &format!("\"{version}{mark}\""))
}

/// The sections of a manifest that are wanted by their headings; what comes before the first one has none.
pub(crate) fn sections(manifest: &str, is_wanted: impl Fn(&str) -> bool) -> String {
    let mut is_in = is_wanted("");
    let lines = manifest.lines().filter(|line| {
        is_in = if line.starts_with('[') { is_wanted(line) } else { is_in };
        is_in
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// How the repository's manifest has everything built, for another workspace.
pub(crate) fn profiles(project: &Project) -> Result<String> {
    let is_profile = |section: &str| section.starts_with("[profile.dev") && section != "[profile.dev.package]";
    Ok(sections(&read(project.root.join("Cargo.toml"))?, is_profile))
}

/// A manifest in which one key, which is there once, has another value.
fn with(manifest: &str, key: &str, value: &str) -> Result<String> {
    let (is_it, new) = (|line: &str| line.starts_with(&format!("{key} = ")), format!("{key} = {value}"));
    ensure!(manifest.lines().filter(|line| is_it(line)).count() == 1, "a manifest must have one line with `{key}`");
    Ok(manifest.lines().flat_map(|line| [if is_it(line) { &new } else { line }, "\n"]).collect())
}

/// Lays files out in a folder of somebody's, as they are today, each with its text. What she has written there isn't among them.
pub fn lay_out(folder: &Path, files: impl IntoIterator<Item = (impl AsRef<Path>, impl AsRef<[u8]>)>) -> Result<()> {
    files.into_iter().try_for_each(|(file, text)| write(folder.join(file), text))
}

/// The copies in a workspace that can be built: the names of their folders.
pub fn members(workspace: &Path) -> Result<Vec<String>> {
    let is_one = |path: &Path| path.join("src/main.rs").exists() && path.join("Cargo.toml").exists();
    Ok(files(workspace, is_one)?.iter().map(|path| name(path)).filter(|name| name != LIBRARY).collect())
}

/// Writes what a workspace needs beside its copies, as it is today. Gives the files of the library that were there and
/// otherwise.
pub fn furnish(project: &Project, workspace: &Path, members: &[String]) -> Result<Vec<PathBuf>> {
    let is_readers = !workspace.starts_with(&project.target);
    let mark = if is_readers { MARK } else { "" };
    let mut manifest = manifest_of_all(&project.root, members, mark)?;
    // A lesson's own code takes little time, and a person waits for the compiler: only what it calls is optimized.
    for package in members.iter().map(|member| package(member)) {
        manifest += &format!("\n[profile.dev.package.{package}]\nopt-level = 0\ndebug = false\nincremental = false\n");
    }
    // The versions that the lessons are built with.
    lay_out(workspace, [("Cargo.toml", manifest), ("Cargo.lock", read(project.root.join("Cargo.lock"))?)])?;
    let (library, here) = (project.root.join(LIBRARY), workspace.join(LIBRARY));
    if is_readers {
        lay_out(workspace, [(CONFIG, config(&project.target))])?;
        return mirror(&library, &here);
    }
    link(&library, &here).with_context(|| format!("cannot make the link {}", here.display()))?;
    Ok(Vec::new())
}

/// What a learner's own program needs besides, so that it builds by itself, and an editor finds what it calls. In Rust: its workspace, and
/// where the lessons were built.
pub fn beside_rust(project: &Project) -> Result<Vec<(&'static str, String)>> {
    let target = if is_shared()? { project.target.clone() } else { project.target.join(EDITOR) };
    Ok(vec![
        (
            OWN_MANIFEST,
            manifest_of_all(&project.root, &["..".to_owned()], "")? + "\n[profile.dev.package.mine]\nopt-level = 0\n",
        ),
        (OWN_LOCK, read(project.root.join("Cargo.lock"))?),
        (CONFIG, config(&target)),
    ])
}

/// Writes the workspace of a learner's own program as it is today, with a link to the library. A program that was begun with an
/// older course is a workspace by itself, and stays so.
pub fn furnish_own(project: &Project, folder: &Path, library: &Path) -> Result<()> {
    if !read(folder.join("Cargo.toml"))?.contains(&format!("workspace = {OWN:?}")) {
        return Ok(());
    }
    let is_workspace = |file: &&(&str, String)| file.0.starts_with(OWN);
    lay_out(folder, beside_rust(project)?.iter().filter(is_workspace).map(|(file, text)| (*file, text)))?;
    let here = folder.join(OWN).join(LIBRARY);
    link(library, &here).with_context(|| format!("cannot make the link {}", here.display()))
}

/// What a learner's NIC needs besides. It calls nothing that set-up has unpacked, so every cargo can build where the lessons were built.
pub fn beside_nic(project: &Project) -> Result<[(&'static str, String); 2]> {
    Ok([("Cargo.lock", read(project.root.join("Cargo.lock"))?), (CONFIG, config(&project.target))])
}

/// Whether an editor's cargo takes what `make` has built.
pub fn is_shared() -> Result<bool> {
    let is_unpacked = UNPACKED.iter().any(|name| *name != LIBRARIES && env::var_os(name).is_some());
    Ok(!is_unpacked || compares(&output(Command::new("cargo").arg("--version"))?))
}

/// Whether a cargo of this version compares variables with those of its configuration.
fn compares(version: &str) -> bool {
    let minor = version.strip_prefix("cargo 1.").and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
    minor.map_or(true, |minor| minor >= COMPARES)
}

/// A cargo that builds where an editor's does, and as that will see it. What libraries the build scripts load no configuration can say.
pub fn editors_cargo() -> Command {
    let mut cargo = Command::new("cargo");
    for name in UNPACKED.iter().filter(|name| **name != LIBRARIES).chain(&["CARGO_TARGET_DIR"]) {
        cargo.env_remove(name);
    }
    cargo
}

/// The same in C: what was unpacked, for make and for clangd. What a shell says itself is newer.
pub fn beside_c() -> Vec<(&'static str, String)> {
    let line = |name: &&str| Some(format!("export {name} ?= {}\n", env::var(name).ok()?.replace('$', "$$")));
    let includes: String = paths(HEADERS).iter().map(|path| format!("-I{}\n", path.display())).collect();
    vec![
        ("unpacked.mk", UNPACKED.iter().filter_map(line).collect()),
        ("compile_flags.txt", format!("-std=c11\n{includes}")),
    ]
}

/// The same in Python, for pyright.
pub fn beside_python() -> Vec<(&'static str, String)> {
    vec![("pyrightconfig.json", format!("{:#}\n", serde_json::json!({ "extraPaths": paths("PYTHONPATH") })))]
}

/// The folders that a variable of the environment names.
fn paths(name: &str) -> Vec<PathBuf> {
    env::var_os(name).map_or(Vec::new(), |value| env::split_paths(&value).collect())
}

/// Below cargo's folder it is a link. Cargo remembers there which files it has read, and not those of the package: it would
/// look at a copy, and not see that the library itself has changed.
fn link(library: &Path, here: &Path) -> std::io::Result<()> {
    match fs::read_link(here) {
        Ok(there) if there == library => return Ok(()),
        // The clone was renamed, or copied with all that was built in it.
        Ok(_) => fs::remove_file(here)?,
        Err(_) => {}
    }
    symlink(library, here)
}

/// What an editor's cargo does not know by itself: where the lessons were built, and what was unpacked for that. What libibverbs
/// stands on is looked for in the linker's environment (ld(1)), where cargo puts another LD_LIBRARY_PATH; and a flag that says so
/// would have everything compiled again.
fn config(target: &Path) -> String {
    let known = UNPACKED.iter().filter_map(|name| Some((*name, env::var(name).ok()?)));
    let known = known.chain(env::var(LIBRARIES).ok().map(|folders| ("LD_RUN_PATH", folders)));
    let lines: String = known.map(|(name, value)| format!("{name} = {value:?}\n")).collect();
    format!("[build]\ntarget-dir = {target:?}\n\n[env]\n{lines}")
}

/// Makes the copy of the library as the library is.
fn mirror(library: &Path, copy: &Path) -> Result<Vec<PathBuf>> {
    // Older programs put a link to the library there: behind it the library itself would be made "as it is", and lose files.
    if copy.is_symlink() {
        fs::remove_file(copy).with_context(|| format!("cannot remove {}", copy.display()))?;
    }
    let is_part = |file: &String| PARTS.iter().any(|part| Path::new(file).starts_with(part));
    let wanted: Vec<String> = tree(library)?.into_iter().filter(is_part).collect();
    let mut changed = Vec::new();
    for file in &wanted {
        let (from, to) = (library.join(file), copy.join(file));
        let (text, is_there) = (read(&from)?, to.exists());
        if is_there && fs::read_to_string(&to).is_ok_and(|there| there == text) {
            continue;
        }
        write(&to, &text)?;
        match is_there {
            true => changed.push(to),
            // A file that is newer than what was built from it is built again.
            false => File::options().write(true).open(&to)?.set_modified(from.metadata()?.modified()?)?,
        }
    }
    for file in tree(copy)?.into_iter().filter(|file| !wanted.contains(file)) {
        let path = copy.join(file);
        // What a link leads to is somebody else's.
        if path.ancestors().skip(1).take_while(|folder| *folder != copy).any(Path::is_symlink) {
            continue;
        }
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        changed.push(path);
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_cargo_compares_variables_of_the_shell_alone() {
        let versions =
            ["cargo 1.75.0 (1d8b05cdd 2023-11-20)", "cargo 1.85.1", "cargo 1.86.0", "cargo 1.95.0-nightly (f2d3ce0bd)"];
        assert_eq!(versions.map(compares), [false, false, true, true]);
    }

    #[test]
    fn a_link_in_the_place_of_the_copy_is_not_followed() {
        let scratch = Project::find().unwrap().target.join("course/test-of-links");
        let _ = fs::remove_dir_all(&scratch);
        let (library, copy) = (scratch.join("library"), scratch.join("copy"));
        write(library.join("src/lib.rs"), "text").unwrap();
        write(library.join("examples/more.rs"), "no part of the copy").unwrap();
        symlink(&library, &copy).unwrap();
        assert_eq!(mirror(&library, &copy).unwrap(), Vec::<PathBuf>::new());
        assert!(library.join("examples/more.rs").exists() && !copy.join("examples").exists());
        write(scratch.join("else/mine.txt"), "mine").unwrap();
        symlink(scratch.join("else"), copy.join("src/else")).unwrap();
        mirror(&library, &copy).unwrap();
        assert!(scratch.join("else/mine.txt").exists(), "nor is one in it");
        fs::remove_dir_all(&scratch).unwrap();
    }

    #[test]
    fn what_is_edited_in_the_copy_of_the_library_stays_there_and_is_put_back() {
        let project = Project::find().unwrap();
        let workspace = project.target.join("course/test-of-workspaces");
        let _ = fs::remove_dir_all(&workspace);
        let furnish = || mirror(&project.root.join(LIBRARY), &workspace.join(LIBRARY)).unwrap();
        assert!(furnish().is_empty(), "all is new");
        let (here, there) = (workspace.join("common/src/pd.rs"), project.root.join("common/src/pd.rs"));
        let time = |path: &Path| path.metadata().unwrap().modified().unwrap();
        assert_eq!(time(&here), time(&there));
        fs::write(&here, "mine").unwrap();
        fs::write(here.with_file_name("mine.rs"), "mine").unwrap();
        assert_eq!(furnish(), [here.clone(), here.with_file_name("mine.rs")]);
        assert_eq!(read(&here).unwrap(), read(&there).unwrap());
        assert!(furnish().is_empty() && time(&here) > time(&there), "cargo builds it anew");
        fs::remove_dir_all(&workspace).unwrap();
    }
}

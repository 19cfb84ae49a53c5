//! The house as `tools/README.md` draws it: who knows whom, and that files do not know each other in a circle.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

use run::files::tree;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Who knows whom.
type Arrows = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below a folder with one of these endings.
fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let is_built = |path: &str| path.split('/').any(|part| part == "target" || part == "node_modules");
    let wanted = |path: &String| !is_built(path) && endings.iter().any(|end| path.ends_with(end));
    tree(folder).unwrap().into_iter().filter(wanted).map(|path| folder.join(path)).collect()
}

/// The crates, and the book, which is a folder of pages.
fn rooms() -> BTreeSet<String> {
    let rooms = fs::read_dir(root().join("tools")).unwrap().flatten().filter(|entry| entry.path().is_dir());
    rooms.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// The picture: (what the code knows, what the tests know besides).
fn drawn() -> (Arrows, Arrows) {
    let page = fs::read_to_string(root().join("tools/README.md")).unwrap();
    let picture = page.split("```").nth(1).unwrap();
    let names =
        |text: &str| text.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
    let (mut code, mut tests) = (Arrows::new(), Arrows::new());
    for line in picture.lines().filter(|line| line.contains('→') || line.contains("tests:")) {
        let (from, to) = line.split_once(' ').unwrap();
        let to = to.replace('→', "");
        let (to, of_tests) = to.split_once("tests:").unwrap_or((&to, ""));
        code.insert(from.trim().to_owned(), names(to));
        tests.insert(from.trim().to_owned(), names(of_tests));
    }
    (code, tests)
}

/// What a manifest names: (as dependencies, as those of tests).
fn manifest(room: &str, rooms: &BTreeSet<String>) -> (BTreeSet<String>, BTreeSet<String>) {
    let text = fs::read_to_string(root().join("tools").join(room).join("Cargo.toml")).unwrap_or_default();
    let manifest: serde_json::Value = basic_toml::from_str(&text).unwrap();
    let names = |part: &str| manifest[part].as_object().into_iter().flat_map(|table| table.keys().cloned());
    let part = |part: &str| names(part).filter(|name| rooms.contains(name)).collect();
    (part("dependencies"), part("dev-dependencies"))
}

/// The rooms that a file names by a path: in code, and not in a comment, which may point anywhere.
fn by_path(file: &Path, own: &str, rooms: &BTreeSet<String>) -> BTreeSet<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let comment = if file.extension().is_some_and(|end| end == "sh" || end == "toml") { "#" } else { "//" };
    let names = |line: &str, room: &str| {
        line.match_indices(&format!("{room}/")).any(|(at, found)| {
            let (before, after) = (&line[..at], &line[at + found.len()..]);
            let there = after.split(|c: char| !(c.is_alphanumeric() || "_.-".contains(c))).next().unwrap_or_default();
            // `../lab/runs` is a folder below target/, not one of ours.
            let is_beside = before.ends_with("../") && !there.is_empty() && !line.contains("target");
            (before.ends_with("tools/") || is_beside) && root().join("tools").join(room).join(there).exists()
        })
    };
    let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with(comment)).collect();
    let named = rooms.iter().filter(|room| *room != own && code.iter().any(|line| names(line, room)));
    named.cloned().collect()
}

#[test]
fn the_arrows_are_true() {
    let rooms = rooms();
    let (mut code, mut tests) = (Arrows::new(), Arrows::new());
    for room in &rooms {
        let folder = root().join("tools").join(room);
        let (mut known, mut of_tests) = manifest(room, &rooms);
        for file in files(&folder, &[".rs", ".sh", ".mjs", ".js", ".toml", ".css"]) {
            let mut parts = file.strip_prefix(&folder).unwrap().iter();
            let is_test = parts.any(|part| ["tests", "test", "benches", "fuzz"].iter().any(|name| part == *name));
            if is_test { &mut of_tests } else { &mut known }.extend(by_path(&file, room, &rooms));
        }
        of_tests = &of_tests - &known;
        code.insert(room.clone(), known);
        tests.insert(room.clone(), of_tests);
    }
    let (drawn_code, drawn_tests) = drawn();
    for (what, real, drawn) in [("", code, drawn_code), ("tests: ", tests, drawn_tests)] {
        for room in &rooms {
            let (real, drawn) = (real[room].clone(), drawn.get(room).cloned().unwrap_or_default());
            let (missing, untrue) = (&real - &drawn, &drawn - &real);
            assert!(missing.is_empty(), "tools/README.md lacks the arrow {room} → {what}{missing:?}");
            assert!(untrue.is_empty(), "tools/README.md has the arrow {room} → {what}{untrue:?}, which nothing needs");
        }
    }
}

#[test]
fn lessons_and_common_know_nothing_of_tools() {
    let rooms = rooms();
    for file in ["lessons", "common"].iter().flat_map(|folder| files(&root().join(folder), &["Cargo.toml", ".rs"])) {
        let text = fs::read_to_string(&file).unwrap();
        let names = |line: &str| match file.ends_with("Cargo.toml") {
            true => line.contains("tools/") || rooms.iter().any(|room| line.starts_with(&format!("{room}."))),
            false => line.contains("tools/") && (line.contains("include_") || line.contains("#[path")),
        };
        assert_eq!(text.lines().find(|line| names(line)), None, "{} names something below tools/", file.display());
    }
}

/// A module, as `cm/id`; the crate's own file is empty.
fn module(file: &Path, source: &Path) -> Vec<String> {
    let path = file.strip_prefix(source).unwrap().with_extension("");
    let mut names: Vec<String> = path.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if names.last().is_some_and(|name| ["mod", "lib", "main"].contains(&name.as_str())) {
        names.pop();
    }
    names
}

/// The names that come first behind `crate::` or `super::`: `crate::{a, b::{c, d}}` has a and b.
fn first_names(code: &str, start: &str) -> BTreeSet<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices(start).filter(|(at, _)| !code[..*at].ends_with(|c| is_word(c) || c == ':')) {
        let depths = || {
            let mut depth = 0;
            move |c: char| {
                depth += i32::from(c == '{') - i32::from(c == '}');
                depth
            }
        };
        // One name, or what is in braces, where commas of the outer pair divide.
        let (mut depth, mut of_list) = (depths(), depths());
        let list = code[at + start.len()..].split(|c| depth(c) == 0 && !is_word(c)).next().unwrap_or_default();
        let parts = list.split(|c| of_list(c) <= 1 && "{,".contains(c));
        found.extend(parts.map(|part| part.trim().chars().take_while(|c| is_word(*c)).collect::<String>()));
    }
    found
}

#[test]
fn no_circles_between_modules() {
    let mut sources: Vec<PathBuf> = vec![root().join("common/src")];
    for above in ["tools", "lessons"] {
        sources.extend(fs::read_dir(root().join(above)).unwrap().flatten().map(|entry| entry.path().join("src")));
    }
    let mut wrong = Vec::new();
    for source in sources.iter().filter(|source| source.is_dir()) {
        let files = files(source, &[".rs"]);
        let modules: Vec<(Vec<String>, &PathBuf)> = files.iter().map(|file| (module(file, source), file)).collect();
        let nouns: BTreeSet<String> = modules.iter().filter_map(|(own, _)| own.first().cloned()).collect();
        let mut knows = Arrows::new();
        // A noun is what is first in a path: a file, or a folder with all that is in it.
        for (own, file) in modules.iter().filter(|(_, file)| !file.ends_with("tests.rs")) {
            let (Some(noun), text) = (own.first(), fs::read_to_string(file).unwrap()) else { continue };
            let code = text.split("#[cfg(test)]").next().unwrap_or_default().lines();
            let code = code.map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
            let mut named = first_names(&code, "crate::");
            if own.len() == 1 {
                named.extend(first_names(&code, "super::"));
            }
            named.retain(|name| nouns.contains(name) && name != noun);
            knows.entry(noun.clone()).or_default().extend(named);
        }
        let circle = in_circles(&knows);
        wrong.extend((!circle.is_empty()).then(|| format!("{}: {}", source.display(), circle.join(", "))));
    }
    assert!(wrong.is_empty(), "files know each other in a circle:\n{}", wrong.join("\n"));
}

/// What a NIC that's nothing but data may take from the standard library, and what nobody may do with it. A cell counts the frames
/// that a test has had decoded.
const PURE: [&str; 12] =
    ["cell", "cmp", "collections", "fmt", "iter", "mem", "net", "ops", "slice", "str", "sync", "time"];
const OUTSIDE: [&str; 8] =
    ["Instant", "SystemTime", "TcpListener", "TcpStream", "UdpSocket", "ToSocketAddrs", "println", "eprintln"];

/// What code takes from outside: a module of the standard library, or a name in one that's allowed.
fn impure(code: &str) -> BTreeSet<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let modules = first_names(code, "std::").into_iter().filter(|name| !PURE.contains(&name.as_str()));
    let words = code.split(|c| !is_word(c)).filter(|word| OUTSIDE.contains(word)).map(str::to_owned);
    modules.chain(words).filter(|name| !name.is_empty()).collect()
}

#[test]
fn the_nic_and_the_bench_know_no_clock_thread_file_or_socket() {
    for room in ["nic", "roce", "workbench"] {
        for file in files(&root().join("tools").join(room).join("src"), &[".rs"]) {
            let text = fs::read_to_string(&file).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default().lines();
            let code = code.map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
            let found = impure(&code);
            assert!(found.is_empty(), "{} takes {found:?} from outside: it has to be handed in", file.display());
        }
    }
    assert_eq!(
        impure("use std::time::{Duration, Instant};\nstd::thread::sleep(std::fmt::x);"),
        names(["Instant", "thread"])
    );
    assert_eq!(impure("use std::{fs::File, net::{IpAddr, UdpSocket}};\nlet instant = 1;"), names(["UdpSocket", "fs"]));
}

fn names<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

/// Those in a circle, or between two circles. One that knows none of the others, or that none knows, isn't among them.
fn in_circles(knows: &Arrows) -> Vec<String> {
    let mut left = knows.clone();
    loop {
        let (before, names) = (left.len(), left.keys().cloned().collect::<BTreeSet<_>>());
        let known: BTreeSet<String> = left.values().flatten().cloned().collect();
        left.retain(|name, knows| known.contains(name) && !knows.is_disjoint(&names));
        if left.len() == before {
            return left.into_keys().collect();
        }
    }
}

#[test]
fn a_circle_is_found() {
    let circles = |pairs: &[(&str, &str)]| {
        let mut knows = Arrows::new();
        for (from, to) in pairs {
            knows.entry((*from).into()).or_default().insert((*to).into());
        }
        in_circles(&knows)
    };
    assert_eq!(circles(&[("a", "b"), ("b", "c"), ("d", "c")]), [""; 0]);
    assert_eq!(circles(&[("x", "a"), ("a", "b"), ("b", "c"), ("c", "a"), ("c", "y")]), ["a", "b", "c"]);
    let found = first_names("use crate::{a::{B, c}, d};\nlet x = super::e::F::g(crate::f::G);", "crate::");
    assert_eq!(found.iter().filter(|name| !name.is_empty()).collect::<Vec<_>>(), ["a", "d", "f"]);
}

//! The house as `tools/README.md` draws it: who knows whom, and that files do not know each other in a circle.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

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
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true if path.ends_with("target") || path.ends_with("node_modules") => {}
            true => found.extend(files(&path, endings)),
            false => found.extend(endings.iter().any(|end| path.to_string_lossy().ends_with(end)).then_some(path)),
        }
    }
    found.sort();
    found
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
    let part = |heading: &str| -> BTreeSet<String> {
        let part = text.split_once(heading).map_or("", |(_, rest)| rest.split("\n[").next().unwrap_or_default());
        let names = part.lines().map(|line| line.split(['.', ' ', '=']).next().unwrap_or_default().to_owned());
        names.filter(|name| rooms.contains(name)).collect()
    };
    (part("\n[dependencies]"), part("\n[dev-dependencies]"))
}

/// The rooms that a file names by a path: in code, and not in a comment, which may point anywhere.
fn by_path(file: &Path, own: &str, rooms: &BTreeSet<String>) -> BTreeSet<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let comment = if file.extension().is_some_and(|end| end == "sh" || end == "toml") { "#" } else { "//" };
    let code = text.lines().filter(|line| !line.trim_start().starts_with(comment));
    let mut found = BTreeSet::new();
    for line in code {
        for room in rooms.iter().filter(|room| *room != own) {
            let mut at = 0;
            while let Some(position) = line[at..].find(&format!("{room}/")) {
                let before = &line[..at + position];
                // `../lab/runs` is a folder below target/, not one of ours.
                let after = &line[at + position + room.len() + 1..];
                let there =
                    after.split(|c: char| !(c.is_alphanumeric() || "_.-/".contains(c))).next().unwrap_or_default();
                let there = there.split('/').next().unwrap_or_default();
                let ours = there.is_empty() || root().join("tools").join(room).join(there).exists();
                let named = before.ends_with("tools/")
                    || (before.ends_with("../") && !there.is_empty() && ours && !line.contains("target"));
                if named && ours {
                    found.insert(room.clone());
                }
                at += position + room.len();
            }
        }
    }
    found
}

#[test]
fn the_arrows_are_true() {
    let rooms = rooms();
    let (mut code, mut tests) = (Arrows::new(), Arrows::new());
    for room in &rooms {
        let folder = root().join("tools").join(room);
        let (mut known, mut of_tests) = manifest(room, &rooms);
        for file in files(&folder, &[".rs", ".sh", ".mjs", ".js", ".toml", ".css"]) {
            let is_test = file
                .strip_prefix(&folder)
                .unwrap()
                .components()
                .any(|part| ["tests", "test", "benches", "fuzz"].iter().any(|name| part.as_os_str() == *name));
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
    for folder in ["lessons", "common"] {
        for file in files(&root().join(folder), &["Cargo.toml"]) {
            let text = fs::read_to_string(&file).unwrap();
            assert!(!text.contains("tools/"), "{} names something below tools/", file.display());
            for room in &rooms {
                assert!(
                    !text.lines().any(|line| line.starts_with(&format!("{room}."))),
                    "{} needs {room}",
                    file.display()
                );
            }
        }
        for file in files(&root().join(folder), &[".rs"]) {
            let text = fs::read_to_string(&file).unwrap();
            let mut lines = text.lines().filter(|line| line.contains("include_") || line.contains("#[path"));
            assert!(!lines.any(|line| line.contains("tools/")), "{} includes a file of tools/", file.display());
        }
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

/// The paths behind a `use` or in code, each whole: `crate::{a, b::c}` is two.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        let mut rest = code;
        while let Some(at) = rest.find(start) {
            let word = rest[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':');
            rest = &rest[at..];
            if !word {
                let end = rest.find(|c: char| !(c.is_alphanumeric() || "_:{}, \n*".contains(c))).unwrap_or(rest.len());
                found.extend(spread(&rest[..end]));
            }
            rest = &rest[start.len()..];
        }
    }
    found
}

/// `a::{b, c::d}` is `a::b` and `a::c::d`.
fn spread(text: &str) -> Vec<Vec<String>> {
    let names = |text: &str| -> Vec<String> {
        let word = |name: &str| {
            name.trim().split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default().to_owned()
        };
        text.split("::").map(word).filter(|name| !name.is_empty()).collect()
    };
    let Some((before, inside)) = text.split_once('{').filter(|(before, _)| before.ends_with("::")) else {
        let one = text.split(['{', ',', ' ', '\n', '}']).next().unwrap_or_default();
        return vec![names(one)];
    };
    let (mut depth, mut parts, mut part) = (1, Vec::new(), String::new());
    for c in inside.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        match c {
            ',' if depth == 1 => parts.push(std::mem::take(&mut part)),
            _ if depth == 0 => break,
            _ => part.push(c),
        }
    }
    parts.push(part);
    let with = |rest: Vec<String>| [names(before), rest].concat();
    parts.iter().flat_map(|part| spread(part.trim())).map(with).collect()
}

#[test]
fn no_circles_between_modules() {
    let mut sources: Vec<PathBuf> = vec![root().join("common/src")];
    for above in ["tools", "lessons"] {
        sources.extend(fs::read_dir(root().join(above)).unwrap().flatten().map(|entry| entry.path().join("src")));
    }
    let mut wrong = Vec::new();
    for source in sources.iter().filter(|source| source.is_dir()) {
        let modules: BTreeMap<Vec<String>, PathBuf> = files(source, &[".rs"])
            .into_iter()
            .filter(|file| !file.ends_with("tests.rs"))
            .map(|file| (module(&file, source), file))
            .collect();
        let mut knows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (own, file) in &modules {
            let text = fs::read_to_string(file).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default().lines();
            let code: Vec<&str> = code.map(|line| line.split("//").next().unwrap_or_default()).collect();
            for path in paths(&code.join("\n")) {
                let mut full: Vec<String> =
                    if path[0] == "crate" { Vec::new() } else { own[..own.len().saturating_sub(1)].to_vec() };
                full.extend(path[1..].iter().cloned());
                while !full.is_empty() && !modules.contains_key(&full) {
                    full.pop();
                }
                // A noun is what stands first in a path: a file, or a folder with all that is in it.
                if let (Some(from), Some(to)) = (own.first(), full.first()) {
                    if from != to {
                        knows.entry(from.clone()).or_default().insert(to.clone());
                    }
                }
            }
        }
        let circle = circle(&knows).map(|circle| format!("{}: {}", source.display(), circle.join(" → ")));
        wrong.extend(circle);
    }
    assert!(wrong.is_empty(), "files know each other in a circle:\n{}", wrong.join("\n"));
}

/// Some circle, if there is one.
fn circle(knows: &Arrows) -> Option<Vec<String>> {
    fn walk(at: &str, knows: &Arrows, way: &mut Vec<String>, done: &mut BTreeSet<String>) -> bool {
        if let Some(first) = way.iter().position(|name| name == at) {
            way.drain(..first);
            way.push(at.to_owned());
            return true;
        }
        if !done.insert(at.to_owned()) {
            return false;
        }
        way.push(at.to_owned());
        let found = knows.get(at).is_some_and(|next| next.iter().any(|next| walk(next, knows, way, done)));
        if !found {
            way.pop();
        }
        found
    }
    let (mut way, mut done) = (Vec::new(), BTreeSet::new());
    knows.keys().any(|name| walk(name, knows, &mut way, &mut done)).then_some(way)
}

#[test]
fn a_circle_is_found() {
    let knows = |pairs: &[(&str, &str)]| {
        let mut knows = Arrows::new();
        for (from, to) in pairs {
            knows.entry((*from).into()).or_default().insert((*to).into());
        }
        knows
    };
    assert_eq!(circle(&knows(&[("a", "b"), ("b", "c"), ("d", "c")])), None);
    assert_eq!(
        circle(&knows(&[("x", "a"), ("a", "b"), ("b", "c"), ("c", "a")])),
        Some(["a", "b", "c", "a"].map(String::from).to_vec())
    );
    let code = "use crate::{a::{B, c}, d};\nlet x = super::e::F::g(1);";
    let found: Vec<String> = paths(code).iter().map(|path| path.join("::")).collect();
    assert_eq!(found, ["crate::a::B", "crate::a::c", "crate::d", "super::e::F::g"]);
}

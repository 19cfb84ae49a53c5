//! Constructions that no English sentence of ours needs, so that they can be searched for without false alarms.
//!
//! CONTRIBUTING.md lists more of them, which only a person can tell from good sentences.

use anyhow::Result;
use run::files::{read, tree};
use std::path::Path;

/// What to look for, and what to write instead.
const AVOIDED: [(&str, &str); 6] = [
    ("otherwise than", "\"differently from\", or how it differs"),
    ("drawn by lot", "\"random\""),
    ("decided by lot", "\"decided at random\""),
    ("comes of it", "\"what happens\", or what follows"),
    ("come of it", "\"the outcome\", or \"pass when\""),
    ("is told as", "\"is written as\", or \"counts as\""),
];

/// Where people read sentences.
const FOLDERS: [&str; 5] = ["captures", "common", "docs", "lessons", "tools"];
const FILES: [&str; 2] = ["Makefile", "README.md"];
const ENDINGS: [&str; 9] = [".c", ".h", ".js", ".md", ".mjs", ".py", ".rs", ".sh", ".toml"];
/// This file, and what isn't ours.
const EXCEPT: [&str; 3] = ["docs/wording.rs", "target/", "node_modules/"];

/// Each of these constructions in the repository.
pub fn problems() -> Result<Vec<String>> {
    let mut paths: Vec<String> = FILES.map(String::from).to_vec();
    for folder in FOLDERS {
        paths.extend(tree(Path::new(folder))?.into_iter().map(|path| format!("{folder}/{path}")));
    }
    let is_read = |path: &&String| {
        let is_text = FILES.contains(&path.as_str()) || ENDINGS.iter().any(|end| path.ends_with(end));
        is_text && !EXCEPT.iter().any(|part| path.contains(part))
    };
    let mut found = Vec::new();
    for path in paths.iter().filter(is_read) {
        found.extend(of_text(path, &read(path)?));
    }
    Ok(found)
}

fn of_text(path: &str, text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map(|line| line.trim_start_matches([' ', '/', '!', '#', '*', '>'])).collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        // A construction may go on in the next line, but it counts where it begins.
        let joined = format!("{line} {}", lines.get(at + 1).unwrap_or(&"")).to_lowercase();
        let is_whole = |start: usize| !joined[..start].ends_with(char::is_alphabetic);
        let begins =
            |avoided: &str| joined.match_indices(avoided).any(|(start, _)| start < line.len() && is_whole(start));
        let avoided = AVOIDED.iter().filter(|(avoided, _)| begins(avoided));
        found.extend(
            avoided.map(|(avoided, better)| format!("{path}:{}: instead of \"{avoided}\" write {better}", at + 1)),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_construction_is_found_where_it_begins() {
        let text =
            "// Fine.\n/// What the device does otherwise\n/// than rdma_rxe.\nlet drawn = lot(by);\n# Comes of it\n";
        let expected = [
            "a.rs:2: instead of \"otherwise than\" write \"differently from\", or how it differs",
            "a.rs:5: instead of \"comes of it\" write \"what happens\", or what follows",
        ];
        assert_eq!(of_text("a.rs", text), expected);
        assert_eq!(of_text("a.md", "Otherwise,\nthan that: what has become of it\n"), [""; 0]);
    }
}

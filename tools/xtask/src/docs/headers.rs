//! The installed C headers: which names exist, how calls are declared, which numbers the statuses have.

use super::page::{Page, Wrong};
use super::sources::Sources;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What pages name is declared in one of these.
const FILES: [&str; 2] = ["infiniband/verbs.h", "rdma/rdma_cma.h"];

/// The text of the headers, without comments, each run of white space as one blank.
#[derive(Clone, Debug)]
pub struct Headers(String);

impl Headers {
    /// Reads them from the folder that set-up unpacks packages to, or from the one that pkg-config names, or from the usual one.
    pub fn installed(root: &Path) -> Result<Headers> {
        let folders = [root.join("target/tools/usr/include"), named_by_pkg_config(), "/usr/include".into()];
        let folder = folders.iter().find(|folder| folder.join(FILES[0]).exists());
        let folder = folder.context("infiniband/verbs.h is not installed: `make setup` gets it")?;
        let mut text = String::new();
        for file in FILES {
            let file = folder.join(file);
            text += &fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        }
        let code = text.split("/*").map(|part| part.split_once("*/").map_or(part, |(_, code)| code));
        Ok(Headers(squeeze(&code.collect::<String>())))
    }

    /// Whether a call is declared like this; without its semicolon.
    pub fn declares(&self, prototype: &str) -> bool {
        let prototype = squeeze(prototype);
        let mut places = self.0.match_indices(&prototype);
        places.any(|(at, found)| !self.0[..at].ends_with(is_word) && !self.0[at + found.len()..].starts_with(is_word))
    }

    /// All names in the headers.
    pub fn names(&self) -> BTreeSet<&str> {
        self.0.split(|c| !is_word(c)).filter(|word| !word.is_empty()).collect()
    }

    /// The calls of verbs and of the connection manager.
    pub fn calls(&self) -> BTreeSet<&str> {
        let before = self.0.split('(').filter_map(|part| part.rsplit(|c| !is_word(c)).next());
        before.filter(|name| name.starts_with("ibv_") || name.starts_with("rdma_")).collect()
    }

    /// The constants of an enum, each with its number.
    pub fn values(&self, name: &str) -> Vec<(&str, i64)> {
        let body = self.0.split_once(&format!("enum {name}{{")).and_then(|(_, rest)| rest.split_once('}'));
        let (mut values, mut next) = (Vec::new(), 0);
        for constant in body.map_or("", |(body, _)| body).split(',').filter(|constant| !constant.is_empty()) {
            let (name, value) = constant.split_once('=').unwrap_or((constant, ""));
            next = value.parse().unwrap_or(next);
            values.push((name, next));
            next += 1;
        }
        values
    }
}

/// Prototypes on a page, in fenced blocks of the language `c`, that no header has.
pub fn problems(page: &Page, sources: &Sources) -> Wrong {
    let of_block = |block: Range<usize>| {
        let (fence, text) = (block.start - 1, page.lines[block].join("\n"));
        let prototypes = text.split(';').map(str::trim).filter(|prototype| !prototype.is_empty());
        let unknown = prototypes.filter(|prototype| !sources.headers.declares(prototype));
        unknown.map(|it| (fence, format!("no installed header declares `{it}`"))).collect::<Wrong>()
    };
    page.prototypes().into_iter().flat_map(of_block).collect()
}

fn named_by_pkg_config() -> PathBuf {
    let output = Command::new("pkg-config").args(["--variable=includedir", "libibverbs"]).output();
    output.map_or_else(|_| PathBuf::new(), |output| String::from_utf8_lossy(&output.stdout).trim().into())
}

/// Whether a character can be part of a name.
pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Blanks only where two words would grow together.
fn squeeze(code: &str) -> String {
    let mut squeezed = String::new();
    let mut gap = false;
    for c in code.chars() {
        if !c.is_whitespace() {
            if gap && is_word(c) && squeezed.ends_with(is_word) {
                squeezed.push(' ');
            }
            squeezed.push(c);
        }
        gap = c.is_whitespace();
    }
    squeezed
}

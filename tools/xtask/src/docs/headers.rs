//! The installed C headers: which names exist, how calls are declared, which numbers the statuses have.

use super::page::{Page, Wrong};
use super::sources::Sources;
use anyhow::{Context, Result};
use run::files::output;
use std::collections::BTreeSet;
use std::io::Write;
use std::ops::Range;
use std::process::Command;
use tempfile::NamedTempFile;

/// What pages name is declared in these.
const INCLUDES: &str = "#include <infiniband/verbs.h>\n#include <rdma/rdma_cma.h>\n#include <rdma/rdma_verbs.h>\n";

#[derive(Clone, Debug)]
pub struct Headers {
    /// Their text, as the compiler sees it, each run of white space as one blank.
    text: String,
    /// Every word of it.
    pub names: BTreeSet<String>,
}

impl Headers {
    /// Has the compiler find and read them.
    pub fn installed() -> Result<Headers> {
        let mut file = NamedTempFile::new()?;
        file.write_all(INCLUDES.as_bytes())?;
        let code = output(Command::new("cc").args(["-E", "-P", "-x", "c"]).arg(file.path()));
        let needs =
            "the headers of libibverbs and librdmacm: `make setup` gets them, `. target/tools/env` says where they are";
        let text = squeeze(&code.context(needs)?);
        let names = text.split(|c| !is_word(c)).filter(|word| !word.is_empty()).map(String::from).collect();
        Ok(Headers { text, names })
    }

    /// Whether a call is declared like this; without its semicolon.
    pub fn declares(&self, prototype: &str) -> bool {
        let prototype = squeeze(prototype);
        let mut places = self.text.match_indices(&prototype);
        places.any(|(at, found)| {
            !self.text[..at].ends_with(is_word) && !self.text[at + found.len()..].starts_with(is_word)
        })
    }

    /// The calls of verbs and of the connection manager.
    pub fn calls(&self) -> BTreeSet<&str> {
        let before = self.text.split('(').filter_map(|part| part.rsplit(|c| !is_word(c)).next());
        before.filter(|name| name.starts_with("ibv_") || name.starts_with("rdma_")).collect()
    }

    /// The constants of an enum, each with its number.
    pub fn values(&self, name: &str) -> Vec<(&str, i64)> {
        let body = self.text.split_once(&format!("enum {name}{{")).and_then(|(_, rest)| rest.split_once('}'));
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
    page.blocks("c").into_iter().flat_map(of_block).collect()
}

pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Blanks only where two words would grow together.
fn squeeze(code: &str) -> String {
    code.split_whitespace().fold(String::new(), |text, word| {
        let gap = if text.ends_with(is_word) && word.starts_with(is_word) { " " } else { "" };
        text + gap + word
    })
}

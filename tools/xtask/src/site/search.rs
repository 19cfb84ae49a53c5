//! What the book's search looks through: the text of each part of a page, without what a run has recorded. `tools/book/search`
//! says how it's searched.

use super::{pages, OWN_PAGES};
use crate::docs::page::{code, Page};
use crate::docs::sources::files;
use crate::docs::{links, ERRORS};
use anyhow::Result;
use run::files::{read, write};
use serde::Serialize;
use std::path::Path;

const GLOSSARY: &str = "docs/glossary.md";
/// The script that searches.
const FINDER: &str = "tools/book/search/finder.js";

/// A part of a page, as `finder.js` reads it.
#[derive(Debug, Serialize, PartialEq)]
struct Part {
    /// Where it is in the book.
    url: String,
    /// The page's heading, and the part's own one if that's another.
    title: Vec<String>,
    /// People search for an error by what was printed, and for a term by its name, so both win over pages that only mention it.
    kind: Kind,
    /// What programs print, of an error's page; what a term is short for.
    said: Vec<String>,
    /// The paragraphs and rows.
    body: Vec<String>,
}

#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Error,
    Term,
    Page,
}

/// Writes the script that searches, and the index, which is a script because a page from a folder may load nothing else.
pub fn lay_out(book: &[Page], to: &Path) -> Result<()> {
    let own: Result<Vec<_>> = files(OWN_PAGES, ".md")?.iter().map(|path| Ok(Page::new(path, &read(path)?))).collect();
    let parts: Vec<Part> = book.iter().chain(&own?).flat_map(parts).collect();
    super::copy(FINDER, to.join("finder.js"))?;
    write(to.join("index.js"), format!("globalThis.bookIndex = {};\n", serde_json::to_string(&parts)?))
}

/// The parts of a page: what's below each of its headings. An error's page is short, and found as a whole.
fn parts(page: &Page) -> Vec<Part> {
    let kind = match page.path.as_str() {
        GLOSSARY => Kind::Term,
        path if path.starts_with(ERRORS) && !path.ends_with("README.md") => Kind::Error,
        _ => Kind::Page,
    };
    let anchors = links::anchors(page);
    let heads: Vec<_> = anchors.iter().filter(|(at, _)| page.lines[*at].starts_with('#')).collect();
    let heads = if kind == Kind::Error { &heads[..heads.len().min(1)] } else { &heads[..] };
    let ends = heads.iter().skip(1).map(|(at, _)| *at).chain([page.lines.len()]);
    let place = pages::place(page.path.strip_prefix(OWN_PAGES).map_or(&page.path, |name| &name[1..]));
    let url = place.replace(".md", ".html");
    let title = |at: usize| plain(page.lines[at].trim_start_matches(['#', ' ']));
    let part = |((at, anchor), end): (&&(usize, String), usize)| {
        let mut names = vec![title(heads[0].0)];
        names.extend((*at != heads[0].0).then(|| title(*at)));
        let url = if names.len() == 1 { url.clone() } else { format!("{url}#{anchor}") };
        let body = body(page, at + 1, end);
        let said = match kind {
            Kind::Error => printed(page),
            Kind::Term => body
                .first()
                .and_then(|text| text.split_once(": "))
                .map(|(name, _)| name.to_owned())
                .into_iter()
                .collect(),
            Kind::Page => Vec::new(),
        };
        Part { url, title: names, kind, said, body }
    };
    heads.iter().zip(ends).map(part).filter(|part| !part.body.is_empty()).collect()
}

/// What programs print, line by line.
fn printed(page: &Page) -> Vec<String> {
    let lines = page.blocks("text").into_iter().flat_map(|block| page.lines[block].to_vec());
    // The sentence below the heading names the status, which programs print as well.
    lines.chain(page.lines.get(1).into_iter().flat_map(|line| code(line).map(str::to_owned))).collect()
}

/// The paragraphs of these lines, and the rows of tables: code, runs and what a mark says are left out.
fn body(page: &Page, from: usize, to: usize) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    for at in from..to {
        let line = page.lines[at].trim();
        let is_alone =
            line.is_empty() || page.fenced[at] || line.starts_with(['|', '-', '#']) || line.starts_with("<!--");
        let text = if page.fenced[at] || line.starts_with("|-") || line.starts_with("<!--") {
            String::new()
        } else {
            plain(line)
        };
        match paragraphs.last_mut().filter(|_| !is_alone) {
            Some(paragraph) if !paragraph.is_empty() => *paragraph += &format!(" {text}"),
            Some(paragraph) => *paragraph = text,
            None => paragraphs.extend([text, String::new()]),
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs
}

/// A line without Markdown and HTML.
fn plain(line: &str) -> String {
    let line = links::without_targets(line);
    let mut pieces = line.split('<');
    let first = pieces.next().unwrap_or_default().to_owned();
    let text = pieces.fold(first, |text, piece| match piece.split_once('>') {
        Some((tag, rest)) if tag.starts_with(|c: char| c == '/' || c.is_ascii_alphabetic()) => text + rest,
        _ => text + "<" + piece,
    });
    let text = text.trim_matches(['|', ' ']).replace(" | ", " · ");
    text.replace(['[', ']', '`'], "").replace("**", "").trim_start_matches(['-', '#', ' ']).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_its_words_and_no_run() {
        let text = "# Lesson\nIt *begins*.\n\n## [Run](a.md)\n<!-- generated: log 04 client -->\n```text\nlogged\n```\n<!-- end -->\n\
                    The `CQ` of\n**both**.\n\n| a | b |\n|---|---|\n| 1 | <b>2</b> |\n";
        let parts = parts(&Page::new("docs/04_a.md", text));
        let [first, run] = &parts[..] else { panic!("{parts:?}") };
        assert_eq!((first.url.as_str(), &first.body[..]), ("docs/04_a.html", &["It *begins*.".to_owned()][..]));
        assert_eq!(
            (run.url.as_str(), &run.title[..]),
            ("docs/04_a.html#run", &["Lesson".to_owned(), "Run".to_owned()][..])
        );
        assert_eq!(run.body, ["The CQ of both.", "a · b", "1 · 2"]);
    }

    #[test]
    fn an_error_is_found_by_what_was_printed_and_a_term_by_its_name() {
        let error =
            &parts(&Page::new("docs/errors/a.md", "# It failed\nWhy.\n\n```text\nfailed 12\n```\n## More\nEnd.\n"))[..];
        assert!(
            matches!(error, [Part { kind: Kind::Error, said, body, .. }] if said[..] == ["failed 12"] && body.len() == 3),
            "{error:?}"
        );
        let terms = parts(&Page::new(GLOSSARY, "# Glossary\nEach.\n\n### QP\nQueue pair: two queues.\n"));
        assert_eq!((terms[1].kind, &terms[1].said[..]), (Kind::Term, &["Queue pair".to_owned()][..]));
    }
}

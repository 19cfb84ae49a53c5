//! A page of Markdown: its marks, fenced blocks and tables.

use super::links;
use std::ops::Range;

/// What does not hold on a page: the line, and what is wrong with it, and what to do about it.
pub type Wrong = Vec<(usize, String)>;

#[derive(Clone, Debug)]
pub struct Page {
    /// Its file, from the repository's folder.
    pub path: String,
    /// Its lines. Places in a page are indices into them; people get the number from 1.
    pub lines: Vec<String>,
    /// For each line, whether it is inside a fenced block or one of its fences.
    pub fenced: Vec<bool>,
    /// For each line, whether it is compared with its source: what is generated, what a mark says where it comes from, and C
    /// prototypes.
    pub quoted: Vec<bool>,
    /// All marks outside of fenced blocks, in order.
    pub marks: Vec<Mark>,
}

/// The comment `<!-- KIND: WORDS -->` on a line of its own.
#[derive(Clone, Debug)]
pub struct Mark {
    pub line: usize,
    pub kind: String,
    words: String,
}

#[derive(Clone, Debug)]
pub struct Table {
    /// The names of the columns, in lower case.
    pub columns: Vec<String>,
    /// The rows below, each with its line, and with a cell for each column, or more.
    pub rows: Vec<(usize, Vec<String>)>,
}

impl Page {
    pub fn new(path: &str, text: &str) -> Page {
        let lines: Vec<String> = text.lines().map(String::from).collect();
        let mut open: Option<&str> = None;
        let mut fenced = Vec::with_capacity(lines.len());
        for line in &lines {
            fenced.push(open.is_some() || fence(line).is_some());
            open = match open {
                None => fence(line),
                Some(opening) => Some(opening).filter(|opening| !closes(line, opening)),
            };
        }
        let mut page = Page { path: path.into(), quoted: vec![false; lines.len()], marks: Vec::new(), fenced, lines };
        let outside = page.lines.iter().enumerate().filter(|(at, _)| !page.fenced[*at]);
        page.marks = outside.filter_map(|(at, line)| mark(at, line)).collect();
        for mark in &page.marks {
            let part = if mark.kind == "generated" { page.part_after(mark.line) } else { page.block_after(mark.line) };
            page.quoted[mark.line] = true;
            page.quoted[part.unwrap_or_default()].fill(true);
        }
        for prototypes in page.blocks("c") {
            page.quoted[prototypes].fill(true);
        }
        // What other programs print: a test runs them, or the page names its source.
        if page.path.starts_with(super::ERRORS) {
            for printed in page.blocks("text") {
                page.quoted[printed].fill(true);
            }
        }
        page
    }

    pub fn text(&self) -> String {
        self.lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
    }

    /// One of the lines, as people name it.
    pub fn place(&self, line: usize) -> String {
        format!("{}:{}", self.path, line + 1)
    }

    /// The number of the lesson that the page is about: `04`. Lesson 00 is none: it is the set-up.
    pub fn lesson(&self) -> Option<&str> {
        let name = self.path.strip_prefix("docs/")?;
        let (number, _) = name.strip_prefix("more/").unwrap_or(name).split_once('_')?;
        (number.len() == 2 && number != "00" && number.bytes().all(|c| c.is_ascii_digit())).then_some(number)
    }

    /// The lines that are not compared with their sources, without what their links lead to.
    pub fn prose(&self) -> impl Iterator<Item = (usize, String)> + '_ {
        let lines = self.lines.iter().enumerate().filter(|(at, _)| !self.quoted[*at]);
        lines.map(|(at, line)| (at, links::without_targets(line)))
    }

    /// The lines that are compared with their sources.
    pub fn quotes(&self) -> String {
        let lines = self.lines.iter().zip(&self.quoted).filter(|(_, quoted)| **quoted);
        lines.flat_map(|(line, _)| [line, "\n"]).collect()
    }

    /// Whether a line is about an experiment whose run is not kept: its paragraph says "tried in the lab", or it is below
    /// the heading "Break it".
    pub fn tried(&self, at: usize) -> bool {
        let heading = self.lines[..=at].iter().rev().find(|line| line.starts_with("## "));
        heading.is_some_and(|heading| heading == "## Break it")
            || self.paragraph(at).to_lowercase().contains("tried in the lab")
    }

    /// The lines around this one, up to the next empty ones, as one.
    pub fn paragraph(&self, at: usize) -> String {
        let blank = |at: &usize| self.lines[*at].trim().is_empty();
        let start = (0..at).rev().find(blank).unwrap_or(0);
        let end = (at..self.lines.len()).find(blank).unwrap_or(self.lines.len());
        self.lines[start..end].join(" ")
    }

    /// What is code on the lines that are not compared with their sources: all of a line in a fenced block, else what is in
    /// backquotes.
    pub fn code(&self) -> Vec<(usize, String)> {
        let of_line = |(at, line): (usize, String)| match self.fenced[at] {
            true => vec![(at, line)],
            false => code(&line).map(|code| (at, code.to_owned())).collect(),
        };
        self.prose().flat_map(of_line).collect()
    }

    /// The files that marks say to be quoted.
    pub fn quoted_files(&self) -> impl Iterator<Item = String> + '_ {
        self.marks.iter().filter(|mark| mark.kind == "code").map(|mark| mark.words.trim().to_owned())
    }

    /// The content of each fenced block of this language.
    pub fn blocks(&self, language: &str) -> Vec<Range<usize>> {
        let fence = format!("```{language}");
        (1..self.lines.len()).filter(|at| self.lines[*at] == fence).filter_map(|at| self.block_after(at - 1)).collect()
    }

    /// The first line below a mark that is not empty; a part may have several marks, one below the other.
    fn below(&self, line: usize) -> Option<usize> {
        let is_mark = |at: usize| mark(at, &self.lines[at]).is_some();
        (line + 1..self.lines.len()).find(|&at| !self.lines[at].trim().is_empty() && !is_mark(at))
    }

    /// The content of the fenced block below a mark.
    pub fn block_after(&self, line: usize) -> Option<Range<usize>> {
        let start = self.below(line)?;
        let opening = fence(&self.lines[start])?;
        let end = (start + 1..self.lines.len()).find(|&at| closes(&self.lines[at], opening))?;
        Some(start + 1..end)
    }

    /// What is between a mark and the next `<!-- end -->`.
    pub fn part_after(&self, line: usize) -> Option<Range<usize>> {
        let rest = line + 1..self.lines.len();
        let end = rest.clone().find(|&at| self.lines[at].trim() == "<!-- end -->")?;
        let next = rest.clone().find(|&at| mark(at, &self.lines[at]).is_some_and(|mark| mark.kind == "generated"));
        next.map_or(true, |next| next > end).then_some(line + 1..end)
    }

    /// The table below a mark.
    pub fn table_after(&self, line: usize) -> Option<Table> {
        self.table_at(self.below(line)?)
    }

    pub fn tables(&self) -> impl Iterator<Item = Table> + '_ {
        (0..self.lines.len()).filter(|at| !self.fenced[*at]).filter_map(|at| self.table_at(at))
    }

    /// The table that begins with this line.
    fn table_at(&self, start: usize) -> Option<Table> {
        let columns: Vec<String> = cells(&self.lines[start])?.iter().map(|cell| cell.to_lowercase()).collect();
        let ruler = self.lines.get(start + 1)?;
        if !ruler.contains("---") || !ruler.trim().chars().all(|c| "|-: ".contains(c)) {
            return None;
        }
        let row = |at: usize| {
            let mut cells = cells(&self.lines[at])?;
            cells.resize(columns.len().max(cells.len()), String::new());
            Some((at, cells))
        };
        Some(Table { rows: (start + 2..self.lines.len()).map_while(row).collect(), columns })
    }
}

impl Mark {
    pub fn words(&self) -> Vec<&str> {
        self.words.split_whitespace().collect()
    }
}

impl Table {
    /// The rows of which something is said to be wrong.
    pub fn wrong(&self, mut what: impl FnMut(&[String]) -> Option<String>) -> Wrong {
        self.rows.iter().filter_map(|(line, cells)| Some((*line, what(cells)?))).collect()
    }

    /// The place of a column that has one of these names.
    pub fn column(&self, names: &[&str]) -> Option<usize> {
        self.columns.iter().position(|column| names.contains(&column.as_str()))
    }
}

fn mark(line: usize, text: &str) -> Option<Mark> {
    let inner = text.trim().strip_prefix("<!--")?.strip_suffix("-->")?;
    let (kind, words) = inner.split_once(':')?;
    Some(Mark { line, kind: kind.trim().into(), words: words.into() })
}

/// The backquotes that open a fenced block. `code` within a line is no fence, and what follows a fence has none.
fn fence(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = line.trim_start_matches('`');
    let length = line.len() - rest.len();
    (length >= 3 && !rest.contains('`')).then_some(&line[..length])
}

fn closes(line: &str, opening: &str) -> bool {
    line.trim().starts_with(opening) && line.trim().trim_matches('`').is_empty()
}

pub fn code(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// A line's cells, if it is one of a table. A `\|` is part of its cell.
fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let inner = inner.replace("\\|", "\u{0}");
    Some(inner.split('|').map(|cell| cell.trim().replace('\u{0}', "|")).collect())
}

/// A table that is written here.
pub fn table(columns: &[&str], rows: impl IntoIterator<Item = impl AsRef<[String]>>) -> Vec<String> {
    let mut lines = vec![format!("| {} |", columns.join(" | ")), format!("|{}", "---|".repeat(columns.len()))];
    lines.extend(rows.into_iter().map(|row| format!("| {} |", row.as_ref().join(" | "))));
    lines
}

//! A page of Markdown: its marks, fenced blocks and tables.

use super::links;
use std::fmt;
use std::ops::Range;

/// Something that a page claims and that does not hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The file, with the line where there is one.
    pub place: String,
    /// What is wrong, and what to do about it.
    pub what: String,
}

impl Problem {
    /// A problem of a whole file, or of several.
    pub fn new(place: &str, what: impl Into<String>) -> Problem {
        Problem { place: place.into(), what: what.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// One page.
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
}

/// The comment `<!-- KIND: WORDS -->` on a line of its own.
#[derive(Clone, Debug)]
pub struct Mark {
    /// The line.
    pub line: usize,
    /// What it marks.
    pub kind: String,
    /// What comes after the colon.
    pub words: Vec<String>,
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// The names of the columns, in lower case.
    pub columns: Vec<String>,
    /// The rows below, each with its line, and with a cell for each column, or more.
    pub rows: Vec<(usize, Vec<String>)>,
}

impl Page {
    /// Takes a file's text.
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
        let mut page = Page { path: path.into(), quoted: vec![false; lines.len()], fenced, lines };
        for mark in page.marks() {
            let part = match mark.kind.as_str() {
                "generated" => page.part_after(mark.line),
                _ => page.block_after(mark.line),
            };
            page.quoted[mark.line] = true;
            page.quoted[part.unwrap_or_default()].fill(true);
        }
        for prototypes in page.prototypes() {
            page.quoted[prototypes].fill(true);
        }
        page
    }

    /// The file's text.
    pub fn text(&self) -> String {
        self.lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
    }

    /// A problem in one of the lines.
    pub fn problem(&self, line: usize, what: impl Into<String>) -> Problem {
        Problem { place: format!("{}:{}", self.path, line + 1), what: what.into() }
    }

    /// The number of the lesson that the page is about: `04`. Lesson 00 is none: it is the set-up.
    pub fn lesson(&self) -> Option<&str> {
        let (number, _) = self.path.strip_prefix("docs/")?.split_once('_')?;
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

    /// Whether a line is about an experiment whose run is not kept: its paragraph says "tried in the lab", or it stands below
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

    /// All marks outside of fenced blocks, in order.
    pub fn marks(&self) -> Vec<Mark> {
        let lines = self.lines.iter().enumerate().filter(|(at, _)| !self.fenced[*at]);
        lines.filter_map(|(at, line)| mark(at, line)).collect()
    }

    /// The content of each fenced block of the language `c`.
    pub fn prototypes(&self) -> Vec<Range<usize>> {
        (1..self.lines.len()).filter(|at| self.lines[*at] == "```c").filter_map(|at| self.block_after(at - 1)).collect()
    }

    /// The first line below a mark that is not empty.
    fn below(&self, line: usize) -> Option<usize> {
        (line + 1..self.lines.len()).find(|&at| !self.lines[at].trim().is_empty())
    }

    /// The content of the fenced block below a mark.
    pub fn block_after(&self, line: usize) -> Option<Range<usize>> {
        let start = self.below(line)?;
        let opening = fence(&self.lines[start])?;
        let end = (start + 1..self.lines.len()).find(|&at| closes(&self.lines[at], opening))?;
        Some(start + 1..end)
    }

    /// What stands between a mark and the next `<!-- end -->`.
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

    /// All tables.
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

impl Table {
    /// The rows of which something is said to be wrong, each with that.
    pub fn wrong(&self, mut what: impl FnMut(&[String]) -> Option<String>) -> Vec<(usize, String)> {
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
    let words = words.split_whitespace().map(String::from).collect();
    Some(Mark { line, kind: kind.trim().into(), words })
}

/// The backquotes or tildes that open a fenced block.
fn fence(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let first = line.chars().next().filter(|c| "`~".contains(*c))?;
    let length = line.chars().take_while(|c| *c == first).count();
    // `code` within a line is no fence, and what follows a fence has no backquotes.
    (length >= 3 && !line[length..].contains('`')).then_some(&line[..length])
}

fn closes(line: &str, opening: &str) -> bool {
    let line = line.trim();
    line.starts_with(opening) && line.chars().all(|c| opening.starts_with(c))
}

/// A line's cells, if it is one of a table. A `\|` is part of its cell.
fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let inner = inner.replace("\\|", "\u{0}");
    Some(inner.split('|').map(|cell| cell.trim().replace('\u{0}', "|")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
text with `code`
<!-- log: captures/x.txt client -->

````text
<!-- no: mark -->
```
````
<!-- packets: y -->
| Frame | what |
|---|:--|
| 1 | a \\| b |
end
";

    #[test]
    fn marks_blocks_and_tables_are_found() {
        let page = Page::new("p.md", TEXT);
        let marks = page.marks();
        let kinds: Vec<(usize, &str)> = marks.iter().map(|mark| (mark.line, mark.kind.as_str())).collect();
        assert_eq!(kinds, [(1, "log"), (7, "packets")]);
        assert_eq!(marks[0].words, ["captures/x.txt", "client"]);
        assert_eq!(page.block_after(1), Some(4..6));
        assert_eq!(page.block_after(7), None);
        let table = page.table_after(7).unwrap();
        assert_eq!((table.column(&["frame"]), table.column(&["from"])), (Some(0), None));
        assert_eq!(table.rows, [(10, vec!["1".to_string(), "a | b".to_string()])]);
        assert_eq!(page.text(), TEXT);
    }

    #[test]
    fn a_generated_part_ends_before_the_next_begins() {
        let page = Page::new("p.md", "<!-- generated: a -->\nold\n<!-- end -->\n<!-- generated: b -->\n");
        assert_eq!((page.part_after(0), page.part_after(3)), (Some(1..2), None));
        let open = Page::new("p.md", "<!-- generated: a -->\n<!-- generated: b -->\n<!-- end -->\n");
        assert_eq!(open.part_after(0), None);
    }
}

//! Markdown as a terminal can show it.

/// Text that fits the terminal, and goes on as far in as it begins. No word is cut.
pub fn hanging(begin: &str, text: &str, width: usize) -> String {
    let indent = begin.chars().count();
    let (mut folded, mut at) = (begin.to_owned(), indent);
    for (number, word) in text.split([' ', '\n']).enumerate() {
        let length = word.chars().count();
        if number > 0 && (at + 1).saturating_add(length) > width {
            folded += &format!("\n{:indent$}", "");
            at = indent;
        } else if number > 0 {
            folded.push(' ');
            at += 1;
        }
        folded += word;
        at += length;
    }
    folded + "\n"
}

/// Markdown for a terminal: of a link only its text is left, of emphasis its words, and paragraphs are as wide as fits.
pub fn plain(markdown: &str, width: usize) -> String {
    let text = unemphasized(&unlinked(markdown.trim()));
    let paragraphs = text.split("\n\n").map(|paragraph| {
        let pieces = items(paragraph).into_iter();
        pieces.map(|(mark, words)| hanging(mark, &words.join(" "), width)).collect::<String>()
    });
    paragraphs.collect::<Vec<_>>().join("\n")
}

/// The items of a list, each with its mark, as `1. `; and what comes before them, or is no list, without one.
fn items(paragraph: &str) -> Vec<(&str, Vec<&str>)> {
    let mut items: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in paragraph.lines().map(str::trim_start) {
        let end = line.find(' ').map_or(0, |space| space + 1);
        let (mark, rest) = line.split_at(end);
        let is_item = mark == "- " || mark.strip_suffix(". ").is_some_and(|number| number.parse::<u8>().is_ok());
        match items.last_mut() {
            Some((_, words)) if !is_item => words.extend(line.split_whitespace()),
            _ => {
                let (mark, rest) = if is_item { (mark, rest) } else { ("", line) };
                items.push((mark, rest.split_whitespace().collect()));
            }
        }
    }
    items
}

/// A whole page in Markdown for a terminal: besides, what is in fences keeps its lines, and tables their columns.
pub fn page(markdown: &str, width: usize) -> String {
    let mut text = String::new();
    for (at, piece) in markdown.split("```").enumerate() {
        if at % 2 == 1 {
            text.extend(piece.lines().skip(1).map(|line| format!("    {line}\n")).chain(["\n".to_owned()]));
            continue;
        }
        for paragraph in piece.trim().split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
            text += &if paragraph.starts_with('|') { table(paragraph, width) } else { plain(paragraph, width) };
            text.push('\n');
        }
    }
    text
}

/// What comes before each column of a table.
const GAP: &str = "  ";

/// The rows of a table. Its columns are as wide as what is in them; if that doesn't fit, the widest ones give way, and their
/// cells go on below.
fn table(markdown: &str, width: usize) -> String {
    let is_row = |line: &&str| !line.starts_with("|---");
    let cell = |cell: &str| unemphasized(&unlinked(cell.trim()));
    let cells = |line: &str| line.trim_matches('|').split('|').map(cell).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = markdown.lines().filter(is_row).map(cells).collect();
    let widths = column_widths(&rows, width);
    let is_folded = rows.iter().flat_map(|row| row.iter().zip(&widths)).any(|(cell, width)| length(cell) > *width);
    // Of rows that go on below one could not see where the next one begins.
    rows.iter().map(|row| folded_row(row, &widths)).collect::<Vec<_>>().join(if is_folded { "\n" } else { "" })
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// How wide each column is, so that all of them fit. None is narrower than its longest word.
fn column_widths(rows: &[Vec<String>], width: usize) -> Vec<usize> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cells = |at: usize| rows.iter().filter_map(move |row| row.get(at));
    let least = |at| cells(at).flat_map(|cell| cell.split_whitespace()).map(length).max().unwrap_or(0);
    let least: Vec<usize> = (0..columns).map(least).collect();
    let mut widths: Vec<usize> = (0..columns).map(|at| cells(at).map(|cell| length(cell)).max().unwrap_or(0)).collect();
    while widths.iter().map(|column| column + GAP.len()).sum::<usize>() > width {
        let widest = (0..columns).filter(|at| widths[*at] > least[*at]).max_by_key(|at| widths[*at]);
        let Some(widest) = widest else { break };
        widths[widest] -= 1;
    }
    widths
}

/// One row, in as many lines as its longest cell needs.
fn folded_row(row: &[String], widths: &[usize]) -> String {
    let fold =
        |(cell, width): (&String, &usize)| hanging("", cell, *width).lines().map(str::to_owned).collect::<Vec<_>>();
    let cells: Vec<Vec<String>> = row.iter().zip(widths).map(fold).collect();
    let line = |at: usize| {
        let part = |(cell, width): (&Vec<String>, &usize)| {
            let text = cell.get(at).map_or("", String::as_str);
            format!("{GAP}{text:width$}")
        };
        let line: String = cells.iter().zip(widths).map(part).collect();
        format!("{}\n", line.trim_end())
    };
    (0..cells.iter().map(Vec::len).max().unwrap_or(0)).map(line).collect()
}

/// Asterisks that touch a word, and not in code.
fn unemphasized(markdown: &str) -> String {
    let bare = |word: &str| if word.trim() == "*" { word.to_owned() } else { word.replace('*', "") };
    let pieces = markdown.split('`').enumerate().map(|(at, piece)| match at % 2 {
        0 => piece.split_inclusive(char::is_whitespace).map(bare).collect(),
        _ => piece.to_owned(),
    });
    pieces.collect::<Vec<String>>().join("`")
}

fn unlinked(markdown: &str) -> String {
    let (mut text, mut rest) = (String::new(), markdown);
    while let Some((before, after)) = rest.split_once("](") {
        let (before, name) = before.rsplit_once('[').unwrap_or(("", before));
        text.extend([before, name]);
        rest = after.split_once(')').map_or(after, |(_, rest)| rest);
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_is_text_of_the_terminals_width() {
        let text = "The [`X`](a.md#x), not [0], nor [b][c] but [d](e).";
        assert_eq!(plain(text, 80), "The `X`, not [0], nor [b][c] but d.\n");
        let text = "A *remote access\nerror*, 2 * 3 and `*wr_id`.\n\nHow many bytes?\n";
        let expected = "A remote access\nerror, 2 * 3 and\n`*wr_id`.\n\nHow many bytes?\n";
        assert_eq!(plain(text, 20), expected, "no word is cut");
    }

    #[test]
    fn a_table_fits_the_terminal_and_no_word_is_cut() {
        let text = "| came | what it does |\n|---|---|\n| REQ | it *asks* a [program](a.md) that listens there |\n| RTU | ready |\n";
        let wide = "  came  what it does\n  REQ   it asks a program that listens there\n  RTU   ready\n\n";
        assert_eq!(page(text, 80), wide);
        let narrow =
            "  came  what it does\n\n  REQ   it asks a program that\n        listens there\n\n  RTU   ready\n\n";
        assert_eq!(page(text, 30), narrow);
        let tight = page(text, 3);
        assert!(tight.contains("program\n") && tight.contains("listens\n"), "{tight}");
    }

    #[test]
    fn each_item_of_a_list_begins_a_line() {
        let text = "Three:\n1. The first one is\n   long.\n2. The second.\n\n- no number\n- nor here";
        let expected = "Three:\n1. The first\n   one is long.\n2. The second.\n\n- no number\n- nor here\n";
        assert_eq!(plain(text, 15), expected);
    }
}

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

/// The items of a list, each with its mark, as `1. `; and what stands before them, or is no list, without one.
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

/// A whole page in Markdown for a terminal: besides, what stands in fences and tables keeps its lines.
pub fn page(markdown: &str, width: usize) -> String {
    let mut text = String::new();
    for (at, piece) in markdown.split("```").enumerate() {
        if at % 2 == 1 {
            text.extend(piece.lines().skip(1).map(|line| format!("    {line}\n")).chain(["\n".to_owned()]));
            continue;
        }
        for paragraph in piece.trim().split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
            text += &if paragraph.starts_with('|') { table(paragraph) } else { plain(paragraph, width) };
            text.push('\n');
        }
    }
    text
}

/// The rows of a table, with columns as wide as what stands in them.
fn table(markdown: &str) -> String {
    let is_row = |line: &&str| !line.starts_with("|---");
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = markdown.lines().filter(is_row).map(cells).collect();
    let width =
        |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let row = |row: &Vec<String>| {
        let cells: Vec<String> = row.iter().enumerate().map(|(at, cell)| format!("{cell:0$}", width(at))).collect();
        format!("  {}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(row).collect()
}

/// Asterisks that stand at a word, and not in code.
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
    fn each_item_of_a_list_begins_a_line() {
        let text = "Three:\n1. The first one is\n   long.\n2. The second.\n\n- no number\n- nor here";
        let expected = "Three:\n1. The first\n   one is long.\n2. The second.\n\n- no number\n- nor here\n";
        assert_eq!(plain(text, 15), expected);
    }
}

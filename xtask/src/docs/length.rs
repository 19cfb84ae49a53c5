//! How much there is to read on a lesson's page.

use super::page::{Page, Problem};
use std::ops::RangeInclusive;

/// Lines of a lesson's page that are neither folded nor generated nor empty: enough to explain, not more than is read.
const LINES: RangeInclusive<usize> = 120..=250;

/// The page, if it is a lesson's and too short or too long.
pub fn problems(page: &Page) -> Option<Problem> {
    let name = page.path.strip_prefix("docs/")?;
    let is_lesson = name.starts_with(|c: char| c.is_ascii_digit()) && !name.starts_with("00");
    let lines = prose(page);
    let what = format!("{lines} lines to read, without folded and generated ones: {LINES:?} are wanted");
    (is_lesson && !LINES.contains(&lines)).then(|| Problem::new(&page.path, what))
}

fn prose(page: &Page) -> usize {
    let (mut folded, mut generated) = (false, false);
    let to_read = |line: &&String| {
        let line = line.trim();
        folded |= line.starts_with("<details");
        generated |= line.starts_with("<!-- generated:");
        let counts = !folded && !generated && !line.is_empty();
        folded &= !line.ends_with("</details>");
        generated &= line != "<!-- end -->";
        counts
    };
    page.lines.iter().filter(to_read).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_to_read_counts() {
        let text = "a\n\n<details>\n<summary>b</summary>\nc\n</details>\n<!-- generated: x -->\nd\n<!-- end -->\ne\n";
        assert_eq!(prose(&Page::new("p.md", text)), 2);
    }

    #[test]
    fn a_lesson_is_neither_too_short_nor_too_long() {
        let problem = |path: &str, lines: usize| problems(&Page::new(path, &"x\n".repeat(lines)));
        assert_eq!((problem("docs/04_x.md", 120), problem("docs/04_x.md", 250)), (None, None));
        assert!(problem("docs/04_x.md", 119).unwrap().what.starts_with("119 lines to read"));
        assert!(problem("docs/04_x.md", 251).is_some());
        assert_eq!((problem("docs/glossary.md", 5), problem("docs/00_setup.md", 5)), (None, None));
    }
}

//! How much there is to read on a lesson's page.

use super::page::{Page, Problem};
use super::sources::Sources;
use std::ops::RangeInclusive;

/// Lines of a lesson's page that are neither folded nor generated nor empty: enough to explain, not more than is read.
const LINES: RangeInclusive<usize> = 120..=250;

/// All lines of a lesson's page: what is longer belongs into a file that the page links to.
const LONGEST: usize = 450;

/// The page, if it is a lesson's and too short or too long.
pub fn problems(page: &Page, _: &Sources) -> Vec<Problem> {
    let (lines, all) = (prose(page), page.lines.len());
    let what = match page.lesson() {
        Some(_) if !LINES.contains(&lines) => {
            format!("{lines} lines to read, without folded and generated ones: {LINES:?} are wanted")
        }
        Some(_) if all > LONGEST => format!("{all} lines in all: at most {LONGEST} are wanted"),
        _ => return Vec::new(),
    };
    vec![Problem::new(&page.path, what)]
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
    use super::super::sources::tests::repository;
    use super::*;

    #[test]
    fn only_what_is_to_read_counts() {
        let text = "a\n\n<details>\n<summary>b</summary>\nc\n</details>\n<!-- generated: x -->\nd\n<!-- end -->\ne\n";
        assert_eq!(prose(&Page::new("p.md", text)), 2);
    }

    #[test]
    fn a_lesson_is_neither_too_short_nor_too_long() {
        let problems = |path: &str, lines: usize| problems(&Page::new(path, &"x\n".repeat(lines)), repository());
        assert_eq!((problems("docs/04_x.md", 120), problems("docs/04_x.md", 250)), (vec![], vec![]));
        assert!(problems("docs/04_x.md", 119)[0].what.starts_with("119 lines to read"));
        assert_eq!(problems("docs/04_x.md", 251).len(), 1);
        let folded = |lines| format!("<details>\n{}</details>\n{}", "x\n".repeat(lines), "x\n".repeat(120));
        let all = |lines| super::problems(&Page::new("docs/04_x.md", &folded(lines)), repository());
        assert_eq!((all(328), all(329).len()), (vec![], 1));
        assert_eq!((problems("docs/glossary.md", 5), problems("docs/00_setup.md", 5)), (vec![], vec![]));
    }
}

//! Quotes: code that a page shows, compared with where it comes from.

use super::page::{Mark, Page, Problem};
use super::sources::Sources;
use anyhow::{bail, ensure, Context, Result};

/// A line that stands for lines left out.
const OMISSION: &str = "…";

/// Every quote of a page that is not in its source.
pub fn problems(page: &Page, sources: &Sources) -> Vec<Problem> {
    let check = |mark: &Mark| match mark.kind.as_str() {
        "code" => Some(code(page, mark, sources)),
        // These have their own checks.
        "generated" | "ladder" | "bytes" | "packets" | "states" | "fields" | "in" | "order" | "tried" => None,
        other => Some(Err(anyhow::anyhow!("no mark is called `{other}`: CONTRIBUTING.md lists them"))),
    };
    let failed = |mark: &Mark| Some(page.problem(mark.line, format!("{:#}", check(mark)?.err()?)));
    page.marks().iter().filter_map(failed).collect()
}

fn block<'p>(page: &'p Page, mark: &Mark) -> Result<&'p [String]> {
    let range = page.block_after(mark.line).context("no fenced block follows this mark")?;
    ensure!(!range.is_empty(), "the fenced block is empty");
    Ok(&page.lines[range])
}

/// Whole lines, each run of them in one piece; the quote as a whole may be indented less than the source.
fn code(page: &Page, mark: &Mark, sources: &Sources) -> Result<()> {
    let [path] = mark.words.as_slice() else { bail!("write <!-- code: PATH -->") };
    let source = sources.text(path)?;
    let source: Vec<&str> = source.lines().collect();
    for run in block(page, mark)?.split(|line| line.trim() == OMISSION) {
        let run: Vec<&str> = run.iter().map(String::as_str).collect();
        let Some(first) = run.iter().find(|line| !line.trim().is_empty()) else { continue };
        let is_there = source.windows(run.len()).any(|lines| same(lines, &run));
        ensure!(is_there, "{path} has no such lines in one piece, from this one on: {first}");
    }
    Ok(())
}

fn same(source: &[&str], quote: &[&str]) -> bool {
    let indent = |lines: &[&str]| {
        let filled = lines.iter().find(|line| !line.trim().is_empty());
        filled.map_or(0, |line| line.len() - line.trim_start().len())
    };
    let Some(less) = indent(source).checked_sub(indent(quote)) else { return false };
    let shifted = |line: &str| match line.trim().is_empty() {
        true => Some(String::new()),
        false => line.strip_prefix(&" ".repeat(less)).map(|line| line.trim_end().to_string()),
    };
    source.iter().zip(quote).all(|(source, quote)| shifted(source).as_deref() == Some(quote.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::super::sources::tests::repository;
    use super::*;

    fn check(text: &str) -> Vec<String> {
        let problems = problems(&Page::new("docs/p.md", text), &repository());
        problems.iter().map(Problem::to_string).collect()
    }

    #[test]
    fn code_is_quoted_verbatim() {
        let page = |code: &str| format!("<!-- code: clippy.toml -->\n```toml\n{code}\n```\n");
        assert_eq!(check(&page("allow-unwrap-in-tests = true")), [""; 0]);
        assert!(check(&page("allow-unwrap-in-tests = false"))[0].starts_with("docs/p.md:1: clippy.toml has no such"));
        assert!(check("<!-- code: clippy.toml -->\ntext\n")[0].contains("no fenced block"));
        assert!(check("<!-- code: no.rs -->\n```\nx\n```\n")[0].contains("cannot read no.rs"));
        assert!(check("<!-- cod: clippy.toml -->\n")[0].contains("no mark is called `cod`"));
    }

    #[test]
    fn a_run_of_code_is_in_one_piece_and_may_be_indented_less() {
        let source = ["fn a() {", "    b();", "", "    c();", "}"];
        assert!(same(&source[1..4], &["b();", "", "c();"]));
        assert!(!same(&source[1..4], &["b();", "", " c();"]));
        assert!(!same(&source[..1], &["  fn a() {"]));
        let page = |code: &str| format!("<!-- code: rustfmt.toml -->\n```\n{code}\n```\n");
        assert_eq!(check(&page("edition = \"2021\"\n…\nuse_field_init_shorthand = true")), [""; 0]);
        assert_eq!(check(&page("edition = \"2021\"\nuse_field_init_shorthand = true")).len(), 1);
    }
}

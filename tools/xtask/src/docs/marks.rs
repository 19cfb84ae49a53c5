//! The marks of a page, `<!-- KIND: WORDS -->`: what each says of the part that follows it.

use super::page::{Mark, Page, Problem};
use super::sources::Sources;
use super::{excerpts, generated, recorded, states, tables};
use anyhow::{bail, ensure, Context, Result};
use std::ops::Range;

/// What comes of comparing a marked part with its source.
enum Verdict {
    /// These lines of the page can be written anew, and this is what belongs there.
    Written(Range<usize>, Vec<String>),
    /// People wrote them. Those that do not hold, each with what is wrong.
    Compared(Vec<(usize, String)>),
}

use Verdict::{Compared, Written};

/// A line of quoted code that stands for lines left out.
const OMISSION: &str = "…";

fn verdict(page: &Page, mark: &Mark, sources: &Sources) -> Result<Verdict> {
    let block = || page.block_after(mark.line).context("no fenced block follows this mark");
    let table = || {
        let table = page.table_after(mark.line).filter(|table| !table.rows.is_empty());
        table.context("no table with rows follows this mark")
    };
    let words: Vec<&str> = mark.words.iter().map(String::as_str).collect();
    Ok(match (mark.kind.as_str(), words.as_slice()) {
        ("generated", what) => {
            let part = page.part_after(mark.line).context("no line <!-- end --> follows this mark")?;
            Written(part, generated::part(page, what, sources)?)
        }
        ("ladder", [capture, steps]) => Written(block()?, excerpts::ladder(sources, capture, steps)?),
        ("bytes", [capture, step, sections @ ..]) if !sections.is_empty() => {
            Written(block()?, excerpts::bytes(sources, capture, step, sections)?)
        }
        ("code", [path]) => {
            code(&page.lines[block()?], path, sources)?;
            Compared(Vec::new())
        }
        ("packets", [capture]) => Compared(tables::packets(&table()?, capture, sources)?),
        ("fields", [capture, steps @ ..]) => Compared(tables::fields(&table()?, capture, steps, sources)?),
        ("in", [path]) => Compared(tables::inside(&table()?, path, sources)?),
        ("tried", paths) if !paths.is_empty() => Compared(tables::tried(&table()?, paths, sources)?),
        ("caused", ["change"]) => Compared(recorded::caused(&table()?, sources)?),
        ("order", [capture, node]) => Compared(states::order(&table()?, capture, node, sources)?),
        ("states", [capture]) => Compared(states::problems(&table()?, mark.line, capture, sources)?),
        (kind, _) => bail!("no mark is written `{kind}: {}`: CONTRIBUTING.md lists them", words.join(" ")),
    })
}

/// The page with all that can be written written anew, and the marks where that failed.
pub fn renew(page: &Page, sources: &Sources) -> (Page, Vec<Problem>) {
    let (mut lines, mut problems) = (page.lines.clone(), Vec::new());
    // From the end, so that the places before stay right.
    for mark in page.marks().iter().rev() {
        match verdict(page, mark, sources) {
            Ok(Written(range, content)) => drop(lines.splice(range, content)),
            Ok(Compared(_)) => {}
            Err(error) => problems.push(page.problem(mark.line, format!("{error:#}"))),
        }
    }
    problems.reverse();
    (Page::new(&page.path, &(lines.join("\n") + "\n")), problems)
}

/// What does not hold in the marked parts.
pub fn problems(page: &Page, sources: &Sources) -> Vec<Problem> {
    let wrong = |mark: &Mark| match verdict(page, mark, sources) {
        Ok(Written(range, lines)) if page.lines[range.clone()] == lines => Vec::new(),
        Ok(Written(range, lines)) => {
            let same = page.lines[range.clone()].iter().zip(&lines).take_while(|(is, should)| is == should).count();
            vec![(range.start + same, "this part is not what `make docs` writes: run it and commit".into())]
        }
        Ok(Compared(wrong)) => wrong,
        Err(error) => vec![(mark.line, format!("{error:#}"))],
    };
    page.marks().iter().flat_map(wrong).map(|(line, what)| page.problem(line, what)).collect()
}

/// Whole lines, each run of them in one piece; the quote as a whole may be indented less than the source.
fn code(quote: &[String], path: &str, sources: &Sources) -> Result<()> {
    ensure!(!quote.is_empty(), "the fenced block is empty");
    let source = sources.text(path)?;
    let source: Vec<&str> = source.lines().collect();
    for run in quote.split(|line| line.trim() == OMISSION) {
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
        problems(&Page::new("docs/p.md", text), repository()).iter().map(Problem::to_string).collect()
    }

    #[test]
    fn code_is_quoted_verbatim() {
        let page = |code: &str| format!("<!-- code: clippy.toml -->\n```toml\n{code}\n```\n");
        assert_eq!(check(&page("allow-unwrap-in-tests = true")), [""; 0]);
        assert!(check(&page("allow-unwrap-in-tests = false"))[0].starts_with("docs/p.md:1: clippy.toml has no such"));
        assert!(check("<!-- code: clippy.toml -->\ntext\n")[0].contains("no fenced block"));
        assert!(check("<!-- code: no.rs -->\n```\nx\n```\n")[0].contains("cannot read no.rs"));
        assert!(check("<!-- cod: clippy.toml -->\n")[0].contains("no mark is written `cod: clippy.toml`"));
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

    #[test]
    fn what_is_written_is_what_is_checked() {
        let text = "<!-- generated: log 01_cm_listen server listen -->\n<!-- end -->\n<!-- generated: lanes 01_cm_listen step1..step2 -->\nold\n<!-- end -->\n";
        let (page, sources) = (Page::new("docs/p.md", text), repository());
        assert_eq!(problems(&page, sources).len(), 2);
        let (page, failed) = renew(&page, sources);
        assert_eq!((failed, problems(&page, sources)), (vec![], vec![]));
        assert!(page.text().contains("\n[listen] SLOW  rdma_listen backlog=8\n"), "{}", page.text());
    }

    #[test]
    fn one_changed_number_is_found() {
        let sources = repository();
        let text = "<!-- generated: log 04_rdma_write server wait_disconnect -->\n<!-- end -->\n";
        let (page, _) = renew(&Page::new("docs/p.md", text), sources);
        let changed = Page::new("docs/p.md", &page.text().replace("waiting for DISCONNECTED", "waiting for CONNECTED"));
        let [problem] = &problems(&changed, sources)[..] else { panic!("one problem, at the line") };
        let line = page.lines.iter().position(|line| line.contains("waiting for DISCONNECTED")).unwrap() + 1;
        assert!(problem.to_string().starts_with(&format!("docs/p.md:{line}: this part is not what")), "{problem}");
    }

    #[test]
    fn excerpts_are_renewed_in_their_blocks() {
        let text = "<!-- ladder: captures/01_cm_listen.pcapng step1-step2 -->\n```text\nold\n```\nkept\n";
        let (page, failed) = renew(&Page::new("docs/p.md", text), repository());
        assert!(failed.is_empty() && page.text().contains("ConnectReject") && page.text().ends_with("```\nkept\n"));
    }

    #[test]
    fn mistakes_in_marks_are_named() {
        let sources = repository();
        let error = |text: &str| problems(&Page::new("docs/p.md", text), sources)[0].to_string();
        assert!(error("<!-- generated: ladder 01_cm_listen -->\n").contains("no line <!-- end -->"));
        assert!(error("<!-- generated: poem -->\n<!-- end -->\n").contains("no generated part is called `poem`"));
        assert!(error("<!-- generated: ladder 99_none -->\n<!-- end -->\n").contains("cannot read captures/99_none"));
        assert!(error("<!-- ladder: captures/01_cm_listen.pcapng -->\n```\n```\n")
            .contains("no mark is written `ladder: captures/01_cm_listen.pcapng`"));
    }
}

//! The parts of a page that this program writes.

use super::page::{Mark, Page, Problem};
use super::sources::Sources;
use super::{diffs, drawings, excerpts, lessons, reference};
use anyhow::{bail, Context, Result};
use std::ops::Range;
use wire::show::row::Row;

/// The page with all its generated parts written anew, and those that could not be.
pub fn renew(page: &Page, sources: &Sources) -> (Page, Vec<Problem>) {
    let (mut page, mut problems) = (page.clone(), Vec::new());
    // From the end, so that the places before stay right.
    for mark in page.marks().iter().rev() {
        match part(&page, mark, sources) {
            None => {}
            Some(Ok((range, lines))) => drop(page.lines.splice(range, lines)),
            Some(Err(error)) => problems.push(page.problem(mark.line, format!("{error:#}"))),
        }
    }
    problems.reverse();
    (page, problems)
}

/// The generated parts that are not as they would be written now.
pub fn problems(page: &Page, sources: &Sources) -> Vec<Problem> {
    let failed = |mark: &Mark| match part(page, mark, sources)? {
        Ok((range, lines)) if page.lines[range.clone()] == lines => None,
        Ok((range, lines)) => {
            let mut pairs = page.lines[range.clone()].iter().zip(&lines);
            let line =
                range.start + pairs.position(|(is, should)| is != should).unwrap_or(range.len().min(lines.len()));
            Some(page.problem(line, "this part is not what `make docs` writes: run it and commit"))
        }
        Err(error) => Some(page.problem(mark.line, format!("{error:#}"))),
    };
    page.marks().iter().filter_map(failed).collect()
}

/// Where a generated part is and what belongs there; None if the mark is of another kind.
fn part(page: &Page, mark: &Mark, sources: &Sources) -> Option<Result<(Range<usize>, Vec<String>)>> {
    let block = || page.block_after(mark.line).context("no fenced block follows this mark");
    let content = match mark.kind.as_str() {
        "generated" => page
            .part_after(mark.line)
            .context("no line <!-- end --> follows this mark")
            .and_then(|range| Ok((range, generate(page, &mark.words, sources)?))),
        "ladder" => block().and_then(|range| match mark.words.as_slice() {
            [capture, steps] => Ok((range, excerpts::ladder(sources, capture, steps)?)),
            _ => bail!("write <!-- ladder: captures/NAME.pcapng step6-step9 -->"),
        }),
        "bytes" => block().and_then(|range| match mark.words.as_slice() {
            [capture, which, sections @ ..] if !sections.is_empty() => {
                Ok((range, excerpts::bytes(sources, capture, which, sections)?))
            }
            _ => bail!("write <!-- bytes: captures/NAME.pcapng step8 BTH -->"),
        }),
        _ => return None,
    };
    Some(content)
}

/// What each stage needs, and the packages it comes in, from set-up's own table.
fn needs(table: &str) -> Vec<String> {
    let head = ["for | what | Debian, Ubuntu | Fedora | Arch", "--- | --- | --- | --- | ---"].map(str::to_owned);
    let rows = table.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        // Debian's names that start with @ depend on the release; what set-up fills in depends on the architecture.
        let name = |cell: &str| {
            cell.replace('@', "").replace("$machine", "x86_64").replace("${qemu}", "x86").replace("$qemu", "x86")
        };
        let cell = |index: usize| cells.get(index).map_or_else(String::new, |cell| name(cell));
        format!("{} | {} | {} | {} | {}", cell(0), cell(1), cell(3), cell(4), cell(5))
    });
    head.into_iter().chain(rows).map(|row| format!("| {row} |")).collect()
}

fn generate(page: &Page, words: &[String], sources: &Sources) -> Result<Vec<String>> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let lines = match words.as_slice() {
        ["packets", name] => packets(&sources.rows(&format!("captures/{name}.pcapng"))?),
        ["lanes", name, range] => vec![drawings::lanes_link(page, sources, name, range)?],
        ["log", name, side, stages @ ..] => fenced(excerpts::log(sources, name, side, stages)?),
        ["diff", old, new] => diffs::folded(sources, old, new)?,
        ["ladder", name] => vec![drawings::ladder_link(sources, name)?],
        ["lessons"] => lessons::table(sources)?,
        ["needs"] => needs(&sources.text("lab/needs.txt")?),
        ["opcodes"] => reference::opcodes(sources)?,
        ["cm-messages"] => reference::messages()?,
        ["syndromes"] => reference::syndromes(),
        ["private-data"] => reference::private_data(),
        ["filters"] => reference::filters(),
        ["layers"] => reference::layers(),
        _ => bail!("no generated part is called `{}`: CONTRIBUTING.md lists them", words.join(" ")),
    };
    // A forge takes what stands right below a comment for a part of it.
    Ok([vec![String::new()], lines, vec![String::new()]].concat())
}

fn fenced(lines: Vec<String>) -> Vec<String> {
    [vec!["```text".into()], lines, vec!["```".into()]].concat()
}

/// The packet table of a capture.
fn packets(rows: &[Row]) -> Vec<String> {
    let mut lines = vec![
        "| frame | ms | direction | packet | PSN | says | step |".to_string(),
        "|--:|--:|---|---|---|---|---|".to_string(),
    ];
    for row in rows {
        let ms = row.ms.map_or(String::new(), |ms| format!("{ms:.1}"));
        let direction = if row.from_client { "client → server" } else { "client ← server" };
        let psn = row.psn.as_deref().map_or("", |psn| psn.trim_start_matches("psn "));
        let step = row.step().map_or(String::new(), |step| step.trim_start_matches("Step ").replacen(':', ".", 1));
        let details = row.details.join(", ");
        let Row { frame, label, .. } = row;
        lines.push(format!("| {frame} | {ms} | {direction} | {label} | {psn} | {details} | {step} |"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::sources::tests::repository;
    use super::*;

    #[test]
    fn what_is_written_is_what_is_checked() {
        let text = "<!-- generated: packets 01_cm_listen -->\n<!-- end -->\n<!-- generated: lanes 01_cm_listen step1..step2 -->\nold\n<!-- end -->\n";
        let (page, sources) = (Page::new("docs/p.md", text), repository());
        assert_eq!(problems(&page, &sources).len(), 2);
        let (page, failed) = renew(&page, &sources);
        assert_eq!((failed, problems(&page, &sources)), (vec![], vec![]));
        assert!(page.text().contains("| client → server | REQ (ConnectRequest) |  | port 7471"), "{}", page.text());
    }

    #[test]
    fn one_changed_number_is_found() {
        let sources = repository();
        let text = "<!-- generated: packets 04_rdma_write -->\n<!-- end -->\n";
        let (page, _) = renew(&Page::new("docs/p.md", text), &sources);
        let changed = Page::new("docs/p.md", &page.text().replace("| len 60, va", "| len 61, va"));
        let [problem] = &problems(&changed, &sources)[..] else { panic!("one problem, at the line") };
        let line = page.lines.iter().position(|line| line.contains("len 60, va")).unwrap() + 1;
        assert!(problem.to_string().starts_with(&format!("docs/p.md:{line}: this part is not what")), "{problem}");
    }

    #[test]
    fn excerpts_are_renewed_in_their_blocks() {
        let text = "<!-- ladder: captures/01_cm_listen.pcapng step1-step2 -->\n```text\nold\n```\nkept\n";
        let (page, failed) = renew(&Page::new("docs/p.md", text), &repository());
        assert!(failed.is_empty() && page.text().contains("ConnectReject") && page.text().ends_with("```\nkept\n"));
    }

    #[test]
    fn mistakes_in_marks_are_named() {
        let sources = repository();
        let error = |text: &str| problems(&Page::new("docs/p.md", text), &sources)[0].to_string();
        assert!(error("<!-- generated: packets 01_cm_listen -->\n").contains("no line <!-- end -->"));
        assert!(error("<!-- generated: poem -->\n<!-- end -->\n").contains("no generated part is called `poem`"));
        assert!(error("<!-- generated: packets 99_none -->\n<!-- end -->\n").contains("cannot read captures/99_none"));
        assert!(error("<!-- ladder: captures/01_cm_listen.pcapng -->\n```\n```\n").contains("write <!-- ladder:"));
    }
}

//! The recorded runs of changes, `captures/changes/NN-NAME.txt`: excerpts of them, and whether they show what a page says
//! that its change makes happen.

use super::changes;
use super::lanes::{Recorded, Row};
use super::page::{Page, Problem, Table};
use super::sources::Sources;
use anyhow::{Context, Result};

/// What a table says of an outcome that no change brings about.
const NOT_SEEN: &str = "not seen";
/// The statement that somebody has tried it, which has to say with what.
const TRIED: &str = "tried in the lab";
/// Where the tests are that try what is no change of a lesson.
const TESTS: &str = "tools/lab/tests/all/";

/// So many packets of a case are shown.
const MOST: usize = 8;

/// What is asked of a change, the answer, and the packets of its run.
pub fn case(sources: &Sources, lesson: &str, name: &str) -> Result<Vec<String>> {
    let (run, path) = (Recorded::load(sources, lesson, name)?, changes::recorded(lesson, name));
    let mut lines = changes::asked(sources, lesson, name)?;
    lines.push("```text".into());
    let packets: Vec<&Row> = run.rows.iter().filter(|row| row.is_packet()).collect();
    let (begin, end) = (packets.len().min(MOST / 2), packets.len().saturating_sub(MOST / 2).max(MOST / 2));
    // That the wire lost it shows in its arrow; what the wire did else does not.
    let shown =
        |row: &&Row| row.lines.iter().filter(|line| !line.contains("lab: dropped")).cloned().collect::<Vec<_>>();
    lines.extend(packets[..begin].iter().flat_map(shown));
    lines.extend((packets.len() > MOST).then(|| "   …".into()));
    lines.extend(packets.get(end..).unwrap_or_default().iter().flat_map(shown));
    let mut told = format!("`make break-{lesson} CHANGE={name}`: [all that matters of its run](../{path})");
    let capture = path.replace(".txt", ".pcapng");
    if sources.path(&capture).exists() {
        told += &format!(", [capture](../{capture})");
    }
    lines.extend(["```".into(), told]);
    Ok(lines)
}

/// Where a run is that shows these words.
pub fn linked(sources: &Sources, lesson: &str, name: &str, words: &[&str]) -> Result<Vec<String>> {
    seen(sources, lesson, name, words)?;
    let path = changes::recorded(lesson, name);
    Ok(vec![format!("`make break-{lesson} CHANGE={name}` makes it happen: [the run](../{path}).")])
}

/// The first row of a run with these words, and the last packet before it.
pub fn seen(sources: &Sources, lesson: &str, name: &str, words: &[&str]) -> Result<Vec<String>> {
    let (run, words) = (Recorded::load(sources, lesson, name)?, words.join(" "));
    let found = run.rows.iter().position(|row| row.text().contains(&words));
    let found = found.with_context(|| format!("the recorded run of {lesson}-{name} has no `{words}`"))?;
    let packet = (0..found).rev().find(|at| run.rows[*at].is_packet());
    let mut lines = vec![format!("`make break-{lesson} CHANGE={name}` makes it happen:"), String::new()];
    lines.extend(run.html(|at| at == found || Some(at) == packet));
    Ok(lines)
}

/// Rows of a table whose column "change" names a change that does not show what the row is about: the code in the column "in
/// the run", or else the first code of the row, which is a status, an event or words of a packet.
pub fn caused(table: &Table, sources: &Sources) -> Result<Vec<(usize, String)>> {
    let column = table.column(&["change"]).context("the table has no column `change`")?;
    let words = table.column(&["in the run"]);
    let code = |cell: &String| cell.split('`').nth(1).map(|code| code.replace("RDMA_CM_EVENT_", "CM event: "));
    Ok(table.wrong(|cells| {
        let what = words.and_then(|words| code(&cells[words])).or_else(|| cells[..column].iter().find_map(code));
        let (what, how) = (what.unwrap_or_default(), &cells[column]);
        let named = names(sources, how);
        if named.is_empty() {
            return (!how.starts_with(NOT_SEEN)).then(|| format!("say which change shows `{what}`, or: {NOT_SEEN}"));
        }
        let shows = |(lesson, name): &&(String, String)| {
            Recorded::load(sources, lesson, name).is_ok_and(|run| !what.is_empty() && run.shows(&what))
        };
        let (lesson, name) = named.iter().find(|named| !shows(named))?;
        Some(format!("the recorded run of {lesson}-{name} does not show `{what}`"))
    }))
}

/// The changes that stand as code in a text.
fn names(sources: &Sources, text: &str) -> Vec<(String, String)> {
    let named = text.split('`').skip(1).step_by(2).filter_map(named);
    let exist = named.filter(|(lesson, name)| changes::path(sources, lesson, name).is_ok());
    exist.map(|(lesson, name)| (lesson.to_owned(), name.to_owned())).collect()
}

/// The change that a piece of code names: `04-lost-write`, or `make break-04 CHANGE=lost-write`.
fn named(code: &str) -> Option<(&str, &str)> {
    let (lesson, name) = match code.split_once("make break-") {
        Some((_, command)) => {
            let (lesson, rest) = command.split_once(' ')?;
            (lesson, rest.trim_start().strip_prefix("CHANGE=")?.split(' ').next()?)
        }
        None => code.split_once('-').filter(|(_, name)| name.chars().all(|c| c.is_ascii_lowercase() || c == '-'))?,
    };
    let is_one =
        lesson.len() == 2 && lesson.bytes().all(|c| c.is_ascii_digit()) && name.starts_with(char::is_lowercase);
    is_one.then_some((lesson, name))
}

/// Changes that do not exist, and statements that something was tried that do not say with which change or test.
pub fn problems(page: &Page, sources: &Sources) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (at, line) in page.prose() {
        let code = if page.fenced[at] { vec![line.as_str()] } else { line.split('`').skip(1).step_by(2).collect() };
        for (lesson, name) in code.into_iter().filter_map(named) {
            if changes::path(sources, lesson, name).is_err() {
                problems.push(page.problem(at, format!("lesson {lesson} has no change {name}")));
            }
        }
        if line.to_lowercase().contains(TRIED) && !line.contains(&format!("\"{TRIED}\"")) {
            let paragraph = page.paragraph(at);
            if names(sources, &paragraph).is_empty() && !paragraph.contains(TESTS) {
                problems.push(page.problem(at, format!("\"{TRIED}\": with which change, or which test in {TESTS}?")));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::marks;
    use super::super::sources::tests::repository;
    use super::*;

    fn check(text: &str) -> Vec<String> {
        let page = Page::new("docs/p.md", text);
        let marked = marks::problems(&page, repository());
        marked.into_iter().chain(problems(&page, repository())).map(|problem| problem.to_string()).collect()
    }

    #[test]
    fn a_table_names_changes_whose_runs_show_it() {
        let table = |what: &str, how: &str| {
            check(&format!("<!-- caused: change -->\n| status | change |\n|---|---|\n| `{what}` | {how} |\n"))
        };
        assert_eq!(table("IBV_WC_REM_ACCESS_ERR", "`04-wrong-key`"), [""; 0]);
        assert_eq!(table("RDMA_CM_EVENT_REJECTED", "`make break-01 CHANGE=nobody-listens`"), [""; 0]);
        assert_eq!(table("IBV_WC_TM_ERR", "not seen: no tag matching"), [""; 0]);
        assert!(table("IBV_WC_TM_ERR", "`04-wrong-key`")[0].contains("does not show `IBV_WC_TM_ERR`"));
        assert!(table("IBV_WC_TM_ERR", "by luck")[0].contains("say which change"));
    }

    #[test]
    fn what_was_tried_says_with_what() {
        assert_eq!(check("It fails (tried in the lab: `04-wrong-key`).\n"), [""; 0]);
        assert_eq!(check("Tried in the lab, by [a test](../tools/lab/tests/all/lessons/rules.rs).\n"), [""; 0]);
        assert!(check("It fails (tried in the lab).\n\n`04-wrong-key`\n")[0].contains("with which change"));
        for gone in ["`make break-04 CHANGE=none`\n", "`04-none`\n", "```sh\nmake break-04 CHANGE=none  # x\n```\n"] {
            assert!(check(gone)[0].contains("lesson 04 has no change none"), "{gone}");
        }
    }
}

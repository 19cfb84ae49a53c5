//! The changes of a lesson on its page: what is edited, what the reader predicts, and, folded away, what comes of it. Each is a
//! page of its own, `lessons/NN_topic/changes/NAME.md`, which [`course::page`] takes apart.

use super::lanes::Recorded;
use super::sources::Sources;
use anyhow::{ensure, Context, Result};
use course::page::{Page, OUTCOME};

/// How the links of a change's page begin, and what they are on a page in docs/.
const LINKS: [(&str, &str); 2] = [("](../../../docs/", "]("), ("](../../../", "](../")];

/// What can be broken, each with its question, and a link to where the answer is.
///
/// # Errors
/// There is no such change.
pub fn table(sources: &Sources, lesson: &str, names: &[&str]) -> Result<Vec<String>> {
    let mut lines = vec!["| `CHANGE=` | what it does | and you are asked |".to_owned(), "|---|---|---|".to_owned()];
    for name in names {
        let (path, page) = (path(sources, lesson, name)?, load(sources, lesson, name)?);
        let ask = page.parts[0].prose().split_whitespace().collect::<Vec<_>>().join(" ");
        lines.push(format!("| [`{name}`](../{path}) | {} | {} |", page.title, ask.replace('|', "\\|")));
    }
    Ok(lines)
}

/// One change, with what was kept of its run: for the book, whose pages may be long where they are folded.
///
/// # Errors
/// There is no such change.
pub fn with_run(sources: &Sources, lesson: &str, name: &str) -> Result<Vec<String>> {
    let page = load(sources, lesson, name)?;
    let mut lines = vec![format!("**{}.** `{}`", page.title, page.command)];
    lines.extend(page.parts[0].lines.iter().map(|line| of_docs(line)));
    lines.extend([format!("<details><summary>{OUTCOME}</summary>"), String::new()]);
    lines.extend(of_docs(&page.part(OUTCOME)?.prose()).lines().map(String::from));
    // What does not compile has no run.
    if let Ok(run) = sources.text(&recorded(lesson, name)) {
        lines.push(String::new());
        lines.extend(Recorded::parse(&run).html(|_| true));
    }
    lines.extend(["", "</details>"].map(String::from));
    Ok(lines)
}

/// What is asked of a change, and the answer.
///
/// # Errors
/// There is no such change.
pub fn asked(sources: &Sources, lesson: &str, name: &str) -> Result<Vec<String>> {
    let page = load(sources, lesson, name)?;
    let text = format!("*{}*\n{}", page.parts[0].prose(), page.part(OUTCOME)?.prose());
    Ok(of_docs(&text).lines().map(String::from).collect())
}

/// Where a change is: `lessons/04_rdma_write/changes/wrong-key.md`.
///
/// # Errors
/// There is no such change.
pub fn path(sources: &Sources, lesson: &str, name: &str) -> Result<String> {
    let folder = &sources.lesson(lesson).with_context(|| format!("there is no lesson {lesson}"))?.name;
    let path = format!("lessons/{folder}/changes/{name}.md");
    ensure!(sources.path(&path).exists(), "there is no {path}");
    Ok(path)
}

/// Where the part of its run is that was kept.
pub fn recorded(lesson: &str, name: &str) -> String {
    format!("captures/changes/{lesson}-{name}.txt")
}

fn load(sources: &Sources, lesson: &str, name: &str) -> Result<Page> {
    let path = path(sources, lesson, name)?;
    Page::parse(&sources.text(&path)?).context(path)
}

fn of_docs(text: &str) -> String {
    LINKS.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::super::sources::tests::repository;
    use super::*;

    #[test]
    fn a_change_shows_its_edit_and_folds_away_what_comes_of_it() {
        let text = with_run(repository(), "03", "late-receive").unwrap().join("\n");
        let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part} in {text}"));
        let parts = ["CHANGE=late-receive`", "\n-    let receive", "\n+    std::thread", "<details>", "RNR NAK"];
        assert!(parts.windows(2).all(|pair| place(pair[0]) < place(pair[1])), "{text}");
        assert!(text.contains("<span>RNR NAK") && !text.contains("server sends:"));
        let rows = table(repository(), "03", &["late-receive"]).unwrap();
        assert!(rows[2].starts_with("| [`late-receive`](../lessons/03_metadata_exchange/changes/late-receive.md) | "));
        assert!(table(repository(), "03", &["none"]).is_err() && table(repository(), "93", &["x"]).is_err());
    }

    #[test]
    fn links_are_those_of_the_page_that_shows_it() {
        let answer = asked(repository(), "04", "wrong-key").unwrap().join("\n");
        assert!(answer.contains("](completions.md#ibv_wc_rem_access_err)"), "{answer}");
        assert_eq!(of_docs("[a](../../../captures/b.txt)"), "[a](../captures/b.txt)");
    }
}

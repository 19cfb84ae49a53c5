//! The changes of a lesson on its page: what is edited, what the reader predicts, and, folded away, what comes of it.

use super::sources::Sources;
use anyhow::{ensure, Context, Result};
use serde::Deserialize;
use std::collections::BTreeMap;

/// What a page shows of `lessons/NN_topic/changes/NAME.toml`; `practice` reads the rest.
#[derive(Deserialize)]
struct Change {
    title: String,
    ask: String,
    why: String,
    #[serde(default)]
    edits: Vec<Edit>,
    server: Option<String>,
    client: Option<String>,
    wire: Option<String>,
    #[serde(default)]
    nodes: BTreeMap<String, String>,
    #[serde(default)]
    faults: Vec<String>,
}

#[derive(Deserialize)]
struct Edit {
    file: String,
    from: String,
    to: String,
}

/// One change, with a link to what was kept of its run.
///
/// # Errors
/// There is no such change.
pub fn section(sources: &Sources, lesson: &str, name: &str) -> Result<Vec<String>> {
    shown(sources, lesson, name, |path, _| vec![format!("[What the run shows](../{path})")])
}

/// One change, with what was kept of its run: for the book, whose pages may be long where they are folded.
///
/// # Errors
/// There is no such change.
pub fn with_run(sources: &Sources, lesson: &str, name: &str) -> Result<Vec<String>> {
    let quoted = |run: &str| run.lines().map(String::from).collect::<Vec<_>>();
    shown(sources, lesson, name, |_, run| [vec!["```text".into()], quoted(run), vec!["```".into()]].concat())
}

/// Where a change is, without the ending: `lessons/04_rdma_write/changes/wrong-key`.
///
/// # Errors
/// There is no such change.
pub fn path(sources: &Sources, lesson: &str, name: &str) -> Result<String> {
    let folder = &sources.lesson(lesson).with_context(|| format!("there is no lesson {lesson}"))?.name;
    let path = format!("lessons/{folder}/changes/{name}");
    ensure!(sources.path(&format!("{path}.toml")).exists(), "there is no {path}.toml");
    Ok(path)
}

fn load(sources: &Sources, lesson: &str, name: &str) -> Result<Change> {
    let path = path(sources, lesson, name)? + ".toml";
    basic_toml::from_str(&sources.text(&path)?).context(path)
}

/// What is asked of a change, and the answer.
///
/// # Errors
/// There is no such change.
pub fn asked(sources: &Sources, lesson: &str, name: &str) -> Result<Vec<String>> {
    let Change { ask, why, .. } = load(sources, lesson, name)?;
    Ok([format!("*{}*", ask.trim())].into_iter().chain(why.trim().lines().map(String::from)).collect())
}

fn shown(sources: &Sources, lesson: &str, name: &str, run: impl Fn(&str, &str) -> Vec<String>) -> Result<Vec<String>> {
    let (path, change) = (path(sources, lesson, name)?, load(sources, lesson, name)?);
    let mut lines = vec![format!("**{}.** `make break-{lesson} CHANGE={name}`", change.title), String::new()];
    lines.extend(edit(&change));
    lines.extend(change.ask.trim().lines().map(String::from));
    lines.extend(["", "<details><summary>What comes of it</summary>", ""].map(String::from));
    lines.extend(change.why.trim().lines().map(String::from));
    // What does not compile has no run.
    let path = format!("{path}.txt");
    if let Ok(text) = sources.text(&path) {
        lines.push(String::new());
        lines.extend(run(&path, &text));
    }
    lines.extend(["", "</details>"].map(String::from));
    Ok(lines)
}

/// The edits as a difference, the options, and what is done to the machines.
fn edit(change: &Change) -> Vec<String> {
    let mut lines = vec!["```diff".to_owned()];
    let mut last = "";
    for Edit { file, from, to } in &change.edits {
        if last != file {
            lines.push(format!("--- {file}"));
        }
        last = file;
        let (from, to): (Vec<&str>, Vec<&str>) = (from.lines().collect(), to.lines().collect());
        let head = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
        let rest = (from[head..].iter().rev()).zip(to[head..].iter().rev());
        let tail = rest.take_while(|(a, b)| a == b).count();
        let marked = |mark: char, part: &[&str]| part.iter().map(|line| format!("{mark}{line}")).collect::<Vec<_>>();
        lines.extend(marked(' ', &from[..head]));
        lines.extend(marked('-', &from[head..from.len() - tail]));
        lines.extend(marked('+', &to[head..to.len() - tail]));
        lines.extend(marked(' ', &from[from.len() - tail..]));
    }
    for (name, options) in [("server", &change.server), ("client", &change.client), ("wire", &change.wire)] {
        lines.extend(options.iter().map(|options| format!("+{name}='{options}'")));
    }
    lines.extend(change.nodes.iter().map(|(node, command)| format!("+{node} runs: {command}")));
    lines.extend(change.faults.iter().map(|fault| format!("+the lab does: {fault}")));
    lines.extend(["```".to_owned(), String::new()]);
    lines
}

#[cfg(test)]
mod tests {
    use super::super::sources::tests::repository;
    use super::*;

    #[test]
    fn a_change_shows_its_edit_and_folds_away_what_comes_of_it() {
        let text = section(repository(), "03", "late-receive").unwrap().join("\n");
        let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part} in {text}"));
        let parts = [
            "CHANGE=late-receive`",
            "\n-            let receive",
            "\n+            std::thread",
            "<details>",
            "RNR NAK",
        ];
        assert!(parts.windows(2).all(|pair| place(pair[0]) < place(pair[1])), "{text}");
        assert!(
            text.contains("(../lessons/03_metadata_exchange/changes/late-receive.txt)") && !text.contains("```text")
        );
        assert!(with_run(repository(), "03", "late-receive").unwrap().join("\n").contains("─ RNR NAK"));
        assert!(section(repository(), "03", "none").is_err() && section(repository(), "93", "x").is_err());
    }

    #[test]
    fn lines_that_stay_are_no_part_of_an_edit() {
        let text = "title = ''\nask = ''\nwhy = ''\nclient = '-x'\n[[edits]]\nfile = 'f'\nfrom = \"a\\nb\\nc\"\nto = \"a\\nd\\nc\"";
        let lines = edit(&basic_toml::from_str(text).unwrap());
        assert_eq!(lines, ["```diff", "--- f", " a", "-b", "+d", " c", "+client='-x'", "```", ""]);
    }
}

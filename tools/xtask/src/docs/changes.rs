//! The changes of a lesson on its page: what is edited, what the reader predicts, and, folded away, what comes of it.

use super::lanes::Recorded;
use super::sources::Sources;
use anyhow::{ensure, Context, Result};
use serde::de::IgnoredAny;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What a page shows of `lessons/NN_topic/changes/NAME.toml`; `course` reads the rest.
#[derive(Deserialize)]
struct Change {
    title: String,
    /// Exercises ask and explain nothing.
    #[serde(default)]
    ask: String,
    #[serde(default)]
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
    /// An exercise has one.
    task: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Edit {
    file: String,
    from: String,
    to: String,
}

/// What can be broken, each with its question; the answers are in the folder of the changes.
///
/// # Errors
/// There is no such change.
pub fn table(sources: &Sources, lesson: &str, names: &[&str]) -> Result<Vec<String>> {
    let mut lines = vec!["| `CHANGE=` | what it does | and you are asked |".to_owned(), "|---|---|---|".to_owned()];
    for name in names {
        let (path, change) = (path(sources, lesson, name)?, load(sources, lesson, name)?);
        let (folder, ask) = (path.trim_end_matches(name), change.ask.split_whitespace().collect::<Vec<_>>().join(" "));
        lines.push(format!(
            "| [`{name}`](../{folder}README.md#{name}) | {} | {} |",
            change.title,
            ask.replace('|', "\\|")
        ));
    }
    Ok(lines)
}

/// The page in the folder of a lesson's changes: all that are no exercises, with what comes of them. None if there are none.
///
/// # Errors
/// A change cannot be read.
pub fn page(sources: &Sources, folder: &str) -> Result<Option<(String, String)>> {
    let (path, lesson) = (format!("lessons/{folder}/changes"), &folder[..2]);
    let mut text = format!(
        "# What can be broken in lesson {lesson}\n\nWritten by `make docs`, from the changes beside it. `make break-{lesson}` lists them, too, and makes \
         one, in a copy. What is said of SoftRoCE was recorded with Linux 6.1.\n"
    );
    let files = sources.files(&path, ".toml").unwrap_or_default();
    let names: Vec<&str> = files.iter().filter_map(|file| file.rsplit('/').next()?.strip_suffix(".toml")).collect();
    for name in &names {
        if load(sources, lesson, name)?.task.is_some() {
            continue;
        }
        let shown = shown(sources, lesson, name, |path, _| {
            vec![format!("[What the run shows]({})", path.rsplit('/').next().unwrap_or_default())]
        })?;
        // The links of a change are those of a page in docs/.
        let shown = shown.join("\n").replace("](../", "](../../../").replace("](", "](\u{0}");
        let shown = shown.split("](\u{0}").collect::<Vec<_>>();
        let link = |piece: &&str| match piece.split_once(')') {
            Some((target, _)) if target.starts_with("../") || target.starts_with("http") || !target.contains(".md") => {
                format!("]({piece}")
            }
            _ => format!("](../../../docs/{piece}"),
        };
        text += &format!("\n## {name}\n\n{}{}\n", shown[0], shown[1..].iter().map(link).collect::<String>());
    }
    Ok((!names.is_empty()).then(|| (format!("{path}/README.md"), text)))
}

/// One change, with what was kept of its run: for the book, whose pages may be long where they are folded.
///
/// # Errors
/// There is no such change.
pub fn with_run(sources: &Sources, lesson: &str, name: &str) -> Result<Vec<String>> {
    shown(sources, lesson, name, |_, run| Recorded::parse(run).html(|_| true))
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
        let text = with_run(repository(), "03", "late-receive").unwrap().join("\n");
        let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part} in {text}"));
        let parts = ["CHANGE=late-receive`", "\n-    let receive", "\n+    std::thread", "<details>", "RNR NAK"];
        assert!(parts.windows(2).all(|pair| place(pair[0]) < place(pair[1])), "{text}");
        assert!(text.contains("<span>RNR NAK"));
        let rows = table(repository(), "03", &["late-receive"]).unwrap();
        let link = "| [`late-receive`](../lessons/03_metadata_exchange/changes/README.md#late-receive) | ";
        assert!(rows[2].starts_with(link), "{rows:?}");
        assert!(table(repository(), "03", &["none"]).is_err() && table(repository(), "93", &["x"]).is_err());
    }

    #[test]
    fn the_page_of_a_folder_has_its_changes_and_no_exercise() {
        let (path, text) = page(repository(), "04_rdma_write").unwrap().unwrap();
        assert_eq!(path, "lessons/04_rdma_write/changes/README.md");
        assert!(text.contains("\n## wrong-key\n\n**Use a wrong key.**") && !text.contains("\n## whose\n"), "{text}");
        assert!(
            text.contains("](../../../docs/completions.md#ibv_wc_rem_access_err)") && text.contains("](wrong-key.txt)")
        );
    }

    #[test]
    fn lines_that_stay_are_no_part_of_an_edit() {
        let text = "title = ''\nask = ''\nwhy = ''\nclient = '-x'\n[[edits]]\nfile = 'f'\nfrom = \"a\\nb\\nc\"\nto = \"a\\nd\\nc\"";
        let lines = edit(&basic_toml::from_str(text).unwrap());
        assert_eq!(lines, ["```diff", "--- f", " a", "-b", "+d", " c", "+client='-x'", "```", ""]);
    }
}

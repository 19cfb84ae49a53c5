//! Manifests of copies: those of the repository with something else in them, and not their text.

use crate::files::read;
use anyhow::{Context, Result};
use serde_json::{json, Map, Value};
use std::path::Path;

/// The manifest of a copy's package: the lesson's, under another name.
///
/// # Errors
/// The lesson's cannot be read.
pub(crate) fn package(lesson: &Path, name: &str) -> Result<String> {
    let mut manifest = parsed(&lesson.join("Cargo.toml"))?;
    manifest["package"]["name"] = json!(name);
    Ok(text(&manifest))
}

/// The manifest of a workspace: the repository's, with other members, and with a mark behind its version. A lesson's own code
/// takes little time, and a person waits for the compiler: only what it calls is optimized.
///
/// # Errors
/// The repository's cannot be read.
pub(crate) fn workspace(root: &Path, members: &[String], packages: &[String], mark: &str) -> Result<String> {
    let mut manifest = parsed(&root.join("Cargo.toml"))?;
    let workspace = &mut manifest["workspace"];
    workspace["members"] = json!(members);
    let version = workspace["package"]["version"].as_str().context("the repository's manifest has no version")?;
    workspace["package"]["version"] = json!(format!("{version}{mark}"));
    for package in packages {
        manifest["profile"]["dev"]["package"][package] =
            json!({ "opt-level": 0, "debug": false, "incremental": false });
    }
    Ok(text(&manifest))
}

fn parsed(path: &Path) -> Result<Value> {
    basic_toml::from_str(&read(path)?).with_context(|| path.display().to_string())
}

fn text(manifest: &Value) -> String {
    let mut lines = String::new();
    manifest.as_object().into_iter().for_each(|table| write(table, "", &mut lines));
    lines
}

/// A table's own values come before the tables in it. Strings, numbers and lists of them are the same in JSON and in TOML.
fn write(table: &Map<String, Value>, path: &str, lines: &mut String) {
    for (key, value) in table.iter().filter(|(_, value)| !value.is_object()) {
        *lines += &format!("{key:?} = {value}\n");
    }
    for (key, inner) in table.iter().filter_map(|(key, value)| Some((key, value.as_object()?))) {
        let path = if path.is_empty() { format!("{key:?}") } else { format!("{path}.{key:?}") };
        *lines += &format!("\n[{path}]\n");
        write(inner, &path, lines);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::Project;

    #[test]
    fn a_manifest_is_the_repositorys_but_for_what_is_said() {
        let root = Project::find().unwrap().root;
        let again = |text: &str| basic_toml::from_str::<Value>(text).unwrap();
        let before = parsed(&root.join("Cargo.toml")).unwrap();
        let mut after = again(&workspace(&root, &["04-x".into()], &["lesson-04-x".into()], "-try").unwrap());
        assert_eq!(after["workspace"]["members"], json!(["04-x"]));
        assert_eq!(after["profile"]["dev"]["package"]["lesson-04-x"]["opt-level"], json!(0));
        assert!(after["workspace"]["package"]["version"].as_str().unwrap().ends_with("-try"));
        for (key, before) in
            [("members", &before["workspace"]["members"]), ("package", &before["workspace"]["package"])]
        {
            after["workspace"][key] = before.clone();
        }
        after["profile"]["dev"]["package"].as_object_mut().unwrap().remove("lesson-04-x");
        assert_eq!(after, before, "all else");

        let lesson = root.join("lessons/04_rdma_write");
        let (before, mut after) =
            (parsed(&lesson.join("Cargo.toml")).unwrap(), again(&package(&lesson, "lesson-04-x").unwrap()));
        assert_eq!(after["package"]["name"], json!("lesson-04-x"));
        after["package"]["name"] = json!("lesson-04");
        assert_eq!(after, before);
    }
}

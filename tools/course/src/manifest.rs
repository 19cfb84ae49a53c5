//! Manifests of copies: those of the repository with something else in them, and not their text.

use crate::files::read;
use anyhow::{Context, Result};
use serde_json::{json, Map, Value};
use std::path::Path;

/// The manifest of a copy's package: the lesson's, under another name.
pub(crate) fn package(lesson: &Path, name: &str) -> Result<String> {
    let mut manifest = parsed(&lesson.join("Cargo.toml"))?;
    manifest["package"]["name"] = json!(name);
    Ok(text(&manifest))
}

/// The manifest of a workspace: the repository's, with other members, and with a mark behind its version. A lesson's own code
/// takes little time, and a person waits for the compiler: only what it calls is optimized.
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
        let text = workspace(&root, &["04-x".into()], &["lesson-04-x".into()], "-try").unwrap();
        let mut after: Value = basic_toml::from_str(&text).unwrap();
        assert_eq!(after["workspace"]["members"], json!(["04-x"]));
        let packages = after["profile"]["dev"]["package"].as_object_mut().unwrap();
        assert_eq!(packages.remove("lesson-04-x").unwrap()["opt-level"], json!(0));
        let mut before = parsed(&root.join("Cargo.toml")).unwrap();
        before["workspace"]["members"] = json!(["04-x"]);
        before["workspace"]["package"]["version"] = json!("0.1.0-try");
        assert_eq!(after, before, "all else");
    }
}

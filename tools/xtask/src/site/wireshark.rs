//! The page that is Wireshark: its scripts, our profile, and the program, which npm has brought.

use super::Folder;
use crate::docs::sources::Sources;
use anyhow::{Context, Result};
use run::story;
use serde_json::json;
use std::fs;
use std::path::Path;

const PROFILE: &str = "captures/wireshark-profile";

/// What is taken from the package: its file, and what it is called beside the page.
const PROGRAM: [(&str, &str); 4] = [
    ("dist/wiregasm.js", "wiregasm.js"),
    ("dist/wiregasm.wasm.gz", "wiregasm.wasm.gz"),
    ("dist/wiregasm.data.gz", "wiregasm.data.gz"),
    ("LICENSE", "LICENSE.txt"),
];

/// Lays out all that `tools/book/pages/wireshark.md` loads.
pub fn lay_out(sources: &Sources, tools: &Path, to: &Folder) -> Result<()> {
    for path in sources.files("tools/book/wireshark", ".js")? {
        to.copy(sources, &path, path.trim_start_matches("tools/book/wireshark/"))?;
    }
    for path in sources.files(PROFILE, "")? {
        to.copy(sources, &path, &format!("profile{}", path.trim_start_matches(PROFILE)))?;
    }
    for (file, name) in PROGRAM {
        let path = tools.join("node_modules/@goodtools/wiregasm").join(file);
        to.write(
            name,
            fs::read(&path).with_context(|| format!("cannot read {} (`make site` brings it)", path.display()))?,
        )?;
    }
    let runs: Vec<String> = story::bundled()?.iter().map(story::Story::file_name).collect();
    let filters = filters(&sources.text(&format!("{PROFILE}/dfilter_buttons"))?);
    to.write("runs.js", format!("var wireshark = {};\n", json!({ "runs": runs, "filters": filters })))
}

/// The buttons of the profile: what stands on each, and its filter.
fn filters(buttons: &str) -> Vec<(String, String)> {
    let button = |line: &str| {
        let mut cells = line.strip_prefix("\"TRUE\",\"")?.split("\",\"");
        Some((cells.next()?.to_owned(), cells.next()?.replace("\\x22", "\"")))
    };
    buttons.lines().filter_map(button).collect()
}

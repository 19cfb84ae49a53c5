//! The page that is Wireshark: its scripts, our profile, and the program, which npm has brought.

use super::copy;
use crate::docs::sources::files;
use anyhow::{Context, Result};
use run::files::{bytes, read, write};
use run::story;
use serde_json::json;
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
pub fn lay_out(tools: &Path, to: &Path) -> Result<()> {
    for path in files("tools/book/wireshark", ".js")? {
        copy(&path, to.join(path.trim_start_matches("tools/book/wireshark/")))?;
    }
    for path in files(PROFILE, "")? {
        copy(&path, to.join(format!("profile{}", path.trim_start_matches(PROFILE))))?;
    }
    for (file, name) in PROGRAM {
        let path = tools.join("node_modules/@goodtools/wiregasm").join(file);
        write(to.join(name), bytes(path).context("`make site` brings it")?)?;
    }
    let mut runs: Vec<String> = story::bundled()?.iter().map(story::Story::file_name).collect();
    for folder in ["met", "over_tcp", "protocols"] {
        let paths = files(&format!("captures/{folder}"), ".pcapng")?.into_iter();
        runs.extend(paths.map(|path| path.trim_start_matches("captures/").trim_end_matches(".pcapng").to_owned()));
    }
    let filters = filters(&read(format!("{PROFILE}/dfilter_buttons"))?);
    write(to.join("runs.js"), format!("var wireshark = {};\n", json!({ "runs": runs, "filters": filters })))
}

/// The buttons of the profile: what stands on each, and its filter.
fn filters(buttons: &str) -> Vec<(String, String)> {
    let button = |line: &str| {
        let mut cells = line.strip_prefix("\"TRUE\",\"")?.split("\",\"");
        Some((cells.next()?.to_owned(), cells.next()?.replace("\\x22", "\"")))
    };
    buttons.lines().filter_map(button).collect()
}

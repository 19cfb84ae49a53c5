//! `wire explain` on its page: the program as a script, for a page that is opened from a folder may load those, and nothing else.

use super::copy;
use anyhow::Result;
use std::path::Path;

/// What stands for it in docs/explain.md.
pub const PLACE: &str = "<!-- explain -->";

/// What tools/book/program.sh has made of it, if there was a compiler.
const PROGRAM: &str = "program.js";

/// The place on the page; without the program it says so.
pub fn here(tools: &Path) -> &'static str {
    match tools.join(PROGRAM).exists() {
        true => {
            "<div id=\"explain\" class=\"explain\">\n<noscript>This needs JavaScript. On the command line: \
             <code>wire explain FILE</code>.</noscript>\n</div>\n\n<script src=\"../capture.js\"></script>\n\
             <script src=\"../player/player.js\"></script>\n\
             <script src=\"../explain/program.js\"></script>\n<script src=\"../explain/explain.js\"></script>"
        }
        false => {
            "<div id=\"explain\" class=\"explain missing\">\n\n**The program is not in this copy of the book**: where it was \
             built, there was no compiler for WebAssembly. The command below says the same.\n\n</div>"
        }
    }
}

/// Lays out what the page loads.
pub fn lay_out(tools: &Path, to: &Path) -> Result<()> {
    if tools.join(PROGRAM).exists() {
        copy(&tools.join(PROGRAM).to_string_lossy(), to.join(PROGRAM))?;
        copy("tools/book/explain/explain.js", to.join("explain.js"))?;
    }
    Ok(())
}

//! What a page of the book may do: run the book's own files, and nothing that has come into its text.

use super::Folder;
use crate::docs::sources::Sources;
use anyhow::{ensure, Context, Result};
use std::fs;

/// The list of chapters is a frame for those who run no script; the sign for copying is a picture in a style.
const MAY: &str =
    "default-src 'none'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; frame-src 'self'; \
                   base-uri 'none'; form-action 'none'; script-src 'self'";
/// Wireshark's program is compiled in its page, and makes functions there, once it is asked for.
const PROGRAM: &str = " 'wasm-unsafe-eval' 'unsafe-eval'";
/// The page that is Wireshark.
const WIRESHARK: &str = "wireshark.html";

/// The scripts that mdBook writes into its pages, each once, as files: a page may run these.
#[derive(Default)]
pub struct Scripts(Vec<String>);

impl Scripts {
    /// The page with its policy, and with links to its scripts. `up` leads from it to the book's root.
    pub fn guarded(&mut self, page: &str, up: &str, html: &str) -> String {
        let program = if page == WIRESHARK { PROGRAM } else { "" };
        let policy = format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{MAY}{program}\">");
        let charset = "<meta charset=\"UTF-8\">";
        let html = html.replacen(charset, &format!("{charset}\n        {policy}"), 1);
        let (mut text, mut rest) = (String::with_capacity(html.len()), html.as_str());
        while let Some((before, after)) = rest.split_once("<script>") {
            let (script, after) = after.split_once("</script>").unwrap_or((after, ""));
            text += &format!("{before}<script src=\"{up}{}\"></script>", name(self.number(script)));
            rest = after;
        }
        text += rest;
        // Styles in elements are no files.
        text.replace(" style=\"clear: both\"", " class=\"clear\"")
    }

    fn number(&mut self, script: &str) -> usize {
        self.0.iter().position(|known| known == script).unwrap_or_else(|| {
            self.0.push(script.to_owned());
            self.0.len() - 1
        })
    }

    /// Writes them into the book.
    pub fn write(&self, site: &Folder) -> Result<()> {
        self.0.iter().enumerate().try_for_each(|(number, script)| site.write(&name(number), script))
    }
}

/// Lets the script that searches set a style without writing an attribute, which a page may not have. Its name ends with a number
/// that mdBook makes of its content.
pub fn mend_searcher(sources: &Sources, site: &str) -> Result<()> {
    let (attribute, style) = ("tmp.setAttribute('style', ", "(tmp.style.cssText = ");
    let files = sources.files(site, ".js")?;
    let path = files.iter().find(|path| path.starts_with(&format!("{site}/searcher")));
    let path = path.context("the book has no searcher")?;
    let text = sources.text(path)?;
    ensure!(text.contains(attribute), "{path} has no {attribute}");
    fs::write(path, text.replace(attribute, style)).with_context(|| format!("cannot write {path}"))
}

fn name(number: usize) -> String {
    format!("scripts/{number}.js")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_runs_files_alone() {
        let mut scripts = Scripts::default();
        let page = "<meta charset=\"UTF-8\"><script>one()</script><p>&lt;script&gt;</p><script src=\"a.js\"></script>";
        let guarded = scripts.guarded("docs/lab.html", "../", page);
        assert!(guarded.contains("script-src 'self'\">") && !guarded.contains("unsafe"), "{guarded}");
        assert!(guarded.contains("<script src=\"../scripts/0.js\"></script><p>&lt;script&gt;</p><script src=\"a.js\">"));
        scripts.guarded("wireshark.html", "", page);
        scripts.guarded("index.html", "", "<script>two()</script>");
        assert_eq!(scripts.0, ["one()", "two()"]);
    }
}

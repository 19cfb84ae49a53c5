//! What a page of the book may do: run the book's own files, and nothing that has come into its text.

use super::workbench;
use anyhow::Result;
use run::files::write;
use std::path::Path;

/// The list of chapters is a frame for those who run no script; the sign for copying is a picture in a style.
const MAY: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; font-src 'self'; frame-src 'self'; \
                   base-uri 'none'; form-action 'none'";

/// What the scripts of a page may do besides.
fn scripts(page: &str, html: &str) -> &'static str {
    match page {
        // Wireshark's program is compiled in its page, and makes functions there, once it is asked for.
        "wireshark.html" => "connect-src 'self'; script-src 'self' 'wasm-unsafe-eval' 'unsafe-eval'",
        // A capture is read here, and goes nowhere.
        "docs/explain.html" => "connect-src 'none'; script-src 'self' 'wasm-unsafe-eval'",
        _ if html.contains(workbench::CLASS) => "connect-src 'self'; script-src 'self' 'wasm-unsafe-eval'",
        _ => "connect-src 'self'; script-src 'self'",
    }
}

/// The page with its policy; the scripts that mdBook writes into it become files, which a page may run. `up` leads to the book.
pub fn guarded(book: &Path, page: &str, up: &str, html: &str) -> Result<String> {
    let scripts = scripts(page, html);
    let policy = format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{MAY}; {scripts}\">");
    let charset = "<meta charset=\"UTF-8\">";
    let html = html.replacen(charset, &format!("{charset}\n        {policy}"), 1);
    let (mut text, mut rest) = (String::with_capacity(html.len()), html.as_str());
    while let Some((before, after)) = rest.split_once("<script>") {
        let (script, after) = after.split_once("</script>").unwrap_or((after, ""));
        // Most pages have the same ones.
        let file = format!("scripts/{:08x}.js", crc32fast::hash(script.as_bytes()));
        write(book.join(&file), script)?;
        text += &format!("{before}<script src=\"{up}{file}\"></script>");
        rest = after;
    }
    text += rest;
    // Styles in elements are no files.
    Ok(text.replace(" style=\"clear: both\"", " class=\"clear\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use run::files::read;

    #[test]
    fn a_page_runs_files_alone() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let page =
            "<meta charset=\"UTF-8\"><script>123456789</script><p>&lt;script&gt;</p><script src=\"a.js\"></script>";
        let guarded = guarded(folder.path(), "docs/lab.html", "../", page)?;
        assert!(guarded.contains("script-src 'self'\">") && !guarded.contains("unsafe"), "{guarded}");
        // The sum of these nine digits is the one that descriptions of CRC-32 give.
        let file = "scripts/cbf43926.js";
        assert!(
            guarded.contains(&format!("<script src=\"../{file}\"></script><p>&lt;script&gt;</p><script src=\"a.js\">"))
        );
        assert_eq!(read(folder.path().join(file))?, "123456789");
        Ok(())
    }
}

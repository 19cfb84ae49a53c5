//! What mdBook cannot know: where a page is edited.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// What `edit-url-template` in site/book.toml makes of the page docs/lab.md: `edit:src/docs/lab.md`.
const TEMPLATE: &str = "href=\"edit:src/";

/// Lets each page's "edit this page" lead to its file at the forge, or, if no forge is known, to what CONTRIBUTING says.
///
/// # Errors
/// A file cannot be read or written.
pub fn edit_links(site: &Path, forge: Option<&str>) -> Result<()> {
    for path in html(site)? {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let depth = path.strip_prefix(site).map_or(0, |path| path.components().count() - 1);
        if let Some((before, rest)) = text.split_once(TEMPLATE) {
            let (page, after) = rest.split_once('"').unwrap_or((rest, ""));
            let link = link(page, forge, depth);
            fs::write(&path, format!("{before}href=\"{link}\"{after}"))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(())
}

/// Where the page of the book is edited.
fn link(page: &str, forge: Option<&str>, depth: usize) -> String {
    let Some(forge) = forge else { return format!("{}CONTRIBUTING.html", "../".repeat(depth)) };
    let own = ["play.md", "wireshark.md"].contains(&page);
    let file = page.replace("index.md", "README.md");
    // The page of a file or folder of code is called like that, and .md.
    match file
        .strip_suffix(".md")
        .filter(|_| !own && !file.starts_with("docs/") && !file.contains("README") && file != "CONTRIBUTING.md")
    {
        Some(code) if Path::new(code).extension().is_none() => format!("{forge}/tree/main/{code}"),
        Some(code) => format!("{forge}/edit/main/{code}"),
        None => format!("{forge}/edit/main/{}{file}", if own { "site/pages/" } else { "" }),
    }
}

fn html(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(html(&path)?);
        } else if path.extension().is_some_and(|end| end == "html") {
            files.push(path);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::link;

    #[test]
    fn each_page_is_edited_where_its_file_is() {
        let forge = Some("https://forge.example/a/b");
        let at = |page| link(page, forge, 1).replace("https://forge.example/a/b/edit/main/", "");
        let files = ["docs/lab.md", "docs/index.md", "captures/index.md", "lab/a.py.md", "play.md"].map(at);
        assert_eq!(files, ["docs/lab.md", "docs/README.md", "captures/README.md", "lab/a.py", "site/pages/play.md"]);
        assert_eq!(at("common/src.md"), "https://forge.example/a/b/tree/main/common/src");
        assert_eq!(link("docs/lab.md", None, 1), "../CONTRIBUTING.html");
    }
}

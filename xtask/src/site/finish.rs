//! What mdBook cannot know, and what it makes larger than need be.

use anyhow::{Context, Result};
use serde_json::Value;
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

/// Leaves the third of the index away in which each word of a page stands once more, for the chapters above it: half of the
/// book's size, and of no use where chapters have no chapters above them.
///
/// # Errors
/// The index is not what mdBook writes.
pub fn shrink_search(site: &Path) -> Result<()> {
    let name = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("searchindex"));
    let entries = fs::read_dir(site).with_context(|| format!("cannot read {}", site.display()))?;
    let path =
        entries.filter_map(|entry| Some(entry.ok()?.path())).find(name).context("the book has no search index")?;
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let json = text
        .split_once("JSON.parse('")
        .and_then(|(_, rest)| rest.rsplit_once("')"))
        .context("the search index is no JSON")?
        .0;
    let mut index: Value =
        serde_json::from_str(&json.replace("\\'", "'").replace("\\\\", "\\")).context("the search index")?;
    for place in ["/index/index", "/search_options/fields"] {
        index
            .pointer_mut(place)
            .and_then(Value::as_object_mut)
            .context("the search index has other parts")?
            .remove("breadcrumbs");
    }
    let fields =
        index.pointer_mut("/index/fields").and_then(Value::as_array_mut).context("the search index has no fields")?;
    fields.retain(|field| field != "breadcrumbs");
    fs::write(&path, format!("window.search = Object.assign(window.search, {index});\n"))
        .with_context(|| format!("cannot write {}", path.display()))
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

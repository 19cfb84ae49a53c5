//! What mdBook cannot know.

use super::policy::Scripts;
use super::{access, Folder};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// What `edit-url-template` in tools/book/book.toml makes of the page docs/lab.md: `edit:src/docs/lab.md`.
const TEMPLATE: &str = "href=\"edit:src/";

/// Finishes each page: its policy, a link past the menu, the sizes of its pictures, and "edit this page".
///
/// # Errors
/// A file cannot be read or written.
pub fn pages(site: &Path, forge: Option<&str>) -> Result<()> {
    let (mut scripts, folder) = (Scripts::default(), Folder(site.to_owned()));
    for path in html(site)? {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let page = path.strip_prefix(site).unwrap_or(&path).to_string_lossy();
        let depth = page.matches('/').count();
        let text = access::sized(&access::skip_link(&text), path.parent().unwrap_or(site))?;
        let text = scripts.guarded(&page, &"../".repeat(depth), &text);
        folder.write(&page, edit_link(&text, forge, depth))?;
    }
    scripts.write(&folder)
}

/// Lets a page's "edit this page" lead to its file at the forge, or, if no forge is known, to what CONTRIBUTING says.
fn edit_link(text: &str, forge: Option<&str>, depth: usize) -> String {
    let Some((before, rest)) = text.split_once(TEMPLATE) else { return text.to_owned() };
    let (page, after) = rest.split_once('"').unwrap_or((rest, ""));
    format!("{before}href=\"{}\"{after}", link(page, forge, depth))
}

/// The book's file whose name begins like that: it ends with a number that mdBook makes of its content.
pub fn file(site: &Path, begin: &str) -> Result<PathBuf> {
    let is_it = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(begin));
    let entries = fs::read_dir(site).with_context(|| format!("cannot read {}", site.display()))?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.find(is_it).with_context(|| format!("the book has no {begin}"))
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
        None => format!("{forge}/edit/main/{}{file}", if own { "tools/book/pages/" } else { "" }),
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
        assert_eq!(
            files,
            ["docs/lab.md", "docs/README.md", "captures/README.md", "lab/a.py", "tools/book/pages/play.md"]
        );
        assert_eq!(at("common/src.md"), "https://forge.example/a/b/tree/main/common/src");
        assert_eq!(link("docs/lab.md", None, 1), "../CONTRIBUTING.html");
    }
}

//! What mdBook cannot know of a page: what lets everybody read it (a way past the menu, and pictures whose place is there before
//! they are), and where it is edited.

use super::policy;
use anyhow::{Context, Result};
use run::files::{bytes, read, tree, write};
use std::path::Path;

/// What `edit-url-template` in tools/book/book.toml makes of the page docs/lab.md: `edit:src/docs/lab.md`.
const TEMPLATE: &str = "href=\"edit:src/";

/// Finishes each page: its policy, a link past the menu, the sizes of its pictures, and "edit this page".
pub fn pages(site: &Path, forge: Option<&str>) -> Result<()> {
    for page in tree(site)?.iter().filter(|path| path.ends_with(".html")) {
        let (path, depth) = (site.join(page), page.matches('/').count());
        let text = sized(&skip_link(&read(&path)?), &path.with_file_name(""))?;
        let text = policy::guarded(site, page, &"../".repeat(depth), &text)?;
        write(path, edit_link(&text, forge, depth))?;
    }
    Ok(())
}

/// The page with a link to its text before all others.
fn skip_link(html: &str) -> String {
    let link = "<body>\n    <a class=\"skip\" href=\"#the-text\">Skip to the text</a>";
    html.replacen("<body>", link, 1).replacen("<main>", "<main id=\"the-text\" tabindex=\"-1\">", 1)
}

/// The page with each picture's size, so that nothing moves when the picture comes. `folder` has the page.
fn sized(html: &str, folder: &Path) -> Result<String> {
    const IMAGE: &str = "<img src=\"";
    let mut pieces = html.split(IMAGE);
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (source, rest) = piece.split_once('"').unwrap_or((piece, ""));
        let path = folder.join(source);
        let (width, height) = size(&bytes(&path)?).with_context(|| format!("{} has no size", path.display()))?;
        text += &format!("{IMAGE}{source}\" width=\"{width}\" height=\"{height}\"{rest}");
    }
    Ok(text)
}

/// Width and height in pixels: those of a PNG come after its first chunk's name (RFC 2083, section 4.1.1), those of a drawing
/// in its first element.
fn size(picture: &[u8]) -> Option<(u32, u32)> {
    if picture.starts_with(b"\x89PNG") {
        let number = |at| Some(u32::from_be_bytes(picture.get(at..at + 4)?.try_into().ok()?));
        return Some((number(16)?, number(20)?));
    }
    let head = std::str::from_utf8(picture).ok()?.split('>').find(|tag| tag.contains("<svg"))?;
    let number = |name: &str| head.split_once(&format!(" {name}=\""))?.1.split('"').next()?.parse().ok();
    Some((number("width")?, number("height")?))
}

/// Lets a page's "edit this page" lead to its file at the forge, or, if no forge is known, to what CONTRIBUTING says.
fn edit_link(text: &str, forge: Option<&str>, depth: usize) -> String {
    let Some((before, rest)) = text.split_once(TEMPLATE) else { return text.to_owned() };
    let (page, after) = rest.split_once('"').unwrap_or((rest, ""));
    format!("{before}href=\"{}\"{after}", link(page, forge, depth))
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

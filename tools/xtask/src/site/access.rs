//! What lets everybody read a page: a way past the menu, and pictures whose place is there before they are.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// The page with a link to its text before all others.
pub fn skip_link(html: &str) -> String {
    let link = "<body>\n    <a class=\"skip\" href=\"#the-text\">Skip to the text</a>";
    html.replacen("<body>", link, 1).replacen("<main>", "<main id=\"the-text\" tabindex=\"-1\">", 1)
}

/// The page with each picture's size, so that nothing moves when the picture comes. `folder` has the page.
pub fn sized(html: &str, folder: &Path) -> Result<String> {
    const IMAGE: &str = "<img src=\"";
    let mut pieces = html.split(IMAGE);
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (source, rest) = piece.split_once('"').unwrap_or((piece, ""));
        let path = folder.join(source);
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let (width, height) = size(&bytes).with_context(|| format!("{} has no size", path.display()))?;
        text += &format!("{IMAGE}{source}\" width=\"{width}\" height=\"{height}\"{rest}");
    }
    Ok(text)
}

/// Width and height in pixels: those of a PNG stand behind its first chunk's name (RFC 2083, section 4.1.1), those of a drawing
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

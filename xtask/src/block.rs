//! Generated parts of Markdown files, between `<!-- NAME -->` and `<!-- end of NAME -->`.

use anyhow::{Context, Result};

/// The text with the content of one generated part replaced.
///
/// # Errors
/// The text has no such part.
pub fn replace(text: &str, name: &str, content: &str) -> Result<String> {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let (head, rest) = text.split_once(&begin).with_context(|| format!("there is no line {begin}"))?;
    let (_, tail) = rest.split_once(&end).with_context(|| format!("there is no line {end}"))?;
    Ok(format!("{head}{begin}{content}{end}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::replace;

    #[test]
    fn only_the_named_part_is_replaced() {
        let text = "a\n<!-- x -->\nold\n<!-- end of x -->\nb\n";
        assert_eq!(replace(text, "x", "new\n").unwrap(), "a\n<!-- x -->\nnew\n<!-- end of x -->\nb\n");
        assert!(replace(text, "y", "new\n").is_err());
        assert!(replace("<!-- x -->\n", "x", "new\n").is_err());
    }
}

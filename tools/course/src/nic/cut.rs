//! Bodies of functions in a source. We find them by how rustfmt lays them out, with the closing brace below the first word.

use anyhow::{bail, Context, Result};
use std::ops::Range;

/// What is in a body, further in than the function.
const INDENT: &str = "    ";

/// Where the body of a function is: all lines between its braces.
pub fn body(text: &str, function: &str) -> Result<Range<usize>> {
    let mut lines = starts(text).filter(|(_, line)| is_head(line, function));
    let (head, line) = lines.next().with_context(|| format!("there is no `fn {function}`"))?;
    if lines.next().is_some() {
        bail!("there are two functions `fn {function}`");
    }
    let close = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
    let mut behind = starts(text).skip_while(|(at, _)| *at < head);
    let (open, line) = behind.find(|(_, line)| line.ends_with('{')).context("the function has no body")?;
    let (end, _) = behind.find(|(_, line)| *line == close).context("the function has no end")?;
    Ok(open + line.len() + 1..end)
}

/// The text with another body, which may be indented less.
pub fn with_body(text: &str, function: &str, new: &str) -> Result<String> {
    let range = body(text, function)?;
    let close = text[range.end..].split('}').next().unwrap_or_default();
    let indented = |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("{close}{INDENT}{line}\n") };
    let new: String = new.lines().map(indented).collect();
    Ok([&text[..range.start], &new, &text[range.end..]].concat())
}

/// The text without its tests. They are at its end, and some of them hold the answer to a hole above.
pub fn without_tests(text: &str) -> &str {
    text.find("\n#[cfg(test)]\n").map_or(text, |at| &text[..at])
}

/// What a source becomes that somebody has written in, when it is laid out again. `laid` is what was laid out for her, `new`
/// what would be today. Bodies that she has changed stay; the others are those of today. None if she has changed more than these
/// bodies, and the project has, too.
pub fn merged(hers: &str, laid: &str, new: &str, functions: &[&str]) -> Option<String> {
    if laid == new {
        return Some(hers.to_owned());
    }
    let (mut outside, mut before, mut merged) = (hers.to_owned(), laid.to_owned(), new.to_owned());
    for function in functions {
        let (own, old) = (body(hers, function).ok()?, body(laid, function).ok()?);
        if hers[own.clone()] != laid[old] {
            let place = body(&merged, function).ok()?;
            merged.replace_range(place, &hers[own]);
        }
        for text in [&mut outside, &mut before] {
            let place = body(text, function).ok()?;
            text.replace_range(place, "");
        }
    }
    (outside == before).then_some(merged)
}

/// Each line, and where it begins.
fn starts(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = at;
        at += line.len();
        (start, line.trim_end_matches('\n'))
    })
}

/// Whether a function of this name begins in the line.
fn is_head(line: &str, function: &str) -> bool {
    let words = line.trim_start().split("fn ").collect::<Vec<_>>();
    let [before, name] = words[..] else { return false };
    let is_word = |word: &str| word == "const" || word == "unsafe" || word.starts_with("pub");
    before.split_whitespace().all(is_word)
        && name.strip_prefix(function).is_some_and(|rest| rest.starts_with(['(', '<']))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "impl A {\n    /// fn b is good.\n    pub fn b(\n        c: u8,\n    ) -> u8 {\n        if c > 1 {\n            c\n        }\n    }\n\n    fn bb() {\n        d\n    }\n}\n";

    #[test]
    fn a_body_is_found_and_replaced() {
        assert_eq!(&TEXT[body(TEXT, "bb").unwrap()], "        d\n");
        let cut = with_body(TEXT, "b", "// Nothing.\n\n0").unwrap();
        assert!(cut.contains(") -> u8 {\n        // Nothing.\n\n        0\n    }\n\n    fn bb"), "{cut}");
        assert!(body(TEXT, "x").is_err());
    }

    #[test]
    fn tests_are_left_out() {
        assert_eq!(without_tests(&format!("{TEXT}\n#[cfg(test)]\nmod tests {{\n    fn b() {{}}\n}}\n")), TEXT);
        assert_eq!(without_tests(TEXT), TEXT);
    }

    #[test]
    fn what_somebody_has_written_stays_when_the_rest_changes() {
        let functions = ["b", "bb"];
        let hers = with_body(TEXT, "b", "7").unwrap();
        let new = with_body(TEXT, "bb", "e").unwrap().replace("impl A", "impl F");
        let merged = |hers: &str| merged(hers, TEXT, &new, &functions);
        assert_eq!(merged(TEXT), Some(new.clone()));
        assert_eq!(merged(&hers), Some(with_body(&new, "b", "7").unwrap()));
        assert_eq!(merged(&hers.replace("c: u8", "c: u16")), None, "she has changed more than bodies");
        assert_eq!(merged(&hers.replace("fn bb", "fn cc")), None);
    }
}

//! Numbers, bytes and comments in words.

/// Where something is in a capture: its frame, and the step of the lesson.
pub(super) type Place<'a> = (u64, Option<&'a str>);

/// `1 packet`, `2 packets`.
pub(super) fn plural(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The first bytes, as a person would quote them.
pub(super) fn hex(bytes: &[u8]) -> String {
    const MOST: usize = 16;
    let mut text: Vec<String> = bytes.iter().take(MOST).map(|byte| format!("{byte:02x}")).collect();
    if bytes.len() > MOST {
        text.push("…".into());
    }
    text.join(" ")
}

/// What a program says in private data, if it is text.
pub(super) fn quote(data: &[u8]) -> String {
    let printable = |text: &&str| !text.is_empty() && text.chars().all(|c| !c.is_control());
    match std::str::from_utf8(data).ok().filter(printable) {
        Some(text) => format!(": \"{text}\""),
        None => String::new(),
    }
}

/// The step of the lesson, from the comment in a bundled capture: its first line. What the lab did is no part of it.
pub(super) fn step(comment: Option<&str>) -> Option<String> {
    let line = comment?.lines().next()?.split("lab: ").next()?.trim_end();
    (!line.is_empty()).then(|| line.to_owned())
}

/// 1st, 2nd, 3rd…
pub(super) fn ordinal(number: usize) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinals() {
        let said: Vec<String> = [1, 2, 3, 4, 11, 12, 13, 21, 102, 111].into_iter().map(ordinal).collect();
        assert_eq!(said, ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "111th"]);
    }

    #[test]
    fn the_step_is_the_first_line_of_a_comment() {
        assert_eq!(step(Some("step 3\nclient")), Some("step 3".into()));
        assert_eq!(step(Some("")), None);
        assert_eq!(step(None), None);
    }
}

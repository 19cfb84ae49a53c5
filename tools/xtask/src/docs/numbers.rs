//! Numbers in what people wrote.
//!
//! On a lesson's page each number of two digits or more is one that the lesson's code, log or captures have; on the other
//! pages each of three digits or more is in the code of this repository, or in a quote on that page. A lesson that is named
//! exists. Numbers of experiments that are not kept, such as how long something took, are in a paragraph that says "tried in
//! the lab", or below the heading "Break it". Those of a benchmark are in a paragraph or a table that names its page.

use super::headers::is_word;
use super::page::{Page, Wrong};
use super::sources::Sources;
use run::files::read;
use std::collections::BTreeSet;

/// Numbers of the world outside: Ethernet's MTU, the smaller path MTUs, distributions, addresses for examples, a kernel, the
/// ACK time-outs that kernels choose, how long a file may be, what set-up downloads, and clauses of the specification.
const ELSEWHERE: [&str; 14] = [
    "150",
    "1500",
    "256",
    "512",
    "22.04",
    "24.04",
    "192.0.2.1",
    "192.0.2.7",
    "6.12",
    "2147.5",
    "536.9",
    "250",
    "142",
    "A19.4.1.1",
];

/// Versions of programs that the pages name, and of the specification: nothing here has them.
const VERSIONS: [&str; 9] = ["0.3.0", "0.5.0", "1.13.1", "1.2.1", "4.1.4", "4.3.1", "7.2.22", "8.1.1", "1.14.44.0"];

/// What `make bench` has measured and written: nothing else has these numbers.
pub const MEASURED: &str = "docs/benchmarks.md";

/// Numbers that nothing here has.
pub fn problems(page: &Page, sources: &Sources) -> Wrong {
    let mut wrong = Wrong::new();
    if page.path == MEASURED {
        return wrong;
    }
    let (digits, known, who) = match page.lesson().and_then(|number| sources.lesson(number)) {
        Some(lesson) => (2, &lesson.numbers, format!("nothing in lesson {}", lesson.number())),
        None => (3, &sources.numbers, "nothing in this repository".into()),
    };
    let (quoted, measured) = (all(&page.quotes()), all(&read(MEASURED).unwrap_or_default()));
    let is_known = |at: usize, number: &str| {
        let normal = normal(number);
        // The specification's sections (such as 12.6.7.2) belong to no lesson.
        let is_part =
            |other: &String| other.strip_prefix(&normal).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let is_section = normal.matches('.').count() > 1 && sources.numbers.iter().any(is_part);
        let is_elsewhere = ELSEWHERE.contains(&normal.as_str()) || VERSIONS.contains(&normal.as_str());
        let is_measured = measured.contains(&normal) && page.paragraph(at).contains("benchmarks.md");
        known.contains(&normal) || quoted.contains(&normal) || is_section || is_elsewhere || is_measured
    };
    for (at, line) in page.prose().filter(|(at, _)| !page.tried(*at) && !page.lines[*at].contains("](http")) {
        let named = line.to_lowercase();
        let named = named.split("lesson ").skip(1).filter_map(|after| of(after.get(..2)?).next());
        let strange = named.filter(|number| !sources.has_lesson(number));
        wrong.extend(strange.map(|number| (at, format!("there is no lesson {number}"))));
        let unknown = versions(&line).into_iter().filter(|version| !sources.versions.contains(version));
        wrong.extend(unknown.map(|version| (at, format!("nothing in this repository speaks of {version}"))));
        let long = of(&line).filter(|number| number.chars().filter(|c| c.is_ascii_hexdigit()).count() >= digits);
        let strange = long.filter(|number| sources.lesson(number).is_none() && !is_known(at, number));
        wrong.extend(strange.map(|number| (at, format!("{who} has the number {number}"))));
    }
    wrong
}

/// The numbers of a text: `60`, `0x3ca`, `655.36`, `10.47.91.1`, `2,500`.
fn of(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(is_word(c) || c == '.' || c == ',')).flat_map(|word| word.split(".."));
    let words = words.map(|word| word.trim_matches(['.', ',']));
    let digits =
        |word: &str| !word.trim_start_matches("0x").contains(|c: char| !(c.is_ascii_hexdigit() || ".,_".contains(c)));
    // Sections of an annex begin with a letter: A17.3.3.
    let begins = |word: &str| word.trim_start_matches('A').starts_with(|c: char| c.is_ascii_digit());
    words.filter(move |word| begins(word) && digits(word))
}

/// The versions of systems that a text names, to their second part: `Linux 6.1`, `Debian 12`.
pub fn versions(text: &str) -> BTreeSet<String> {
    let of_system = |system: &'static str| {
        let after = text.split(system).skip(1).filter_map(|after| of(after.split_whitespace().next()?).next());
        after.map(move |number| system.to_owned() + &number.splitn(3, '.').take(2).collect::<Vec<_>>().join("."))
    };
    ["Linux ", "Debian "].into_iter().flat_map(of_system).collect()
}

/// Written in one way: a hexadecimal number as a decimal one.
fn normal(number: &str) -> String {
    let number = number.replace(['_', ','], "");
    let hex = number.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
    hex.map_or(number, |value| value.to_string())
}

/// The numbers of a text, each written in one way.
pub fn all(text: &str) -> BTreeSet<String> {
    of(text).map(normal).collect()
}

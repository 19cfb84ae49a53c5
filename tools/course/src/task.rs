//! A step's task as it is told in the learner's language: without what is about the others.

use crate::mine::Language;

/// How a paragraph begins that is about one language.
const ABOUT: [(&str, Language); 3] = [("Rust: ", Language::Rust), ("C: ", Language::C), ("Python: ", Language::Python)];

/// A text with the calls as C names them, and as the learner's language does; and of the paragraphs that are about one language
/// only the learner's.
pub fn in_language(task: &str, language: Language) -> String {
    let is_told = |paragraph: &&str| {
        let about = ABOUT.iter().find(|(begin, _)| paragraph.starts_with(begin));
        about.map_or(true, |(_, about)| *about == language)
    };
    let told = |paragraph: &str| match paragraph.starts_with("| C | common |") {
        true => paragraph.lines().map(|line| row(line, language)).collect::<Vec<_>>().join("\n"),
        false => paragraph.to_owned(),
    };
    task.split("\n\n").filter(is_told).map(told).collect::<Vec<_>>().join("\n\n")
}

/// A row of the table of calls.
fn row(line: &str, language: Language) -> String {
    let others: &[usize] = match language {
        Language::Rust => &[2],
        Language::C => &[1, 2],
        Language::Python => &[1],
    };
    let cells = line.trim_matches('|').split('|').enumerate();
    let shown = cells.filter(|(at, _)| !others.contains(at)).map(|(_, cell)| format!("{cell}|"));
    format!("|{}", shown.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: &str =
        "Listen.\n\n| C | common | pyverbs |\n|---|---|---|\n| `c` | `rust` | `python` |\n\nC: see\nthe man page.\n\n\
                        Rust: see common.\n\nPython: see more.\n";

    #[test]
    fn nobody_is_told_of_a_language_that_is_not_hers() {
        for (language, is_told, not) in [
            (Language::Rust, ["| `c` | `rust` |", "see common"], ["man page", "python"]),
            (Language::C, ["| `c` |\n", "C: see\nthe man page"], ["rust", "python"]),
            (Language::Python, ["| `c` | `python` |", "see more"], ["man page", "rust"]),
        ] {
            let told = in_language(TASK, language);
            assert!(told.starts_with("Listen.") && is_told.iter().all(|part| told.contains(part)), "{told}");
            assert!(not.iter().all(|part| !told.contains(part)), "{told}");
        }
    }
}

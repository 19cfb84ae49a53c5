//! A step's words for one language, the learner's. A paragraph, or a hint, that begins with "In C, " is about C alone.

use crate::mine::Language;

/// How a paragraph or a hint begins that is about one language.
const ABOUT: [(&str, Language); 3] =
    [("In Rust, ", Language::Rust), ("In C, ", Language::C), ("In Python, ", Language::Python)];

/// The one language that a paragraph or a hint is about; None if it's for everybody.
pub fn about(text: &str) -> Option<Language> {
    ABOUT.iter().find(|(begin, _)| text.starts_with(begin)).map(|(_, language)| *language)
}

/// Whether somebody who writes in that language should read this paragraph or hint.
pub fn is_for(text: &str, language: Language) -> bool {
    about(text).map_or(true, |about| about == language)
}

/// The task without the paragraphs about other languages. Its table of calls keeps the names in C, which man pages and
/// logs use, and those in the learner's language.
pub fn in_language(task: &str, language: Language) -> String {
    let is_told = |paragraph: &&str| is_for(paragraph, language);
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
        "Listen.\n\n| C | common | pyverbs |\n|---|---|---|\n| `c` | `rust` | `python` |\n\nIn C, see\nthe man page.\n\n\
                        In Rust, see common.\n\nIn Python, see more.\n";

    #[test]
    fn nobody_is_told_of_a_language_that_is_not_hers() {
        for (language, is_told, not) in [
            (Language::Rust, ["| `c` | `rust` |", "see common"], ["man page", "python"]),
            (Language::C, ["| `c` |\n", "In C, see\nthe man page"], ["rust", "python"]),
            (Language::Python, ["| `c` | `python` |", "see more"], ["man page", "rust"]),
        ] {
            let told = in_language(TASK, language);
            assert!(told.starts_with("Listen.") && is_told.iter().all(|part| told.contains(part)), "{told}");
            assert!(not.iter().all(|part| !told.contains(part)), "{told}");
        }
    }

    #[test]
    fn no_step_speaks_of_another_language_where_everybody_reads() {
        let project = crate::project::Project::find().unwrap();
        let steps = crate::step::Step::all(&project).unwrap();
        assert!(steps.len() > 30, "{}", steps.len());
        for (language, others) in [
            (Language::Rust, ["pyverbs", "Python"].as_slice()),
            (Language::C, &["pyverbs", "Python", "Rust"]),
            (Language::Python, &["Rust"]),
        ] {
            for step in &steps {
                let runs = [&step.change.told].into_iter().chain(step.change.again.iter().map(|again| &again.told));
                let told = runs.flat_map(|told| match told {
                    judge::expected::Expectation::Runs(told) => told.as_slice(),
                    judge::expected::Expectation::Refused(_) => &[],
                });
                let hints = step.hints.iter().filter(|hint| is_for(hint, language)).chain(told.map(|it| &it.hint));
                let all = [in_language(&step.task, language), step.answer.clone()].into_iter().chain(hints.cloned());
                for text in all {
                    assert!(others.iter().all(|other| !text.contains(other)), "{}, {language:?}: {text}", step.name);
                }
            }
        }
    }
}

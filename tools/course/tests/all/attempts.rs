//! What the judge says to somebody whose file cannot be judged, or never comes to an end: clear words, no hint used up for
//! nothing, and not a byte of theirs written over. All on the device.

use course::attempt::{Attempt, State, FOLDER};
use course::changes::Changes;
use course::exercise::Assignment;
use course::project::Project;
use course::run::Place;
use course::verdict::judged;
use run::lanes::Style;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

/// Where the client's program begins.
const BEGIN: &str = "pub fn run(args: &Args) -> Result<()> {\n";

/// Seconds: more than a server has whose client has died.
const DEADLINE: u32 = 6;
/// What is said when nothing was saved.
const UNCHANGED: &str = "Nothing has changed here since the last time. Is the file saved?";
const STYLE: Style = Style { color: false, width: usize::MAX };

/// The exercise 04-whose under a name and in a folder that are no reader's, just laid out.
struct Tried {
    project: Project,
    attempt: Attempt,
    client: PathBuf,
}

impl Tried {
    fn new(name: &str) -> Self {
        let project = Project::find().unwrap();
        let exercises = Changes::of(&project.lesson("04").unwrap()).unwrap().exercises;
        let mut exercise = exercises.into_iter().find(|exercise| exercise.name.name == "whose").unwrap();
        exercise.name.name = format!("test-{name}");
        let Assignment::Repair(repair) = &mut exercise.kind else { panic!("it is mended") };
        (repair.change.name, repair.change.options.deadline) = (exercise.name.clone(), Some(DEADLINE));
        let attempt = Attempt::new(exercise, &project.root.join(FOLDER).join(".test").join(name));
        let _ = attempt.reset(&project);
        attempt.begin(&project).unwrap();
        let client = attempt.copy.folder.join("src/client.rs");
        Self { project, attempt, client }
    }

    /// Saves a text, and gives what the judge says. The text is still there then.
    fn saves(&self, text: &str) -> String {
        fs::write(&self.client, text).unwrap();
        let said = self.is_told();
        assert_eq!(fs::read_to_string(&self.client).unwrap(), text, "it was written over");
        said
    }

    fn is_told(&self) -> String {
        let verdict = judged(&self.project, &self.attempt, Place::Device, STYLE).unwrap();
        assert!(!verdict.is_solved, "{}", verdict.text);
        verdict.text
    }

    /// The hole, with something more at the beginning of the client.
    fn begins(&self, with: &str) -> String {
        let text = fs::read_to_string(&self.client).unwrap();
        assert!(text.contains(BEGIN), "{text}");
        text.replace(BEGIN, &format!("{BEGIN}{with}\n"))
    }

    fn hint(&self, number: usize) -> String {
        format!("Hint: {}", self.attempt.exercise.hint(number))
    }
}

fn says(said: &str, words: &[&str]) {
    for words in words {
        assert!(said.contains(words), "it does not say {words:?}: {said}");
    }
}

#[test]
#[ignore = "takes long: make test-long"]
fn what_cannot_be_built_is_for_the_compiler_to_explain() {
    let tried = Tried::new("syntax");
    let said = tried.saves(&tried.begins("let = ;"));
    says(&said, &["error: expected pattern, found `=`", "src/client.rs", "It doesn't build yet"]);
    assert!(!said.contains("Hint:"), "{said}");
    assert_eq!(tried.attempt.state(), State::Tried(0), "no hint is used up");

    fs::remove_file(&tried.client).unwrap();
    let said = tried.is_told();
    says(&said, &["src/client.rs is gone", "make reset-04-test-syntax"]);
    assert!(!tried.client.exists(), "what the reader throws away stays away");
    assert_eq!(tried.attempt.state(), State::Tried(0));
}

#[test]
fn a_hole_left_as_it_is_fails_once_whatever_an_editor_keeps_beside_it() {
    let tried = Tried::new("same");
    // As two editors do while a file is open.
    symlink("nobody@nowhere.1", tried.client.with_file_name(".#client.rs")).unwrap();
    fs::write(tried.client.with_file_name(".client.rs.swp"), [0xff; 64]).unwrap();
    for times in 1..=2 {
        let said = tried.is_told();
        says(&said, &["remote access error", &tried.hint(1)]);
        assert_eq!(said.contains(UNCHANGED), times == 2, "who begins is not asked: {said}");
        assert_eq!(tried.attempt.state(), State::Tried(1));
    }
    // A word more is another attempt.
    let said = tried.saves(&tried.begins("// Whose?"));
    says(&said, &[&tried.hint(2)]);
    assert!(!said.contains(UNCHANGED), "{said}");
}

#[test]
#[ignore = "takes long: make test-long"]
fn a_panic_and_loops_without_end_are_told_in_words() {
    let tried = Tried::new("end");
    let hole = fs::read_to_string(&tried.client).unwrap();
    let with = |line: &str| hole.replace(BEGIN, &format!("{BEGIN}    {line}\n"));
    let said = tried.saves(&with("assert!(args.address.is_empty(), \"oh no,\\nnot here\");"));
    says(&said, &["panicked at", ": oh no, not here", "the client ends with status 0 (there is: exit status 101)"]);
    says(&said, &["the server had not ended 2 s after the client had failed, and is ended", &tried.hint(1)]);
    let said = tried.saves(&with("while !args.address.is_empty() {}"));
    says(&said, &["the client had not ended after 6 s, and is ended", &tried.hint(2)]);
    let said = tried.saves(&with("while !args.address.is_empty() { println!(\"again\"); }"));
    says(&said, &["the client had not ended after 6 s, and is ended"]);
}

#[test]
#[ignore = "takes long: make test-long"]
fn what_the_lessons_call_is_no_part_of_an_exercise() {
    let tried = Tried::new("library");
    let (here, there) = (tried.attempt.copy.workspace().join("common/src/pd.rs"), "common/src/pd.rs");
    let there = fs::read_to_string(tried.project.root.join(there)).unwrap();
    fs::write(&here, "no Rust").unwrap();
    says(&tried.is_told(), &["common/src/pd.rs isn't part of the exercise", "remote access error"]);
    assert_eq!(fs::read_to_string(&here).unwrap(), there);
}

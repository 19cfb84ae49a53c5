//! A change of a lesson that can be tried here does what it did to the recorded run.

use crate::run;
use judge::expected::{Expectation, Expected, What};
use run::capture::Reader;
use run::files::{name, tree};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use wire::compare::{compare, Capture, Report};
use workbench::change::{changes, Change};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(root().join(&path)).unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display()))
}

/// Lessons with changes that can be tried, by the names of their folders.
const LESSONS: [&str; 8] = [
    "03_metadata_exchange",
    "04_rdma_write",
    "05_rdma_read",
    "06_send_recv_state_machine",
    "07_disconnect_flush",
    "08_handle_api",
    "09_parameter_server",
    "10_going_fast",
];

/// A change, and what there is to compare it with.
struct Tried<'a> {
    full_name: String,
    change: Change<'a>,
    /// What its own page says.
    page: String,
    story: String,
}

/// Does something with each change that can be tried, and fails with all that it says.
fn each(wrong_with: impl Fn(&Tried) -> Option<String>) {
    let mut wrong = Vec::new();
    for lesson in LESSONS {
        let page = read(format!("tools/workbench/changes/{lesson}.md"));
        for change in changes(&page) {
            let Some(story) = change.story() else { continue };
            let tried = Tried {
                full_name: format!("{}-{}", &lesson[..2], change.name),
                page: read(format!("lessons/{lesson}/changes/{}.md", change.name)),
                story: read(format!("tools/workbench/stories/{story}.txt")),
                change,
            };
            wrong.extend(wrong_with(&tried).map(|what| format!("{}: {what}", tried.full_name)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

impl Tried<'_> {
    fn script(&self) -> String {
        self.change.script("tried", &self.story).unwrap_or_else(|error| panic!("{}: {error:#}", self.full_name))
    }

    /// Compares a run of this script with the recorded one, if there is one. What's wrong with that; nothing if it's the same story, or
    /// differs in what the section says.
    fn differs(&self, script: &str) -> Option<String> {
        let report = self.compared(script)?;
        let differences = report.cause.iter().chain(&report.also).map(|difference| difference.sentence.clone());
        let told = lines(self.change.shows.unwrap_or_default(), |line| line.starts_with(COMPARE));
        let is_told = report.problems.is_empty()
            && told == differences.map(|line| format!("{COMPARE}{line}\n")).collect::<String>();
        (!is_told).then(|| report.to_string())
    }

    fn compared(&self, script: &str) -> Option<Report> {
        let recorded = root().join(format!("captures/changes/{}.pcapng", self.full_name));
        let recorded = Capture::read(&mut Reader::new(fs::File::open(recorded).ok()?).unwrap()).unwrap();
        let own = Capture::read(&mut Reader::new(run(script).record.file.as_slice()).unwrap()).unwrap();
        Some(compare(&own, &recorded))
    }

    /// What a run of this script lacks of what it must show.
    fn lacks(&self, script: &str) -> Vec<String> {
        let said = self.page.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let both = || BTreeSet::from(["server".to_owned(), "client".to_owned()]);
        let own = self.change.shows.map(|shows| lines(shows, |line| !line.starts_with(COMPARE)));
        let all = match Expectation::parse(own.as_deref().unwrap_or(said), both()) {
            Ok(Expectation::Runs(all)) => all,
            other => panic!("{}: {other:?}", self.full_name),
        };
        let is_asked = |expected: &Expected| match own {
            Some(_) => !matches!(expected.what, What::Exit(_)),
            None => is_known(expected),
        };
        let known: Vec<Expected> = all.into_iter().filter(is_asked).collect();
        let findings = judge::judge(&judge::seen::read(&run(script).record.file).unwrap(), &known).unwrap();
        findings.iter().filter(|finding| !finding.is_met()).map(|finding| finding.to_string()).collect()
    }
}

/// How a line begins that says in what the run differs from the recorded one.
const COMPARE: &str = "compare says: ";

fn lines(text: &str, which: impl Fn(&str) -> bool) -> String {
    text.lines().filter(|line| which(line)).map(|line| line.to_owned() + "\n").collect()
}

/// Whether it's about what a NIC does, and not about what the lesson's own program prints.
fn is_known(expected: &Expected) -> bool {
    match &expected.what {
        What::Packet(_) => true,
        What::Line(text) => text.starts_with("status=IBV_") || text.starts_with("CM event: "),
        _ => false,
    }
}

#[test]
fn each_change_can_be_tried_or_says_what_it_needs() {
    for lesson in LESSONS {
        let page = read(format!("tools/workbench/changes/{lesson}.md"));
        let told: BTreeSet<String> = changes(&page).iter().map(|change| change.name.to_owned()).collect();
        let files = tree(&root().join(format!("lessons/{lesson}/changes"))).unwrap();
        // What has a judge is an exercise: there a reader writes a program.
        let is_exercise = |file: &str| files.contains(&file.replace(".md", ".judge.md"));
        let pages = files.iter().filter(|file| !file.ends_with(".judge.md") && !is_exercise(file));
        let there: BTreeSet<String> =
            pages.map(|file| name(Path::new(file)).trim_end_matches(".md").to_owned()).collect();
        assert_eq!(told, there, "tools/workbench/changes/{lesson}.md");
        assert_eq!(told.len(), changes(&page).len(), "{lesson}: one of them is there twice");
        for change in changes(&page) {
            assert!(change.story().is_some() || !change.says.is_empty(), "{lesson}: {} says nothing", change.name);
        }
    }
}

#[test]
fn what_is_tried_compares_as_the_recorded_run() {
    each(|tried| tried.differs(&tried.script()));
}

#[test]
fn what_is_tried_shows_what_the_page_says() {
    each(|tried| Some(tried.lacks(&tried.script())).filter(|lacks| !lacks.is_empty()).map(|lacks| lacks.join("; ")));
}

#[test]
fn without_its_edit_no_script_would_pass() {
    each(|tried| {
        let passes = tried.differs(&tried.story).is_none() && tried.lacks(&tried.story).is_empty();
        passes.then(|| "the story itself passes".to_owned())
    });
}

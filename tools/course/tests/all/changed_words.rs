//! Sentences are for people. Whatever the device and `common` say, and in whatever words, verdicts are the same.

use course::build::{build_lessons, build_runner};
use course::project::Project;
use course::run::{run_program, Outcome, Place};
use course::step::Step;
use course::trouble::trouble;
use judge::expected::{Expected, What};
use judge::{judge, seen, Finding};
use run::capture::Reader;
use run::lanes::{self, Style};
use run::story::{self, proof};
use testkit::ran::bundled;
use testkit::reworded::reworded;
use wire::compare::{compare, Capture, Verdict};
use wire::explain::explain;

/// What the judge finds, in words that don't quote a line.
fn found(run: &[u8], outcome: &[Expected]) -> Vec<(bool, Vec<u64>)> {
    let finding = |finding: &Finding| (finding.is_met(), finding.found.clone());
    judge(&seen::read(run).unwrap(), outcome).unwrap().iter().map(finding).collect()
}

#[test]
fn no_verdict_on_a_step_hangs_on_a_sentence() {
    let project = Project::find().unwrap();
    let steps: Vec<Step> = Step::all(&project).unwrap();
    let steps: Vec<&Step> =
        steps.iter().filter(|step| ["03", "04", "06", "07", "11"].contains(&&*step.name.number())).collect();
    build_runner(&project, Place::Device.name()).unwrap();
    build_lessons(&project, steps.iter().map(|step| &step.change)).unwrap();
    let (mut facts, mut never) = (0, 0);
    for step in steps {
        // The lesson's own programs pass it.
        let change = &step.proofs[0].change;
        let program = format!("lesson-{}", change.name.number());
        let Outcome::Ran { file, findings, .. } = run_program(&project, change, &program, Place::Device).unwrap()
        else {
            panic!("{} doesn't build", step.name);
        };
        let run = std::fs::read(file).unwrap();
        let outcome: Vec<Expected> = findings.into_iter().map(|finding| finding.expected).collect();
        let is_fact = |expected: &&Expected| matches!(expected.what, What::Call(_) | What::Event(_) | What::Note(_));
        facts += outcome.iter().filter(is_fact).count();
        never += outcome.iter().filter(is_fact).filter(|expected| expected.times == Some(0)).count();
        // What's found is found again, what isn't isn't: also by somebody who asks for the opposite.
        let opposite = outcome
            .iter()
            .map(|expected| Expected { times: expected.times.map_or(Some(0), |_| None), ..expected.clone() });
        for (seed, outcome) in [(1, outcome.clone()), (2, opposite.collect())] {
            assert_eq!(found(&reworded(&run, seed), &outcome), found(&run, &outcome), "{}", step.name);
        }
        let trouble = |run: &[u8]| trouble(&seen::read(run).unwrap()).unwrap().len();
        assert_eq!(trouble(&reworded(&run, 3)), trouble(&run), "{}", step.name);
    }
    assert!(facts > 50 && never > 20, "{facts} {never}");
}

#[test]
fn no_story_and_no_view_of_a_capture_hangs_on_a_sentence() {
    let read = |run: &[u8]| Capture::read(&mut Reader::new(run).unwrap()).unwrap();
    for story in &story::bundled().unwrap() {
        let run = std::fs::read(bundled(story)).unwrap();
        let other = reworded(&run, 4);
        assert_ne!(run, other, "{}", story.file_name());
        assert_eq!(proof::problems(story, &other), proof::problems(story, &run), "{}", story.file_name());
        assert!(compare(&read(&other), &read(&run)).verdict() == Verdict::Same, "{}", story.file_name());
        let explained = |run: &[u8]| {
            let told = explain(&mut Reader::new(run).unwrap()).unwrap();
            let told =
                told.connections.iter().map(|told| (told.heading.clone(), told.findings.len(), told.printed.len()));
            told.collect::<Vec<_>>()
        };
        assert_eq!(explained(&other), explained(&run), "{}", story.file_name());
        // The same lines are open, and the same steps begin at them.
        let drawn = |run: &[u8]| {
            let text = lanes::story(&seen::read(run).unwrap(), story, Style { color: false, width: 5000 }).unwrap();
            let numbers = text.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok());
            numbers.collect::<Vec<u64>>()
        };
        assert!(!drawn(&run).is_empty());
        assert_eq!(drawn(&other), drawn(&run), "{}", story.file_name());
    }
}

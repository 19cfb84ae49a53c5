//! Each challenge can be done, isn't done by what's near, and isn't done before somebody has begun.

use crate::run;
use run::capture::Events;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use workbench::challenge::{all, Challenge, Verdict};

/// The scripts that prove a challenge: those that pass, and those that don't.
#[derive(Default)]
struct Proof {
    right: Vec<String>,
    wrong: Vec<String>,
}

fn proof(challenge: &Challenge) -> Proof {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("challenges/{}.proof.md", challenge.page));
    let text = fs::read_to_string(path).unwrap();
    let begins = format!("## {}\n", challenge.name);
    let section = text.split("\n## ").find(|section| format!("## {section}").starts_with(&begins));
    let mut proof = Proof::default();
    for part in section.unwrap_or_default().split("\n### ").skip(1) {
        let script = part.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap().to_owned();
        if part.starts_with("Right") { &mut proof.right } else { &mut proof.wrong }.push(script);
    }
    proof
}

fn verdict(challenge: &Challenge, script: &str) -> Verdict {
    let events = Events::read(&run(script).record.file[..]).unwrap();
    challenge.judge(&events).unwrap_or_else(|error| panic!("{}: {error:#}", challenge.name))
}

#[test]
fn what_is_right_passes_and_nothing_else() {
    let mut wrong = Vec::new();
    for challenge in all() {
        let proof = proof(&challenge);
        for right in &proof.right {
            let Verdict { passed, says } = verdict(&challenge, right);
            wrong.extend((!passed).then(|| format!("{}: the right one doesn't pass: {says}", challenge.name)));
        }
        for other in proof.wrong.iter().map(String::as_str).chain([challenge.begin]) {
            let Verdict { passed, says } = verdict(&challenge, other);
            wrong.extend((passed || says.is_empty()).then(|| format!("{}: this passes:\n{other}", challenge.name)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_challenge_has_all_its_parts() {
    let all = all();
    assert!(all.len() >= 30, "{}", all.len());
    let names: BTreeSet<&str> = all.iter().map(|challenge| challenge.name).collect();
    assert_eq!(names.len(), all.len(), "two have the same name");
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for challenge in &all {
        let Challenge { name, page, title, task, idea, hints, afterwards, .. } = challenge;
        let Proof { right, wrong } = proof(challenge);
        assert!(docs.join(format!("{page}.md")).exists(), "{name}: there's no page {page}");
        assert!(
            [title, &task.as_str(), &idea.as_str(), &afterwards.as_str()].iter().all(|text| !text.is_empty()),
            "{name}"
        );
        assert!(!hints.is_empty() && !right.is_empty() && !wrong.is_empty(), "{name}");
    }
}

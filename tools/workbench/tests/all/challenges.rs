//! Each challenge can be done, isn't done by what's near, and isn't done before somebody has begun.

use crate::run;
use std::collections::BTreeSet;
use std::path::Path;
use workbench::challenge::{all, Challenge, Verdict};

fn verdict(challenge: &Challenge, script: &str) -> Verdict {
    challenge.judge(&run(script).record.file).unwrap_or_else(|error| panic!("{}: {error:#}", challenge.name))
}

#[test]
fn what_is_right_passes_and_nothing_else() {
    let mut wrong = Vec::new();
    for challenge in all() {
        for right in &challenge.right {
            let Verdict { passed, says } = verdict(&challenge, right);
            wrong.extend((!passed).then(|| format!("{}: the right one doesn't pass: {says}", challenge.name)));
        }
        for other in challenge.wrong.iter().chain([&challenge.begin]) {
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
        let Challenge { name, page, title, task, idea, hints, right, wrong, afterwards, .. } = challenge;
        assert!(docs.join(format!("{page}.md")).exists(), "{name}: there's no page {page}");
        assert!(
            [title, &task.as_str(), &idea.as_str(), &afterwards.as_str()].iter().all(|text| !text.is_empty()),
            "{name}"
        );
        assert!(!hints.is_empty() && !right.is_empty() && !wrong.is_empty(), "{name}");
    }
}

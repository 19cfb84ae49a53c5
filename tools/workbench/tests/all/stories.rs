//! The bench is true: what a lesson's script does here is the story that the lesson told on Linux's rdma_rxe.

use crate::run;
use run::capture::Reader;
use std::fs;
use std::path::Path;
use wire::compare::{compare, Capture};

#[test]
fn each_story_of_lessons_03_to_07_compares_as_the_same() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut wrong = Vec::new();
    let captures = fs::read_dir(root.join("../../captures")).unwrap().flatten().map(|entry| entry.path());
    let is_one = |name: &str| ["03_", "04_", "05_", "06_", "07_"].iter().any(|number| name.starts_with(number));
    for path in captures.filter(|path| path.extension().is_some_and(|end| end == "pcapng")) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if !is_one(&name) {
            continue;
        }
        let script = fs::read_to_string(root.join(format!("stories/{name}.txt")))
            .unwrap_or_else(|_| panic!("{name} has no script"));
        let own = run(&script);
        assert!(own.waiting.is_empty() && own.ended.is_none(), "{name}: {:?}", own.waiting);
        let mine = Capture::read(&mut Reader::new(own.record.file.as_slice()).unwrap()).unwrap();
        let reference = Capture::read(&mut Reader::new(fs::File::open(&path).unwrap()).unwrap()).unwrap();
        let report = compare(&mine, &reference);
        if report.verdict() != wire::compare::Verdict::Same {
            wrong.push(format!("{name}:\n{report}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

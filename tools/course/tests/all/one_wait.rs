//! A learner waits for a compiler once. Cargo compiles a crate again for each set of features that it's asked for, so whatever a command
//! builds has to ask for the same.

use crate::begin::project;
use course::changes::Changes;
use course::copy::Copy;
use course::mine::{Language, Mine};
use course::nic::copy::MineNic;
use course::project::Project;
use run::files::output;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// What is built the first time.
const FIRST: &str = "-p lab -p device -p course -p wire -p common -p lesson-01";
/// What is built later on, or by somebody who begins with a NIC; and `course` itself builds these one by one.
const LATER: [&str; 10] = [
    "-p lab -p device -p course -p wire",
    "-p lab",
    "-p device",
    "-p course",
    "-p wire",
    "-p common",
    "-p common -p lesson-04",
    "-p lesson-11 -p lesson-13",
    "-p device -p lesson-20",
    "-p xtask",
];

/// What cargo would build of other people's crates: each one's name, version and features.
fn wanted(folder: &Path, packages: &str) -> BTreeSet<String> {
    let mut cargo = Command::new("cargo");
    cargo
        .args(["tree", "--offline", "--prefix", "none", "-f", "{p} [{f}]"])
        .args(packages.split(' '))
        .current_dir(folder);
    let tree = output(&mut cargo).unwrap();
    let crates = tree.lines().map(|line| line.trim_end_matches(" (*)")).filter(|line| !line.contains("(/"));
    let crates: BTreeSet<String> = crates.map(str::to_owned).collect();
    assert!(crates.len() > 9, "{tree}");
    crates
}

#[test]
fn whatever_is_built_asks_for_what_the_first_build_has_asked_for() {
    let real = Project::find().unwrap();
    let mine = Mine::begin(&project("test-of-features", Language::Rust), Language::Rust).unwrap();
    let nic = MineNic::new(real.target.join("course/test-of-features/mine-nic"));
    nic.lay_out(&real, &[]).unwrap();
    let breaks = Changes::all(&real).unwrap().breaks;
    let edited = breaks.iter().map(|it| &it.change).find(|change| !change.edits.is_empty()).unwrap();
    let copy = Copy::lay_out(&real, edited).unwrap();

    let normal = |packages: &str| format!("-e normal,build {packages}");
    let first = wanted(&real.root, &normal(FIRST));
    let later = LATER.map(|packages| (real.root.as_path(), normal(packages)));
    let copies = [
        (mine.folder.as_path(), normal("-p mine")),
        (&copy.folder, normal(&format!("-p {}", copy.package))),
        (&nic.0.folder, normal("-p device")),
        // Its judge is an example.
        (&nic.0.folder, "-e normal,build,dev -p nic".to_owned()),
    ];
    for (folder, packages) in later.into_iter().chain(copies) {
        let again: Vec<String> = wanted(folder, &packages).difference(&first).cloned().collect();
        assert!(again.is_empty(), "in {}, {packages} asks for another {again:?}", folder.display());
    }
}

#[test]
fn the_two_halves_of_the_tests_ask_for_what_is_built_for_both() {
    let root = Project::find().unwrap().root;
    let all = wanted(&root, "-e normal,build,dev --workspace");
    for half in ["-p course -p device", "--workspace --exclude course --exclude device"] {
        let again: Vec<String> =
            wanted(&root, &format!("-e normal,build,dev {half}")).difference(&all).cloned().collect();
        assert!(again.is_empty(), "{half} asks for another {again:?}");
    }
}

//! `make begin`: what is laid out builds by itself, and what is there already stays.

use course::mine::{Language, Mine};
use course::project::Project;
use run::files::{read, write};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

#[test]
fn what_is_laid_out_builds_and_is_never_laid_out_again() {
    for language in [Language::Rust, Language::C, Language::Python] {
        let real = Project::find().unwrap();
        let root = real.target.join("course/test-of-begin").join(format!("{language:?}"));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        for file in ["Cargo.lock", "common"] {
            symlink(real.root.join(file), root.join(file)).unwrap();
        }
        let project = Project { root, target: real.target };
        let mine = Mine::begin(&project, language).unwrap();
        let program = mine.build(&project, false).unwrap().unwrap();
        // Python's needs pyverbs, which only those have who asked for it.
        if language != Language::Python {
            let usage = Command::new("sh").args(["-c", &format!("{program} --help 2>&1")]).output().unwrap();
            assert!(String::from_utf8_lossy(&usage.stdout).contains("server"), "{usage:?}");
        }

        let source = mine.folder.join(language.source());
        write(&source, "mine").unwrap();
        let again = Mine::begin(&project, Language::Rust).unwrap_err().to_string();
        assert!(again.contains("already"), "{again}");
        assert_eq!(read(&source).unwrap(), "mine");
    }
}

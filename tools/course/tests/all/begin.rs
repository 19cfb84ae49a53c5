//! `make begin`: what is laid out builds by itself, as an editor does it, and what is there already stays.

use course::build::build_programs;
use course::mine::{Language, Mine};
use course::project::Project;
use course::workspace::is_shared;
use run::files::{read, tree, write};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::{env, fs};

const LANGUAGES: [Language; 3] = [Language::Rust, Language::C, Language::Python];

/// A project of which nobody has begun a program, in a folder of the tests.
pub fn project(name: &str, language: Language) -> Project {
    let real = Project::find().unwrap();
    let root = real.target.join("course").join(name).join(format!("{language:?}"));
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root).unwrap();
    for file in ["Cargo.toml", "Cargo.lock", "common"] {
        symlink(real.root.join(file), root.join(file)).unwrap();
    }
    Project { root, target: real.target }
}

/// What a command says in a folder, to somebody who has not told the shell what set-up has unpacked.
fn alone(folder: &Path, words: &[&str]) -> Output {
    let kept = ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"];
    let known = kept.iter().filter_map(|name| Some((name, env::var_os(name)?)));
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env_clear().envs(known).current_dir(folder).output().unwrap()
}

#[test]
fn what_is_laid_out_builds_and_is_never_laid_out_again() {
    for language in LANGUAGES {
        let project = project("test-of-begin", language);
        let mine = Mine::begin(&project, language).unwrap();
        let (program, warnings) = mine.build(&project, false).unwrap().unwrap();
        assert_eq!(warnings, "", "{language:?}");
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

#[test]
fn it_builds_in_a_shell_that_knows_nothing_and_an_editor_is_told_where_all_is() {
    for language in LANGUAGES {
        let project = project("test-of-begin-alone", language);
        let mine = Mine::begin(&project, language).unwrap();
        if language == Language::Rust {
            build_programs(&Project::find().unwrap(), ["lesson-01"].into_iter()).unwrap();
            // An older cargo would build all that she calls once more, and make has done so before her.
            if !is_shared().unwrap() {
                mine.prepare(&project).unwrap();
            }
        }
        let folder = &mine.folder;
        let words: &[&str] = match language {
            Language::Rust => &["cargo", "build"],
            Language::C => &["make", "-s"],
            Language::Python => &["python3", "-m", "json.tool", "pyrightconfig.json"],
        };
        let output = alone(folder, words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{language:?}: {said}");
        // What was compiled for the lessons isn't compiled again.
        let mut compiled = said.lines().filter_map(|line| line.trim().strip_prefix("Compiling "));
        assert!(compiled.all(|package| package.starts_with("mine ")), "{said}");
        if language == Language::C {
            let headers = alone(folder, &["sh", "-c", "cc $(cat compile_flags.txt) -fsyntax-only mine.c"]);
            assert!(headers.status.success(), "{}", String::from_utf8_lossy(&headers.stderr));
        }
    }
}

#[test]
fn whatever_stands_in_the_folder_already_stays_and_nothing_is_put_beside_it() {
    for language in LANGUAGES {
        let laid_out = {
            let project = project("test-of-begin-beside", language);
            let folder = Mine::begin(&project, language).unwrap().folder;
            let besides: Vec<String> =
                language.beside(&project).unwrap().into_iter().map(|(file, _)| file.to_owned()).collect();
            besides.iter().for_each(|file| assert!(folder.join(file).exists(), "{file}"));
            [tree(&folder).unwrap(), besides].concat()
        };
        for file in laid_out.iter().filter(|file| **file != language.source()) {
            let project = project("test-of-begin-beside", language);
            write(project.root.join("mine").join(file), "mine").unwrap();
            let refused = Mine::begin(&project, language).unwrap_err().to_string();
            assert!(refused.contains(file.as_str()) && refused.contains("already"), "{refused}");
            assert!(!project.root.join("mine").join(language.source()).exists());
            assert_eq!(read(project.root.join("mine").join(file)).unwrap(), "mine");
        }
    }
}

#[test]
fn a_compiler_of_cpp_finds_the_headers_where_set_up_has_put_them() {
    // Set-up brings none, so that machines without one have nothing to try here.
    let Ok(mut compiler) = Command::new("g++").args(["-fsyntax-only", "-x", "c++", "-"]).stdin(Stdio::piped()).spawn()
    else {
        return;
    };
    let source = b"#include <rdma/rdma_cma.h>\nint main() { return rdma_create_event_channel() == nullptr; }\n";
    compiler.stdin.take().unwrap().write_all(source).unwrap();
    assert!(compiler.wait().unwrap().success());
}

//! `make grade`: a mean program is ended in words, and harms nothing; one that prints what others print has done nothing.

use course::project::Project;
use run::files::read;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// One grades at a time in a project.
static ALONE: Mutex<()> = Mutex::new(());

/// It tries to write where it may not, to fill the disk, to end those around it, to remove all that it can reach, and to fill
/// memory with processes.
const MEAN: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void) {
    static char block[1 << 20];
    const char *files[] = {"CANARY", "/tmp/big", "/etc/mean"};
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGXFSZ, SIG_IGN);
    for (int i = 0; i < 3; i++) {
        int file = open(files[i], O_WRONLY | O_CREAT | O_TRUNC, 0666);
        long long written = 0;
        for (int n = 0; file >= 0 && n < 10 * 1024; n++) {
            ssize_t more = write(file, block, sizeof block);
            if (more <= 0)
                break;
            written += more;
        }
        printf("wrote %lld bytes\n", written);
    }
    system("rm -rf 'FOLDER' /tmp/* 2>/dev/null");
    kill(getppid(), SIGKILL);
    kill(-1, SIGKILL);
    printf("the others are dead\n");
    for (int n = 0; FOREVER || n < 1000; n++)
        fork();
}
"#;

const PRINTS: &str = r#"
#include <stdio.h>
int main(void) {
    puts("listening on port 7471");
    return 0;
}
"#;

/// A folder below cargo's with the program of a student.
fn student(name: &str, source: &str) -> PathBuf {
    let folder = Project::find().unwrap().target.join("course/test-of-grades").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("mine.c"), source).unwrap();
    folder
}

fn grade(folders: &[&Path]) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_course"));
    let root = Project::find().unwrap().root;
    command.args(["grade", "--lesson", "01"]).args(folders).current_dir(root).output().unwrap()
}

/// What is said of each step of lesson 01, and whether it is passed.
fn graded(folder: &Path) -> Vec<(bool, String)> {
    graded_as(folder, folder.file_name().unwrap().to_str().unwrap())
}

/// The same of a student who is called so.
fn graded_as(folder: &Path, who: &str) -> Vec<(bool, String)> {
    let project = Project::find().unwrap();
    let output = grade(&[folder]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = read(project.target.join("grade").join(format!("{who}.md"))).unwrap();
    assert!(page.starts_with(&format!("# {who}\n")), "{page}");
    let all: serde_json::Value = serde_json::from_str(&read(project.target.join("grade/grade.json")).unwrap()).unwrap();
    let marks = all[0]["marks"].as_array().unwrap();
    marks.iter().map(|mark| (mark["passed"].as_bool().unwrap(), mark["said"].to_string())).collect()
}

/// Processes with these words in their command line.
fn processes(words: &str) -> usize {
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    all.filter(|line| String::from_utf8_lossy(line).contains(words)).count()
}

#[test]
fn a_mean_program_harms_nothing_and_one_that_only_prints_has_done_nothing() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let canary = student("canary", PRINTS);
    let marks = mean("0", &canary);
    assert!(!marks.is_empty() && marks.iter().all(|(is_passed, _)| !is_passed), "{marks:?}");

    let marks = graded(&canary);
    assert!(marks.iter().all(|(is_passed, _)| !is_passed), "{marks:?}");
}

#[test]
#[ignore = "takes long: make test-long"]
fn a_mean_program_without_end_is_ended() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let marks = mean("1", &student("bird", PRINTS));
    assert!(!marks.is_empty() && marks.iter().all(|(_, said)| said.contains("and is ended")), "{marks:?}");
}

/// What is said of a mean program, which has reached nobody else's.
fn mean(forever: &str, other: &Path) -> Vec<(bool, String)> {
    let (folder, file) = (other.display().to_string(), other.join("mine.c").display().to_string());
    let source = MEAN.replace("CANARY", &file).replace("FOLDER", &folder).replace("FOREVER", forever);
    let marks = graded(&student("mean", &source));
    assert_eq!(read(&file).unwrap(), PRINTS, "it stands outside");
    assert!(!Path::new("/etc/mean").exists() && !Path::new("/tmp/big").exists());
    let handed_in = Project::find().unwrap().target.join("grade/mean/");
    assert_eq!(processes(handed_in.to_str().unwrap()), 0, "something was left");
    marks
}

#[test]
fn a_link_in_a_repository_leads_nowhere_and_two_of_one_name_are_asked_for_another() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let repository = student("repository", PRINTS);
    let outside = repository.parent().unwrap().join("outside");
    fs::write(&outside, "outside").unwrap();
    symlink(&outside, repository.join("Makefile")).unwrap();
    for args in
        [&["init", "-q"][..], &["add", "."], &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]]
    {
        assert!(Command::new("git").arg("-C").arg(&repository).args(args).status().unwrap().success());
    }
    let marks = graded(&repository);
    assert!(!marks.is_empty() && marks.iter().all(|(is_passed, _)| !is_passed), "{marks:?}");
    assert_eq!(read(&outside).unwrap(), "outside");

    // Its address will do, and a repository in which no files are laid out, as a server keeps one; whosever they are.
    let bare = repository.with_file_name("bare.git");
    let _ = fs::remove_dir_all(&bare);
    let cloned = Command::new("git").args(["clone", "-q", "--bare"]).args([&repository, &bare]).status().unwrap();
    assert!(cloned.success());
    if rustix::process::getuid().is_root() {
        assert!(Command::new("chown").args(["-R", "nobody"]).arg(&bare).status().unwrap().success());
    }
    let address = PathBuf::from(format!("file://{}", bare.display()));
    let by_address: Vec<bool> = graded_as(&address, "bare").into_iter().map(|(is_passed, _)| is_passed).collect();
    assert_eq!(by_address, marks.iter().map(|(is_passed, _)| *is_passed).collect::<Vec<_>>());

    let twice = grade(&[&repository, &repository]);
    assert!(!twice.status.success());
    let said = String::from_utf8_lossy(&twice.stderr).into_owned();
    assert!(said.contains("two students are called repository"), "{said}");
}

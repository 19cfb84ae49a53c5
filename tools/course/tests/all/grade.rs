//! `make grade`: a mean program is ended in words, and harms nothing; one that prints what others print has done nothing.

use course::project::Project;
use run::files::read;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// It tries to write where it may not, to fill the disk, to end those around it, to remove all that it can reach, to fill memory
/// with processes, and never ends.
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
    for (;;)
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

/// What is said of each step of lesson 01, and whether it is passed.
fn graded(folder: &Path) -> Vec<(bool, String)> {
    let project = Project::find().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_course"));
    let output = command.args(["grade", "--lesson", "01"]).arg(folder).current_dir(&project.root).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let who = folder.file_name().unwrap().to_str().unwrap();
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
fn a_mean_program_is_ended_and_harms_nothing_and_one_that_only_prints_has_done_nothing() {
    let canary = student("canary", PRINTS);
    let (folder, file) = (canary.display().to_string(), canary.join("mine.c").display().to_string());
    let mean = student("mean", &MEAN.replace("CANARY", &file).replace("FOLDER", &folder));
    let marks = graded(&mean);
    assert!(!marks.is_empty() && marks.iter().all(|(is_passed, _)| !is_passed), "{marks:?}");
    assert!(marks.iter().any(|(_, said)| said.contains("and is ended")), "{marks:?}");
    assert_eq!(read(&file).unwrap(), PRINTS, "it stands outside");
    assert!(!Path::new("/etc/mean").exists() && !Path::new("/tmp/big").exists());
    assert_eq!(processes("grade/mean/"), 0, "something was left");

    let marks = graded(&canary);
    assert!(marks.iter().all(|(is_passed, _)| !is_passed), "{marks:?}");
}

//! `make grade`: a mean program is ended in words, and harms nothing; one that prints what others print has done nothing.

use course::project::Project;
use course::step::Step;
use run::files::{read, tree, write};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use testkit::each::each;

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

/// What students have handed in, and results of their own, so that several classes are graded at the same time.
struct Class(PathBuf);

impl Class {
    /// One of which nothing is left from the last time, in a folder below cargo's.
    fn new(name: &str) -> Self {
        let folder = Project::find().unwrap().target.join("course/test-of-grades").join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// A folder with the program of a student.
    fn student(&self, name: &str, source: &str) -> PathBuf {
        let folder = self.0.join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("mine.c"), source).unwrap();
        folder
    }

    fn results(&self) -> PathBuf {
        self.0.join("results")
    }

    /// What a student's program is shut in with.
    fn shut_in(&self, who: &str) -> PathBuf {
        self.results().join("shut-in").join(format!("of {who}"))
    }

    fn grade(&self, options: &[&str], folders: &[&Path]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_course"));
        command.arg("grade").args(options).arg("--to").arg(self.results()).args(folders);
        command.current_dir(Project::find().unwrap().root).output().unwrap()
    }

    /// Grades folders of which none is unusable, and returns a row for each student, as grade.json has it.
    fn graded(&self, options: &[&str], folders: &[&Path]) -> Value {
        let output = self.grade(options, folders);
        let [said, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        assert!(output.status.success(), "{said}{errors}");
        self.rows()
    }

    fn rows(&self) -> Value {
        serde_json::from_str(&read(self.results().join("grade.json")).unwrap()).unwrap()
    }

    /// What is said of each step of lesson 01 to one student, and whether it is passed.
    fn marks(&self, folder: &Path, who: &str) -> Vec<(bool, String)> {
        let rows = self.graded(&LESSON_01, &[folder]);
        let page = read(self.results().join(format!("{who}.md"))).unwrap();
        assert!(page.starts_with(&format!("# {who}\n")), "{page}");
        let marks = rows[0]["marks"].as_array().unwrap();
        marks.iter().map(|mark| (mark["passed"].as_bool().unwrap(), mark["said"].to_string())).collect()
    }
}

const LESSON_01: [&str; 2] = ["--lesson", "01"];
/// How many classes of one test are graded at a time.
const SIDE_BY_SIDE: usize = 3;

/// Processes with these words in their command line.
fn processes(words: &str) -> usize {
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    all.filter(|line| String::from_utf8_lossy(line).contains(words)).count()
}

#[test]
fn a_mean_program_harms_nothing_and_one_that_only_prints_has_done_nothing() {
    let class = Class::new("mean");
    let canary = class.student("canary", PRINTS);
    let marks = mean("0", &class, &canary);
    assert!(!marks.is_empty() && marks.iter().all(|(is_passed, _)| !is_passed), "{marks:?}");

    let marks = class.marks(&canary, "canary");
    assert!(marks.iter().all(|(is_passed, _)| !is_passed), "{marks:?}");
}

#[test]
#[ignore = "takes long: make test-long"]
fn a_mean_program_without_end_is_ended() {
    let class = Class::new("mean-without-end");
    let marks = mean("1", &class, &class.student("bird", PRINTS));
    let is_bounded = |said: &String| said.contains("and is ended") || said.contains("not run: trials");
    assert!(!marks.is_empty() && marks.iter().all(|(is_passed, said)| !is_passed && is_bounded(said)), "{marks:?}");
}

/// What is said of a mean program, which has reached nobody else's.
fn mean(forever: &str, class: &Class, other: &Path) -> Vec<(bool, String)> {
    let (folder, file) = (other.display().to_string(), other.join("mine.c").display().to_string());
    let source = MEAN.replace("CANARY", &file).replace("FOLDER", &folder).replace("FOREVER", forever);
    let marks = class.marks(&class.student("mean", &source), "mean");
    assert_eq!(read(&file).unwrap(), PRINTS, "it stands outside");
    assert!(!Path::new("/etc/mean").exists() && !Path::new("/tmp/big").exists());
    assert_eq!(processes(class.shut_in("mean").to_str().unwrap()), 0, "something was left");
    marks
}

/// Makes a repository of a folder, with all that is in it.
fn commit(folder: &Path) {
    for args in
        [&["init", "-q"][..], &["add", "."], &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]]
    {
        assert!(Command::new("git").arg("-C").arg(folder).args(args).status().unwrap().success());
    }
}

#[test]
fn a_link_in_a_repository_leads_nowhere_and_two_of_one_name_are_asked_for_another() {
    let class = Class::new("repository");
    let repository = class.student("repository", PRINTS);
    let outside = repository.parent().unwrap().join("outside");
    fs::write(&outside, "outside").unwrap();
    symlink(&outside, repository.join("Makefile")).unwrap();
    commit(&repository);
    let marks = class.marks(&repository, "repository");
    assert!(!marks.is_empty() && marks.iter().all(|(is_passed, _)| !is_passed), "{marks:?}");
    assert_eq!(read(&outside).unwrap(), "outside");

    // Its address will do, and a repository in which no files are laid out, as a server keeps one; whosever they are.
    let bare = repository.with_file_name("bare.git");
    let cloned = Command::new("git").args(["clone", "-q", "--bare"]).args([&repository, &bare]).status().unwrap();
    assert!(cloned.success());
    if rustix::process::getuid().is_root() {
        assert!(Command::new("chown").args(["-R", "nobody"]).arg(&bare).status().unwrap().success());
    }
    let address = PathBuf::from(format!("file://{}", bare.display()));
    let by_address: Vec<bool> = class.marks(&address, "bare").into_iter().map(|(is_passed, _)| is_passed).collect();
    assert_eq!(by_address, marks.iter().map(|(is_passed, _)| *is_passed).collect::<Vec<_>>());

    let twice = class.grade(&LESSON_01, &[&repository, &repository]);
    assert!(!twice.status.success());
    let said = String::from_utf8_lossy(&twice.stdout).into_owned();
    assert!(said.contains("repository                 0 of 7") && said.contains("called repository as well"), "{said}");
}

/// The reference in C as the program of a lesson: what is handed in at its end.
fn reference(lesson: u8) -> String {
    let text = read(Project::find().unwrap().root.join("lessons/in_c/rdma.c")).unwrap();
    let of_lesson = text.replace("    .lesson = 7,", &format!("    .lesson = {lesson},"));
    assert!(lesson == 7 || of_lesson != text);
    of_lesson
}

#[test]
fn one_folder_that_cannot_be_graded_keeps_nobody_else_from_it() {
    let class = Class::new("unusable");
    let (good, outside) = (class.student("good", &reference(1)), class.student("outsider", PRINTS));
    let bad = |name: &str| {
        let folder = class.student(name, PRINTS);
        fs::remove_file(folder.join("mine.c")).unwrap();
        folder
    };
    let (link, pipe, empty, big) = (bad("bad-link"), bad("bad-pipe"), bad("bad-empty"), bad("bad-big"));
    symlink(outside.join("mine.c"), link.join("mine.c")).unwrap();
    assert!(Command::new("mkfifo").arg(pipe.join("mine.c")).status().unwrap().success());
    fs::write(big.join("mine.c"), PRINTS).unwrap();
    fs::File::create(big.join("data.h")).unwrap().set_len(2 << 30).unwrap();
    let whole = empty.with_file_name("bad-whole");
    symlink(&good, &whole).unwrap();
    // Whose repository is elsewhere hands in somebody else's work.
    let foreign = bad("bad-git");
    fs::write(foreign.join(".git"), format!("gitdir: {}/.git\n", outside.display())).unwrap();
    // So does whose objects are elsewhere: `git clone --shared` leaves a file that says where, objects/info/alternates.
    let (lender, borrowed) = (class.student("lender", &reference(1)), bad("bad-borrowed"));
    commit(&lender);
    let mut clone = Command::new("git");
    assert!(clone.args(["clone", "-q", "--shared"]).args([&lender, &borrowed]).status().unwrap().success());
    let none = empty.with_file_name("bad-none");
    let odd = class.student("odd'$(name) `x` \n| y", PRINTS);
    let all = [&link, &pipe, &empty, &big, &whole, &foreign, &borrowed, &none, &odd, &good].map(PathBuf::as_path);
    let output = class.grade(&LESSON_01, &all);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let rows = class.rows();
    let expected = [
        "a link",
        "a pipe",
        "no program",
        "more than a MiB",
        "it's a link",
        ".git isn't a folder",
        "alternates leads out of it",
        "there is no",
    ];
    for (row, why) in rows.as_array().unwrap().iter().zip(expected) {
        assert!(row["not_graded"].as_str().is_some_and(|said| said.contains(why)), "{why}: {row}");
    }
    assert_eq!((&rows[8]["student"], &rows[8]["passed"]), (&"odd___name_ _x_ __ y".into(), &0.into()));
    assert_eq!((&rows[9]["passed"], &rows[9]["of"]), (&7.into(), &7.into()));
}

#[test]
fn what_passes_has_an_end_as_well() {
    let class = Class::new("no-time");
    let rows = class.graded(&["--lesson", "01", "--limit", "0"], &[&class.student("slow-and-good", &reference(1))]);
    assert!(rows[0]["passed"] == 0 && rows.to_string().contains("not run: this program has had 0 s"), "{rows:#}");
}

#[test]
fn nothing_that_earns_marks_is_in_the_sandbox_nor_anything_of_the_teachers() {
    let (project, class) = (Project::find().unwrap(), Class::new("copied"));
    let anna = class.student("anna", &reference(1));
    let copied = |name: &str, path: String| class.student(name, &format!("#include \"{path}\"\n"));
    let copies = [
        copied("copy-of-anna", format!("{}/mine.c", anna.display())),
        copied("copy-of-sibling", "../anna/mine.c".to_owned()),
        copied("copy-of-copy", format!("{}/mine/mine.c", class.shut_in("anna").display())),
        copied("copy-of-reference", format!("{}/lessons/in_c/rdma.c", project.root.display())),
        copied("copy-of-shadow", "/etc/shadow".to_owned()),
        copied("copy-of-passwd", "/etc/passwd".to_owned()),
        class.student("copy-of-bytes", "__asm__(\".incbin \\\"/etc/hostname\\\"\");\nint main(void) { return 0; }\n"),
    ];
    only_anna_passes(&class, &anna, &copies);
}

/// Who runs another's program is that one: the arguments are the same.
#[test]
fn whoever_runs_a_program_that_earns_marks_finds_none() {
    let target = Project::find().unwrap().target;
    each(SIDE_BY_SIDE, &["lesson", "anna", "cargos"], |whose| {
        let class = Class::new(&format!("runs-{whose}"));
        let anna = class.student("anna", &reference(1));
        let paths: [PathBuf; 2] = match *whose {
            "lesson" => [target.join("debug/lesson-01"), "target/debug/lesson-01".into()],
            "anna" => [class.shut_in("anna").join("mine/mine"), anna.join("mine")],
            _ => ["/target/debug/mine".into(), "/target/debug/lesson-01".into()],
        };
        let runs: String = paths.iter().map(|path| format!("execv({path:?}, argv);")).collect();
        let main = format!("#include <unistd.h>\nint main(int argc, char **argv) {{ {runs} return 9; }}\n");
        only_anna_passes(&class, &anna, &[class.student("runs", &main)]);
    });
}

fn only_anna_passes(class: &Class, anna: &Path, others: &[PathBuf]) {
    let all: Vec<&Path> = std::iter::once(anna).chain(others.iter().map(PathBuf::as_path)).collect();
    let rows = class.graded(&LESSON_01, &all);
    assert_eq!(rows[0]["passed"], 7, "{rows}");
    for row in &rows.as_array().unwrap()[1..] {
        assert_eq!(row["passed"], 0, "{row:#}");
    }
    assert!(!rows.to_string().contains("root:"), "{rows:#}");
}

/// The reference in C with an edit that a step's judge knows to be wrong, as the program of its lesson.
fn wrong(lesson: u8, name: &str) -> String {
    let steps = Step::of(&Project::find().unwrap().lesson(&format!("{lesson:02}")).unwrap()).unwrap();
    let mut proofs = steps.iter().flat_map(|step| &step.proofs);
    let proof = proofs.find(|proof| proof.change.name.name == name).unwrap();
    proof.change.apply("in_c/rdma.c", &reference(lesson)).unwrap()
}

#[test]
fn the_other_programs_command_line_is_no_place_to_look_for_its_text() {
    let class = Class::new("spy");
    let rows = class.graded(&["--lesson", "04"], &[&class.student("spy", &wrong(4, "2-look-wrong-10"))]);
    let marks = rows[0]["marks"].as_array().unwrap().iter();
    let lost: BTreeSet<_> = marks.filter(|mark| mark["passed"] == false).map(|mark| mark["step"].to_string()).collect();
    assert!(["04-2-look", "04-3-"].iter().all(|step| lost.iter().any(|lost| lost.contains(step))), "{rows:#}");
    assert!(rows.to_string().contains("didn't print the client's whole text"), "{rows:#}");
}

/// What a program that looks around says on standard output, in the run of step 01-1.
fn looked(class: &Class, name: &str, code: &str) -> String {
    let folder = class.student(name, &format!("{LOOKS}\nint main(void) {{\n{code}\nreturn 3;\n}}\n"));
    // As a shell has it that has a folder open, and a secret in its environment.
    let mut shell = Command::new("sh");
    let line = format!("exec 7</; exec '{}' grade --lesson 01 --to \"$0\" \"$1\"", env!("CARGO_BIN_EXE_course"));
    shell.args(["-c", &line]).args([&class.results(), &folder]).env("SECRET_TOKEN", "swordfish");
    let secret = shell.current_dir(Project::find().unwrap().root).output().unwrap();
    assert!(secret.status.success(), "{}", String::from_utf8_lossy(&secret.stderr));
    class.rows().to_string()
}

const LOOKS: &str = r#"
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
extern char **environ;
static char text[1 << 16];
static void bad(const char *what) { fprintf(stderr, "error: BROKEN OUT by %s\n", what); }
static int says(const char *path, const char *word) {
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, sizeof text, file) : 0;
    if (file) fclose(file);
    return memmem(text, length, word, strlen(word)) != NULL;
}
static int called(int kind, int abstract, const char *path) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    strcpy(to.sun_path + abstract, path);
    int s = socket(AF_UNIX, kind, 0);
    int got = connect(s, (void *)&to, sizeof(sa_family_t) + abstract + strlen(path)) == 0;
    close(s);
    return got;
}
"#;

#[test]
fn a_program_that_looks_for_a_way_out_finds_none() {
    let project = Project::find().unwrap();
    let class = Class::new("looker");
    let socket = class.0.join("listens.socket");
    let _listens = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let name = format!("course-grade-{}", std::process::id());
    let address =
        <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(&name).unwrap();
    let hears = std::os::unix::net::UnixDatagram::bind_addr(&address).unwrap();
    hears.set_nonblocking(true).unwrap();
    let code = r#"
    /* What is open already. */
    for (int at = 0; at < 1024; at++) {
        struct stat about;
        if (fstat(at, &about) == 0 && S_ISDIR(about.st_mode)) bad("a folder that was open");
    }
    for (char **one = environ; *one; one++)
        if (strstr(*one, "swordfish") || strstr(*one, "ROOT")) bad("environment");
    if (says("/proc/1/environ", "swordfish")) bad("environment of 1");
    if (called(SOCK_STREAM, 0, "SOCKET")) bad("socket by path");
    if (called(SOCK_DGRAM, 1, "NAME")) bad("abstract socket");
    /* What it prints goes into a socket of another network: that one must not lead elsewhere. */
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    strcpy(to.sun_path + 1, "NAME");
    socklen_t length = sizeof(sa_family_t) + 1 + strlen("NAME");
    for (int s = 0; s < 64; s++) {
        sendto(s, "x", 1, 0, (void *)&to, length);
        struct iovec part = {"x", 1};
        struct msghdr message = {.msg_name = &to, .msg_namelen = length, .msg_iov = &part, .msg_iovlen = 1};
        sendmsg(s, &message, 0);
        if (s > 2) connect(s, (void *)&to, length);
    }
    int copy = dup(1);
    if (connect(copy, (void *)&to, length) == 0) write(copy, "x", 1);
    /* From a folder that somebody outside has opened, .. leads outside. */
    const char *folders[] = {"/sys/class/infiniband", "/sys/class/infiniband_verbs", "/dev/infiniband", "/etc/libibverbs.d", "/sys", "/"};
    for (int at = 0; at < 6; at++) {
        char path[400] = "";
        int folder = open(folders[at], O_RDONLY | O_DIRECTORY);
        for (int up = 0; folder >= 0 && up < 24; up++) {
            strcat(path, "../");
            char file[512];
            snprintf(file, sizeof file, "%sROOT/lessons/in_c/rdma.c", path);
            if (openat(folder, file, O_RDONLY) >= 0) { bad(folders[at]); break; }
            snprintf(file, sizeof file, "%sCargo.toml", path);
            if (openat(folder, file, O_RDONLY) >= 0) { bad(folders[at]); break; }
        }
    }
    if (access("ROOT/Cargo.toml", F_OK) == 0) bad("the repository");
    if (access("TARGET", F_OK) == 0) bad("what cargo has built");
    const char *writable[] = {"/mine/x", "/x", "/dev/x", "/usr/x", "/sys/x", "/proc/sys/kernel/core_pattern"};
    for (int at = 0; at < 6; at++)
        if (open(writable[at], O_WRONLY | O_CREAT, 0600) >= 0) bad(writable[at]);
    if (setuid(0) == 0) bad("root");
    if (syscall(SYS_unshare, 0x10000000) == 0) bad("a user namespace");
    if (syscall(SYS_memfd_create, "x", 0) >= 0) bad("memory without a name");
    if (syscall(SYS_io_uring_setup, 8, text) >= 0 || errno == EFAULT) bad("io_uring");
    if (syscall(SYS_keyctl, 0, -4, 1) >= 0) bad("keys");
    /* No more than the limits allow. */
    const char *full[] = {"/dev/shm", "/tmp"};
    static char block[1 << 20];
    memset(block, 1, sizeof block);
    for (int at = 0; at < 2; at++) {
        long long written = 0;
        for (int n = 0; n < 30; n++) {
            char file[64];
            snprintf(file, sizeof file, "%s/%d", full[at], n);
            int out = open(file, O_WRONLY | O_CREAT, 0600);
            for (ssize_t more; out >= 0 && written < (1 << 28) && (more = write(out, block, 1 << 20)) > 0;) {
                written += more;
                if (lseek(out, 0, SEEK_CUR) > (32 << 20)) break;
            }
            close(out);
        }
        if (written > (65 << 20)) bad(full[at]);
    }
    DIR *processes = opendir("/proc");
    int numbers = 0;
    for (struct dirent *entry; (entry = readdir(processes));) numbers += atoi(entry->d_name) > 0;
    if (numbers > 6) bad("others' processes");
    printf("has looked around\n");
    fprintf(stderr, "error: has looked around\n");
    "#;
    let (root, target) = (project.root.display().to_string(), project.target.display().to_string());
    let code = code.replace("ROOT", &root).replace("TARGET", &target);
    let code = code.replace("SOCKET", &socket.display().to_string()).replace("NAME", &name);
    let said = looked(&class, "looker", &code);
    assert!(said.contains("has looked around"), "{said}");
    assert!(!said.contains("BROKEN OUT"), "{said}");
    assert!(!said.contains("swordfish"), "{said}");
    assert!(hears.recv(&mut [0; 8]).is_err(), "somebody inside has reached a socket outside");
}

#[test]
fn whoever_sleeps_without_end_uses_up_a_lessons_time_and_is_told_so() {
    let rows = endless("sleeper", "#include <unistd.h>\nint main(void) { for (;;) sleep(1000); }\n");
    let marks = rows[0]["marks"].as_array().unwrap().iter();
    let not_run = marks.filter(|mark| mark["said"].to_string().contains("not run: trials")).count();
    assert!(not_run >= 2, "the sleeper has not used up its time: {rows:#}");
}

#[test]
fn whoever_prints_without_end_is_ended_and_told_so() {
    let rows = endless("printer", "#include <stdio.h>\nint main(void) { for (;;) puts(\"once more\"); }\n");
    // Which of its limits the printer meets first is up to the machine: what it may print, or how long it may take.
    let printer = rows[0].to_string();
    assert!(
        ["MiB of lines and packets", "had not ended after"].iter().any(|limit| printer.contains(limit)),
        "{rows:#}"
    );
}

/// The row of a program without an end, which earns nothing.
fn endless(name: &str, source: &str) -> Value {
    let class = Class::new(name);
    let rows = class.graded(&LESSON_01, &[&class.student(name, source)]);
    assert_eq!(rows[0]["passed"], 0, "{rows:#}");
    rows
}

/// The variants of a lesson, besides its steps.
const VARIANTS: usize = 3;

fn steps() -> Vec<Step> {
    Step::all(&Project::find().unwrap()).unwrap()
}

/// Grades the references, each as what was handed in at the end of these lessons, or of one of them.
fn all_lessons(class: &Class, folder: &Path, lesson: Option<&str>) {
    let mut steps = steps();
    steps.retain(|step| lesson.map_or(true, |lesson| step.name.number() == lesson));
    let lessons: BTreeSet<_> = steps.iter().map(|step| step.name.number()).collect();
    let options: Vec<&str> = lesson.iter().flat_map(|lesson| ["--lesson", lesson]).collect();
    let (rows, of) = (class.graded(&options, &[folder]), steps.len() + VARIANTS * lessons.len());
    let marks = rows[0]["marks"].as_array().unwrap();
    let lost: Vec<_> = marks.iter().filter(|mark| mark["passed"] == false).collect();
    assert!(lost.is_empty() && rows[0]["of"] == of as u64, "{lost:#?} {}", rows[0]["of"]);
}

/// A folder like mine/, with what it has kept of each lesson; the file has the program of a lesson for each number.
fn kept(class: &Class, file: &str, program: impl Fn(u8) -> String) -> PathBuf {
    let folder = class.student("all", PRINTS);
    fs::remove_file(folder.join("mine.c")).unwrap();
    for lesson in Project::find().unwrap().lessons().unwrap() {
        let called = lesson.file_name().unwrap().to_str().unwrap().to_owned();
        let number: u8 = called[..2].parse().unwrap();
        if number <= 7 || number == 11 {
            let to = folder.join("done").join(&called).join(file);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::write(to, program(number)).unwrap();
            fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
            fs::write(folder.join(file), program(number)).unwrap();
        }
    }
    folder
}

#[test]
fn the_references_in_c_get_all_marks_of_all_lessons() {
    let datagrams = read(Project::find().unwrap().root.join("lessons/in_c/datagrams.c")).unwrap();
    let program = |number: u8| if number == 11 { datagrams.clone() } else { reference(number) };
    // Lesson by lesson, so that their runs, which mostly wait, wait side by side.
    let lessons: BTreeSet<_> = steps().iter().map(|step| step.name.number().to_owned()).collect();
    each(SIDE_BY_SIDE, &Vec::from_iter(lessons), |lesson| {
        let class = Class::new(&format!("all-in-c-{lesson}"));
        all_lessons(&class, &kept(&class, "mine.c", program), Some(lesson));
    });
}

#[test]
#[ignore = "takes long: make test-long"]
fn the_references_in_python_get_all_marks_of_all_lessons() {
    let text = |file: &str| read(Project::find().unwrap().root.join("lessons/in_python").join(file)).unwrap();
    let (rdma, datagrams) = (text("rdma.py"), text("datagrams.py"));
    let of_lesson = |number: u8| {
        let changed = rdma.replace("default=7,", &format!("default={number},"));
        assert!(number == 7 || changed != rdma);
        changed
    };
    let program = |number: u8| if number == 11 { datagrams.clone() } else { of_lesson(number) };
    let class = Class::new("all-in-python");
    all_lessons(&class, &kept(&class, "mine.py", program), None);
}

#[test]
#[ignore = "takes long: make test-long"]
fn the_lessons_themselves_get_all_marks() {
    let class = Class::new("all-in-rust");
    let folder = kept(&class, "src/main.rs", |_| String::new());
    for lesson in fs::read_dir(folder.join("done")).unwrap().map(|entry| entry.unwrap().file_name()) {
        let from = Project::find().unwrap().root.join("lessons").join(&lesson);
        for file in tree(&from).unwrap().into_iter().filter(|file| file.ends_with(".rs")) {
            write(folder.join("done").join(&lesson).join(&file), read(from.join(&file)).unwrap()).unwrap();
        }
    }
    all_lessons(&class, &folder, None);
}

#[test]
fn a_lesson_that_was_not_handed_in_takes_no_marks() {
    let class = Class::new("only-one");
    let rows = class.graded(&[], &[&class.student("only-one", &reference(1))]);
    assert!(rows[0]["not_handed_in"].as_array().unwrap().iter().any(|lesson| lesson == "11"), "{rows:#}");
}

#[test]
fn results_are_one_graders_until_it_has_ended() {
    let class = Class::new("taken");
    fs::create_dir(class.results()).unwrap();
    let taken = fs::File::open(class.results()).unwrap();
    rustix::fs::flock(&taken, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let late = class.grade(&LESSON_01, &[&class.student("late", PRINTS)]);
    let said = String::from_utf8_lossy(&late.stderr);
    assert!(late.status.code() == Some(3) && said.contains("name another folder with to=FOLDER"), "{said}");
    assert!(!class.results().join("grade.json").exists());
}

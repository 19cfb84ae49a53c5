//! The lessons' program in Python, lessons/in_python/rdma.py, with itself and with the lessons: each run tells the recorded story.
//! Set-up gets pyverbs (the stage `python`), and has nothing to do where it is.

use super::support::{each, target, Run, CLIENT, SERVER};
use run::story;
use std::process::Command;
use std::sync::OnceLock;
use wire::compare::Verdict;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The program as a line for the shell, after set-up has had its turn.
fn rdma_py(arguments: &str) -> String {
    static SET_UP: OnceLock<Result<(), String>> = OnceLock::new();
    let set_up = SET_UP.get_or_init(|| {
        let output = Command::new("tools/lab/setup.sh").arg("python").current_dir(ROOT).output();
        let output = output.map_err(|error| error.to_string())?;
        output.status.success().then_some(()).ok_or(String::from_utf8_lossy(&output.stderr).into_owned())
    });
    if let Err(why) = set_up {
        panic!("not run: there is no pyverbs, and `tools/lab/setup.sh python` does not get it: {why}");
    }
    let tools = target().join("tools/env").display().to_string();
    format!(". {}; exec python3 {ROOT}/lessons/in_python/rdma.py {arguments}", shlex::try_quote(&tools).unwrap())
}

/// A lesson's number, and who is in Python.
const BOTH: &str = "both";

fn run(lesson: &str, in_python: &str, options: &str) -> Run {
    let program = |side: &str, address: &str| match in_python == side || in_python == BOTH {
        true => rdma_py(&format!("{side} {address} --lesson {lesson} {options}")),
        false => {
            format!("exec {} {side} {address} {options}", target().join(format!("debug/lesson-0{lesson}")).display())
        }
    };
    Run::programs(&program(SERVER, ""), &program(CLIENT, "-a $SERVER"))
}

#[test]
fn all_lessons_tell_their_story_with_python_on_either_side_and_on_both() {
    let pairings = [BOTH, SERVER, CLIENT];
    let cases: Vec<_> =
        ('1'..='7').flat_map(|lesson| pairings.map(|in_python| (lesson.to_string(), in_python))).collect();
    each(&cases, |(lesson, in_python)| {
        let check = run(lesson, in_python, "").check().exits(0, 0);
        let report = check.compared(&story::named(&format!("0{lesson}")).unwrap());
        assert_eq!(report.verdict(), Verdict::Same, "lesson {lesson}, {in_python} in Python: {report}{}", check.all());
    });
}

/// The options of both sides, their exit statuses, and what the server and the client say.
#[test]
fn what_goes_wrong_ends_in_words_and_a_status() {
    let differ = "client and server differ in -m or --closer";
    let cases = [
        ("7", "--closer server", "", differ, differ),
        ("4", "", "--len 2000000", "1 to 1048576 are allowed", "do not fit into the other side's 0"),
        ("2", "--timeout 2", "-p 9", "waited 2 s for RDMA_CM_EVENT_CONNECT_REQUEST, in vain", "Start the server first"),
    ];
    each(&cases, |(lesson, server, client, of_server, of_client)| {
        let server = rdma_py(&format!("server --lesson {lesson} {server}"));
        let check = Run::programs(&server, &rdma_py(&format!("client -a $SERVER --lesson {lesson} {client}"))).check();
        let check = check.exits(1, 1);
        check.logs(SERVER, of_server);
        check.logs(CLIENT, of_client);
    });
}

#[test]
fn wrong_usage_and_a_python_without_pyverbs_are_told_before_anything_is_done() {
    let said = |line: &str| {
        let output = Command::new("sh").args(["-c", line]).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (status, text) = said(&rdma_py("client"));
    assert!(status == Some(2) && text.contains("-a/--address"), "{text}");
    // Neither the environment nor what is installed beside Python's own.
    let (status, text) = said(&rdma_py("server").replace("python3 ", "python3 -I -S "));
    assert!(status == Some(1) && text.contains("`tools/lab/setup.sh python`"), "{text}");
}

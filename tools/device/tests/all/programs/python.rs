//! The lessons' program in Python, lessons/in_python/rdma.py, with itself and with the lessons: each run tells the recorded story.
//! Set-up gets pyverbs (the stage `python`), and has nothing to do where it is.

use super::support::{each, target, Run, CLIENT, SERVER};
use run::story;
use std::process::Command;
use std::sync::OnceLock;
use wire::compare::Verdict;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The program as a line for the shell.
fn rdma_py(arguments: &str) -> String {
    in_python("rdma.py", arguments)
}

/// A program as a line for the shell, after set-up has had its turn.
fn in_python(program: &str, arguments: &str) -> String {
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
    format!(". {}; exec python3 {ROOT}/lessons/in_python/{program} {arguments}", shlex::try_quote(&tools).unwrap())
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

/// As pyverbs is where a later Cython has built it.
#[test]
fn a_number_is_found_that_stands_in_its_type_alone() {
    let script = "import enum, types, more; kind = enum.IntEnum('ibv_qp_type', {'IBV_QPT_RC': 2}); \
                  made = more.numbers(types.SimpleNamespace(ibv_qp_type=kind, RAI_PASSIVE=1)); \
                  print(made.IBV_QPT_RC == 2, made.ibv_qp_type(2).name, made.RAI_PASSIVE, more.ib.IBV_QPT_RC == 2)";
    let line = in_python("rdma.py", "--help > /dev/null").replace("exec ", "");
    let line = format!("{line}; cd {ROOT}/lessons/in_python && exec python3 -c \"{script}\"");
    let output = Command::new("bash").args(["-c", &line]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.trim(), "True IBV_QPT_RC 1 True", "{output:?}");
}

/// Lesson 11 is a program of its own.
#[test]
fn datagrams_are_the_same_in_python() {
    let python = |options: &str| in_python("datagrams.py", options);
    let rust = |options: &str| format!("exec {} {options}", target().join("debug/lesson-11").display());
    let (server, client) = ("server", "client -a $SERVER");
    let pairings = [(python(server), python(client)), (python(server), rust(client)), (rust(server), python(client))];
    each(&pairings, |(server, client)| {
        let check = Run::programs(server, client).check().exits(0, 0);
        check.logs(CLIENT, "request 2: 20 coins are in the box");
        assert_eq!(check.packets_named("UD Send Only"), 6, "two requests, a goodbye, and answers: {}", check.all());
    });
}

/// What both sides say, and their exit statuses.
#[test]
fn what_goes_wrong_ends_in_words_and_a_status() {
    let differ = "client and server differ in -m or --closer";
    let server = |options: &str| rdma_py(&format!("server --lesson {options}"));
    let client = |options: &str| rdma_py(&format!("client -a $SERVER --lesson {options}"));
    // One that comes after it ends the server: nobody's patience must be longer than a program needs to begin.
    let knocks = format!("({}); said=$?; lesson-02 client -a $SERVER; exit $said", client("2 -p 9"));
    let cases = [
        (server("7 --closer server"), client("7"), (1, 1), differ, differ),
        (
            server("4"),
            client("4 --len 2000000"),
            (1, 1),
            "1 to 1048576 are allowed",
            "do not fit into the other side's 0",
        ),
        (
            server("2 --timeout 2"),
            "echo no knock".into(),
            (1, 0),
            "waited 2 s for RDMA_CM_EVENT_CONNECT_REQUEST, in vain",
            "no knock",
        ),
        ("lesson-02 server --timeout 60".into(), knocks, (0, 1), "", "Start the server first"),
    ];
    each(&cases, |(server, client, (of_server, of_client), server_says, client_says)| {
        let check = Run::programs(server, client).check().exits(*of_server, *of_client);
        check.logs(SERVER, server_says);
        check.logs(CLIENT, client_says);
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

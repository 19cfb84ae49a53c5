//! The lessons in C (`lessons/in_c`): on both sides, and each side with the lesson in Rust on the other. Each run ends well and
//! puts the packets of the lesson's recorded run on the wire.

use super::support::{each, programs, target, Check, CLIENT, SERVER};
use run::story::{self, Story};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use wire::compare::Verdict;

/// The program, built by its Makefile.
pub(super) fn in_c() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lessons/in_c").canonicalize().unwrap();
        let made = Command::new("make").arg("-C").arg(&folder).output().expect("`make` builds the lessons in C");
        let said = String::from_utf8_lossy(&[made.stdout, made.stderr].concat()).into_owned();
        assert!(
            made.status.success(),
            "the lessons in C cannot be built. They need a C compiler and rdma-core's headers, which `make setup` gets, \
             and `. target/tools/env` shows to the compiler:\n{said}"
        );
        folder.join("rdma").display().to_string()
    })
}

/// A lesson in Rust.
fn in_rust(number: &str) -> String {
    target().join(format!("debug/lesson-{number}")).display().to_string()
}

/// The program and the options of one side; the client's have the server's address.
fn side(program: &str, side: &str, options: &str) -> String {
    let address = if side == CLIENT { "-a $SERVER" } else { "" };
    format!("{} {side} {address} {options}", shlex::try_quote(program).unwrap())
}

/// Both sides in C, or one of them: each with the lesson's number, and the options of its own.
fn pairings(number: &str, [server, client]: [&str; 2]) -> [Check; 3] {
    let c = |role, options| side(in_c(), role, &format!("--lesson {} {options}", number.trim_start_matches('0')));
    let rust = |role, options| side(&in_rust(number), role, options);
    [
        programs(&c(SERVER, server), &c(CLIENT, client)),
        programs(&c(SERVER, server), &rust(CLIENT, client)),
        programs(&rust(SERVER, server), &c(CLIENT, client)),
    ]
}

/// The recorded ways of the lessons that the program has: all but metadata in private data, and the puzzle.
fn stories() -> Vec<Story> {
    let is_part_one = |story: &Story| story.number() <= "07";
    let is_known = |story: &Story| !["--metadata", "--puzzle"].iter().any(|option| story.client.contains(option));
    story::bundled().unwrap().into_iter().filter(|story| is_part_one(story) && is_known(story)).collect()
}

#[test]
fn every_lesson_is_the_same_in_c() {
    let stories = stories();
    assert_eq!(stories.len(), 10, "the seven lessons, a long WRITE, READ in lesson 06, and the server as closer");
    each(&stories, |story| {
        for (check, pairing) in pairings(story.number(), [&story.server, &story.client]).into_iter().zip(1..) {
            let (check, name) = (check.exits(0, 0), format!("{}, pairing {pairing}", story.file_name()));
            let report = check.compared(story);
            assert_eq!(report.verdict(), Verdict::Same, "{name}: {report}\n{}", check.all());
        }
    });
}

/// Lesson 11 is a program of its own, which says as much.
#[test]
fn datagrams_are_the_same_in_c() {
    let (in_c, in_rust) = (format!("{}datagrams", in_c().trim_end_matches("rdma")), in_rust("11"));
    each(&[[&in_c, &in_c], [&in_c, &in_rust], [&in_rust, &in_c]], |[server, client]| {
        let check = programs(&side(server, SERVER, ""), &side(client, CLIENT, "")).exits(0, 0);
        check.logs(CLIENT, "request 2: 20 coins are in the box");
        assert_eq!(check.packets_named("UD Send Only"), 6, "two requests, a goodbye, and answers: {}", check.all());
    });
}

#[test]
fn it_says_what_went_wrong() {
    // What the client is given, how it ends, and what it says.
    const ALONE: &[(&str, i32, &str)] = &[
        ("--lesson 1", 1, "with status 8 (nobody listens on that port"),
        ("--lesson 4", 1, "waited for RDMA_CM_EVENT_ESTABLISHED, got RDMA_CM_EVENT_REJECTED with status 8"),
        ("-a nowhere.invalid", 1, "no address for the host \"nowhere.invalid\""),
        ("--lesson 8", 2, "a lesson is a number from 1 to 7"),
        ("--lesson 4 -m read", 2, "-m is write or read, from lesson 6 on"),
        ("-n 2", 2, "-n is a number, and the server's"),
        ("-s text --len 5", 2, "either a text or a length"),
        ("something", 2, "one word is given, server or client"),
    ];
    // The server listens on another port, until the client has ended.
    let folder = std::env::temp_dir().join(format!("device-in-c-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    each(ALONE, |(options, status, says)| {
        let ended = folder.join(options.replace([' ', '"', '.'], "")).display().to_string();
        let elsewhere = side(in_c(), SERVER, "-p 4711");
        let elsewhere = format!("{elsewhere} & while [ ! -e {ended} ]; do sleep 0.05; done; kill $!");
        let client = format!("{}; status=$?; touch {ended}; exit $status", side(in_c(), CLIENT, options));
        programs(&elsewhere, &client).exits(0, *status).logs(CLIENT, says);
    });
    std::fs::remove_dir_all(folder).unwrap();
    for check in pairings("07", ["-m read", "-m write"]) {
        let check = check.exits(1, 1);
        check.logs(SERVER, "client and server differ in -m or --closer");
        check.logs(CLIENT, "client and server differ in -m or --closer");
    }
    // What is too long is refused by the server, in words that both sides understand.
    for check in pairings("04", ["", "--len 1048577"]) {
        let check = check.exits(1, 1);
        check.logs(CLIENT, "do not fit into the other side's");
    }
}

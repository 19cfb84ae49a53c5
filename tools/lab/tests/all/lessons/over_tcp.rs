//! Lessons on Linux's SoftiWARP: the same programs, with RDMA inside TCP. The module comes from `tools/lab/setup.sh siw`.

use crate::support::{lab, Check, Run, CLIENT, SERVER};
use testkit::tshark;

/// So often each lesson is run.
const ROUNDS: usize = 5;

/// A lesson, the client's options, and what the log of a side says once the result is right.
const LESSONS: [(&str, &str, &str, &str); 7] = [
    ("02", "", CLIENT, "client clean-up is complete"),
    ("03", "", CLIENT, "client clean-up is complete"),
    ("04", "", SERVER, "the memory holds 60 bytes: \"One side writes, and the other side's processor never knows.\""),
    ("05", "", CLIENT, "SUCCESS, source and destination buffers match"),
    ("05", "--len 5000", CLIENT, "SUCCESS, source and destination buffers match"),
    ("06", "", CLIENT, "the memory holds 4096 bytes: \"One side writes, and the other side's processor never knows.\""),
    ("07", "", CLIENT, "client clean-up is complete"),
];

fn over_tcp(run: Run) -> Run {
    run.with("driver", "siw")
}

/// The units that end in frames, in their order, each with C or S for the side that sent it.
fn units(check: &Check) -> Vec<String> {
    let mut units = Vec::new();
    check.each_event(|event| {
        let run::file::Event::Packet(sighting) = event else { return };
        for unit in sighting.iwarp().iter().flat_map(|brought| &brought.units) {
            let from_client = sighting.iwarp().is_some_and(|brought| brought.from_client);
            units.push(format!("{} {}", if from_client { 'C' } else { 'S' }, unit.kind.name()));
        }
    });
    units
}

#[test]
#[ignore = "takes long: make test-long group=siw"]
fn over_tcp_the_lessons_end_well_and_tshark_reads_the_same() {
    for round in 1..=ROUNDS {
        for (number, client, side, said) in LESSONS {
            let check = over_tcp(Run::lesson(number, "", client)).check().exits(0, 0);
            check.logs(side, said);
            let units = tshark::iwarp::agree(&check.file);
            assert!(units >= 2, "{units} units: {}", check.all());
            println!("round {round}: lesson {number} {client}: {units} units agree with tshark");
        }
    }
}

/// The same four operations as over RoCE, and none of RoCE's acknowledgements.
#[test]
#[ignore = "takes long: make test-long group=siw"]
fn over_tcp_lesson_05_sends_these_units() {
    let check = over_tcp(Run::lesson("05", "", "")).check().exits(0, 0);
    let expected = [
        "C MPA Request",
        "S MPA Reply",
        "C RDMAP Send",
        "S RDMAP Send",
        "C RDMAP Write",
        "C RDMAP Read Request",
        "S RDMAP Read Response",
    ];
    assert_eq!(units(&check), expected);
    // What siw leaves undefined isn't shown as if it meant something.
    let states: Vec<&String> = check.node(CLIENT).log.iter().filter(|line| line.contains(" QP: qpn=")).collect();
    assert!(!states.is_empty() && states.iter().all(|line| line.contains(" state=unknown")), "{states:?}");
    assert!(states.iter().any(|line| line.contains(" sq_psn=unknown ")), "{states:?}");
}

/// The wire loses a WRITE: RDMA doesn't notice, because TCP sends it again.
#[test]
#[ignore = "takes long: make test-long group=siw"]
fn over_tcp_what_is_lost_is_sent_again_by_tcp() {
    let run = over_tcp(Run::lesson("05", "", "")).with("wire", "drop 1st \"RDMAP Write\"");
    let check = run.check().exits(0, 0);
    check.logs(CLIENT, "SUCCESS, source and destination buffers match");
    let mut again = 0;
    check.each_event(|event| {
        if let run::file::Event::Packet(sighting) = event {
            again += usize::from(sighting.iwarp().is_some_and(|brought| brought.from_client && brought.again));
        }
    });
    assert!(again > 0, "nothing was sent again: {}", check.all());
}

#[test]
#[ignore = "takes long: make test-long group=siw"]
fn over_tcp_what_iwarp_cannot_do_is_named() {
    // A listener at every address turns IPv4 away, and the client says what to do.
    let run = over_tcp(Run::lesson("05", "-a :: --timeout 5", "")).check();
    assert!(run.node(CLIENT).exit == Some(1), "{}", run.all());
    assert!(run.line(CLIENT, "] ERR  ").contains("start the server with -a and its IPv4 address"), "{}", run.all());
}

/// It takes no machine to know that.
#[test]
fn lessons_that_cannot_run_over_tcp_say_why() {
    for (lesson, words) in [
        ("lesson-01", "knocks without one"),
        ("lesson-08", "queue pairs that a program moves by hand"),
        ("lesson-11", "datagrams"),
        ("lesson-13", "immediate data"),
    ] {
        let output = lab().args(["run", lesson, "--driver", "siw"]).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains("can't run on SoftiWARP") && errors.contains(words), "{errors}");
    }
}

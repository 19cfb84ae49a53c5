//! The reference: each run that is bundled in captures/, run again on the kernel's rdma_rxe. It tells the same story, in its
//! exit statuses, log lines and packets, and leaves nothing behind. And what a lesson says where only a machine with a kernel
//! can be wrong. More of each lesson's options are tried on the device in user space (tools/device/tests/all/programs/variants.rs).

use crate::support::{assert_nothing_left_open, each, Run, CLIENT, SERVER};
use run::story::{self, proof, Story};
use wire::compare::Verdict;

#[test]
fn every_lesson_tells_its_story() {
    let tell = |story: &Story| {
        let run = Run::lesson(story.number(), &story.server, &story.client);
        let run = run.with("clients", &story.clients.to_string()).with("inspect", "/usr/bin/rdma resource show");
        let run = if story.wire.is_empty() { run } else { run.with("wire", &story.wire) };
        let (name, check) = (story.file_name(), run.check());
        let report = check.compared(story);
        assert_eq!(report.verdict(), Verdict::Same, "{name}: {report}");
        let problems = proof::problems(story, &std::fs::read(&check.file).unwrap());
        assert!(problems.is_empty(), "{name}: {problems:#?}\n{}", check.all());
        check.outcome.inspected.keys().for_each(|node| assert_nothing_left_open(&check, node));
    };
    // Several clients are several machines already.
    let of_lab = story::bundled().unwrap().into_iter().filter(|story| !story.device);
    let (crowds, pairs): (Vec<_>, Vec<_>) = of_lab.partition(|story| story.clients > 1);
    each(&pairs, tell);
    crowds.iter().for_each(tell);
}

#[test]
fn lesson_05_works_over_ipv6() {
    let check = Run::lesson("05", "-p 4711", "-a fd47:91::1 -p 4711 --len 5000").check().exits(0, 0);
    check.logs(SERVER, "[fd47:91::2]");
    check.logs(CLIENT, "SUCCESS, source and destination buffers match");
}

/// One program alone, and what it says is wrong and to do.
const WRONG: [(&str, &str, [&str; 2]); 3] = [
    (
        CLIENT,
        "lesson-02 client -a 10.47.91.77 --timeout 4",
        ["got RDMA_CM_EVENT_ADDR_ERROR", "Nobody answers at that address"],
    ),
    (
        SERVER,
        "lesson-02 server -a 10.47.91.1 & one=$!; sleep 2; lesson-02 server -a 10.47.91.1; status=$?; kill $one; exit $status",
        ["EADDRINUSE", "Another program listens there"],
    ),
    (
        SERVER,
        "/usr/bin/rdma link delete rxe0; lesson-02 server",
        ["rdma_create_event_channel failed: ENODEV", "sudo tools/lab/softroce.sh up"],
    ),
];

#[test]
#[ignore = "takes long: make test-long"]
fn faults_of_the_surroundings_are_named_with_the_next_step() {
    each(&WRONG, |(side, command, says)| {
        let check = Run::programs().with(side, command).check();
        assert_eq!(check.node(side).exit, Some(1), "{}", check.all());
        says.iter().for_each(|text| check.logs(side, text));
    });
}

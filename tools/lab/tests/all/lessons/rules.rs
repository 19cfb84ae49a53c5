//! Wire rules in the lab: its switch does as they say, and rdma_rxe does about it what the standard promises. Each act on a
//! packet, and more of what comes of it, is tried on the device in user space (tools/device/tests/all/programs: rules.rs, faults.rs).

use crate::support::{lab, Outcome, Run, CLIENT, SERVER};
use testkit::ran::ruled::Ruled;

/// Both sides end with these statuses.
fn ruled(number: &str, server: &str, client: &str, rules: &str, exits: [i32; 2]) -> Ruled<Outcome> {
    Ruled::of(Run::lesson(number, server, client).with("wire", rules).check().exits(exits[0], exits[1]))
}

/// The answer comes, but later than the client waits for it.
#[test]
fn a_late_answer_is_asked_for_again() {
    let run = ruled("05", "--timeout 60", "--timeout 60", "delay 1st \"RDMA Read Response Only\" by 900 ms", [0, 0]);
    run.is_sent_again(CLIENT, "RC RDMA Read Request", "");
    assert!(run.named(SERVER, "RC RDMA Read Response Only").len() > 1);
    let late = &run.named(SERVER, "RC RDMA Read Response Only")[0];
    assert_eq!(late.number + 1, run.lines[0].number);
    let end = &run.lines[1].text;
    assert!(["goes on", "is still held back, and the run is over"].iter().any(|words| end.contains(words)), "{end}");
    run.check.logs(CLIENT, "SUCCESS, source and destination buffers match");
}

/// Both sides know after a while, each in its own way.
#[test]
#[ignore = "takes long: make test-long"]
fn a_cable_that_is_cut_ends_a_connection_in_words() {
    let run = ruled("04", "--timeout 5", "--timeout 20", "cut 1st \"RC RDMA Write Only\"", [1, 1]);
    run.check.logs(CLIENT, "completed with IBV_WC_RETRY_EXC_ERR");
    run.check.logs(SERVER, "waited 5 s for RDMA_CM_EVENT_DISCONNECTED");
    let writes = run.named(CLIENT, "RC RDMA Write Only");
    assert!(writes.len() > 6 && writes.iter().all(|sent| sent.psn == writes[0].psn), "{:?}", run.packets);
    assert!(writes[1..].iter().all(|sent| sent.comment == "lab: dropped, as the cable of client is cut"));
}

#[test]
fn a_rule_that_meets_no_packet_is_told_and_is_no_success() {
    let lab = |rules: &str| {
        let output = lab().args(["run", "02", "--wire", rules]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (status, printed, errors) = lab("drop 2nd REQ");
    assert_eq!(status, Some(1), "{printed}{errors}");
    assert!(printed.contains("exit:     server 0, client 0\n"), "{printed}");
    assert!(printed.contains("trouble:  the rule `drop 2nd REQ` never met its packet\n"), "{printed}");
    let (status, printed, errors) = lab("drop 2nd REQ from sever");
    assert_eq!((status, printed.as_str()), (Some(2), ""), "{errors}");
    assert!(errors.contains("^^^^^\nthe nodes are: server, client"), "{errors}");
}

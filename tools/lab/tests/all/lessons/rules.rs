//! Wire rules in the lab: its switch does as they say, and rdma_rxe does about it what the standard promises. Each act on a
//! packet, and more of their effects, are tried on the device in user space (tools/device/tests/all/programs: rules.rs, faults.rs).

use crate::support::{lab, Run, CLIENT, SERVER};
use testkit::ran::ruled::Ruled;

/// The answer comes, but later than the client waits for it.
#[test]
fn a_late_answer_is_asked_for_again() {
    let rule = "delay 1st \"RDMA Read Response Only\" by 900 ms";
    let run = Run::lesson("05", "--timeout 60", "--timeout 60").with("wire", rule);
    let run = Ruled::of(run.check().exits(0, 0));
    run.is_sent_again(CLIENT, "RC RDMA Read Request", "");
    assert!(run.named(SERVER, "RC RDMA Read Response Only").len() > 1);
    let late = &run.named(SERVER, "RC RDMA Read Response Only")[0];
    assert_eq!(late.number + 1, run.lines[0].number);
    let end = &run.lines[1].text;
    assert!(["goes on", "is still held back, and the run is over"].iter().any(|words| end.contains(words)), "{end}");
    run.check.logs(CLIENT, "SUCCESS, source and destination buffers match");
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

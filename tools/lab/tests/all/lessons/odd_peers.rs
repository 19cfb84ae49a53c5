//! A peer without manners (common/examples/odd_peer.rs) on the kernel's driver: what it does to a lesson is refused by the
//! device, or said for it by its kernel when it ends without a word, and nothing is left open. Many more of its manners are
//! tried on the device in user space (tools/device/tests/all/programs/odd_peers.rs).

use crate::support;

use crate::support::{check, each, example, programs};
use lab::{Run, CLIENT, SERVER};

/// The lesson ends with an error that says this, in time, and leaves nothing open.
fn judge(run: Run, lesson: &str, says: &str) {
    let check = check(run.inspect("/usr/bin/rdma resource show"));
    assert_eq!(check.node(lesson).exit, Some(1), "{}", check.all());
    check.logs_in_order(lesson, &["] ERR  ", "the stages so far: main → "]);
    assert!(check.line(lesson, "] ERR  ").contains(says), "not {says:?}: {}", check.all());
    support::assert_nothing_left_open(check.outcome.node(lesson), &check.all());
}

#[test]
#[ignore = "takes long: make test-long"]
fn what_rxe_refuses_and_what_the_kernel_says_for_a_peer_that_has_gone() {
    let peer = example("odd_peer");
    let cases = [
        (SERVER, "04", "send=ff*500 sleep=1000", "completed with IBV_WC_LOC_"),
        // A WRITE that the server's device turns away moves the server's QP to ERR: its receive never completes.
        (SERVER, "04", "write=555555555000,dead,00*8 sleep=1000", "last stage wait_for: "),
        (CLIENT, "04", "send=00005555555550000000dead00001000 sleep=1500", "IBV_WC_REM_ACCESS_ERR"),
        (CLIENT, "06", "sleep=1", "the connection ended in the state"),
    ];
    each(&cases, |&(side, number, steps, says)| {
        let run = match side {
            SERVER => {
                programs(&format!("lesson-{number} server --timeout 5"), &format!("{peer} client 10.47.91.1 {steps}"))
            }
            _ => programs(
                &format!("{peer} server {steps}"),
                &format!("lesson-{number} client -a 10.47.91.1 --timeout 5"),
            ),
        };
        judge(run, side, says);
    });
}

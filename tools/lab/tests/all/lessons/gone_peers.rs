//! The peer goes away: its program is killed, or its machine loses its power. The survivor ends in time, says what it was waiting
//! for, and leaves nothing open.
//!
//! A killed program is not silent: its kernel disconnects for it. A machine without power is, and what the survivor makes of silence
//! at each stage is tried on the device in user space (tools/device/tests/all/programs/gone.rs), where it costs no machine.

use crate::support::{assert_nothing_left_open, Run, CLIENT, SERVER};

/// What must be the same before and after: RDMA resources, and the survivor's processes.
const SHOW: &str = "/usr/bin/rdma resource show; ps | grep -c [l]esson";
/// The device's own verdict on a request that nobody answers, after 7 times 0.54 s or some more.
const RETRIES: &str = "completed with IBV_WC_RETRY_EXC_ERR";
const HUNG_UP: &str = "RDMA_CM_EVENT_DISCONNECTED instead of";
const ENDED: &str = "the connection ended in the state";

/// A lesson; whose program is killed, and when any log line has this in it; and what the other one says.
const KILLED: [(&str, &str, &str, &str); 7] = [
    ("06", CLIENT, "MrReceived →", ENDED),
    ("02", CLIENT, "SLOW  rdma_accept", "waited for RDMA_CM_EVENT_ESTABLISHED, got RDMA_CM_EVENT_REJECTED"),
    ("03", SERVER, "ibv_post_send SEND wr_id=2", HUNG_UP),
    ("05", SERVER, "ibv_post_send RDMA_READ", HUNG_UP),
    ("06", SERVER, "MrReceived →", ENDED),
    ("07", CLIENT, "MrReceived →", ENDED),
    ("07", SERVER, "MrReceived →", ENDED),
];

/// The one that is left fails with this error, and leaves nothing open.
fn survives(lesson: &str, fault: &str, survivor: &str, says: &str) {
    let run = Run::lesson(lesson, "--timeout 30", "--timeout 30").with("fault", fault);
    let check = run.with("inspect", SHOW).check();
    assert_eq!(check.node(survivor).exit, Some(1), "{}", check.all());
    assert!(check.line(survivor, "] ERR  ").contains(says), "not {says:?}: {}", check.all());
    check.logs(survivor, "the stages so far: main → ");
    assert_nothing_left_open(&check, survivor);
}

fn survives_the_killed((lesson, victim, when, says): (&str, &str, &str, &str)) {
    let survivor = if victim == CLIENT { SERVER } else { CLIENT };
    survives(lesson, &format!("kill {victim} when {when}"), survivor, says);
}

#[test]
fn the_program_is_killed() {
    survives_the_killed(KILLED[0]);
}

#[test]
#[ignore = "takes long: make test-long"]
fn the_program_is_killed_elsewhere() {
    KILLED[1..].iter().for_each(|case| survives_the_killed(*case));
}

#[test]
fn the_machine_loses_its_power() {
    survives("04", "power-off server when ibv_post_send RDMA_WRITE", CLIENT, RETRIES);
}

//! The peer goes away at each stage: its program is killed, or its machine loses its power. The survivor ends in time,
//! says what it was waiting for, and leaves nothing open.
//!
//! A killed program is not silent: its kernel disconnects, or rejects, for it. A machine without power is: then only the
//! survivor's deadline (5 s here, which even a slow machine does not need otherwise) ends the wait. What the survivor makes of
//! silence at each stage is tried on the device in user space (tools/device/tests/all/programs/gone.rs), where it costs no machine.

use crate::support;

use crate::support::{check, run_of};
use lab::{CLIENT as Client, SERVER as Server};
use run::file::Event;

/// What must be the same before and after: RDMA resources, and the survivor's processes.
const SHOW: &str = "/usr/bin/rdma resource show; ps | grep -c [l]esson";

/// How long after the fault the survivor may live: its deadline of 5 s, and time for a loaded machine to be slow in.
const SOON: u64 = 60;

struct Case {
    lesson: &'static str,
    /// Who goes away.
    victim: &'static str,
    /// When any log line has this in it.
    when: &'static str,
    /// What the survivor says if the power went: one of these. What the victim sent in the last moment is lost with its
    /// power, and that may be what the survivor needed to get as far as the first of them.
    without_power: &'static [&'static str],
    /// What it says if the program was killed: one of these, as the signal may strike before or after the next call. Nothing
    /// where that is no test: what the victim's kernel says for it may be all that the survivor was waiting for.
    killed: &'static [&'static str],
}

fn survive(case: &Case, kill: bool) {
    // Only silence lasts until the deadline; a loaded machine may take a while to start the other side, and for all retries.
    let timeout = if kill || case.without_power == [RETRIES] { "--timeout 30" } else { "--timeout 5" };
    let run = run_of(case.lesson, timeout, timeout).inspect(SHOW);
    let run = match kill {
        true => run.kill_when(case.victim, case.when),
        false => run.power_off_when(case.victim, case.when),
    };
    let check = check(run);
    let survivor = if case.victim == Client { Server } else { Client };
    let ended = check.outcome.node(survivor);
    let what = format!("lesson {}, {} gone at {:?}, killed: {kill}", case.lesson, case.victim, case.when);
    let what = format!("{what}\n{}", ended.log.join("\n"));
    let expected = if kill { case.killed } else { case.without_power };
    assert_eq!(ended.exit, Some(1), "{what}");
    let error = check.line(survivor, "] ERR  ");
    assert!(expected.iter().any(|says| error.contains(says)), "none of {expected:?}: {what}");
    check.logs(survivor, "the stages so far: main → ");
    support::assert_nothing_left_open(ended, &what);
    let mut last = std::collections::HashMap::new();
    let mut note = |node: &str, time| {
        last.insert(node.to_owned(), time);
    };
    check.each_event(|event| match event {
        Event::Line(line) => note(&line.node, line.time_us / 1_000_000),
        Event::Packet(packet) => note(packet.node.unwrap(), packet.time_ns.unwrap() / 1_000_000_000),
    });
    let alone = last[survivor].saturating_sub(last[case.victim]);
    assert!(alone < SOON, "the survivor lived for {alone} s: {what}");
}

/// Shorthand for the tables below.
const fn gone(
    lesson: &'static str,
    victim: &'static str,
    when: &'static str,
    without_power: &'static [&'static str],
    killed: &'static [&'static str],
) -> Case {
    Case { lesson, victim, when, without_power, killed }
}

const KNOCK: &str = " s for a client's connect request";
const ESTABLISHED: &str = "waited 5 s for RDMA_CM_EVENT_ESTABLISHED";
const DISCONNECTED: &str = "waited 5 s for RDMA_CM_EVENT_DISCONNECTED";
const RECV: &str = "waited 5 s for the completion of work request 1 (a RECV with the peer's metadata)";
/// The device's own verdict on a request that nobody answers, after 7 times 0.54 s or some more.
const RETRIES: &str = "completed with IBV_WC_RETRY_EXC_ERR";
const STATE: &str = "waited 5 s for a completion in the state SS_";
const REJECTED: &str = "waited for RDMA_CM_EVENT_ESTABLISHED, got RDMA_CM_EVENT_REJECTED";
const HUNG_UP: &str = "RDMA_CM_EVENT_DISCONNECTED instead of";
const ENDED: &str = "the connection ended in the state";

/// What `make test` tries.
const KILLED: Case = gone("06", Client, "MrReceived →", &[STATE, RETRIES], &[ENDED]);
const WITHOUT_POWER: Case = gone("04", Server, "ibv_post_send RDMA_WRITE", &[RETRIES], &[HUNG_UP]);

const OTHERS: [Case; 16] = [
    gone("02", Client, "SLOW  rdma_accept", &[ESTABLISHED], &[REJECTED]),
    gone("02", Client, "SLOW  rdma_connect", &[KNOCK], &["failed: ", KNOCK, REJECTED]),
    gone("02", Server, "CM event: CONNECT_REQUEST", &[ESTABLISHED], &[]),
    gone("02", Client, "SLOW  rdma_disconnect", &[DISCONNECTED, ESTABLISHED], &[]),
    gone("02", Server, "SLOW  rdma_disconnect", &[DISCONNECTED], &[]),
    gone("03", Client, "ibv_post_send SEND wr_id=2", &[RECV, ESTABLISHED, RETRIES], &[]),
    gone("03", Server, "ibv_post_send SEND wr_id=2", &[RETRIES], &[HUNG_UP]),
    gone("04", Client, "ibv_post_send RDMA_WRITE", &[DISCONNECTED, RETRIES], &[]),
    gone("05", Client, "ibv_post_send RDMA_READ", &[DISCONNECTED, RETRIES], &[]),
    gone("05", Server, "ibv_post_send RDMA_READ", &[RETRIES], &[HUNG_UP]),
    gone("06", Server, "MrReceived →", &[STATE, RETRIES], &[ENDED]),
    gone("06", Client, "ibv_post_send RDMA", &[STATE, RETRIES], &[ENDED]),
    gone("07", Client, "MrReceived →", &[STATE, RETRIES], &[ENDED]),
    gone("07", Server, "MrReceived →", &[STATE, RETRIES], &[ENDED]),
    gone("07", Client, "SLOW  rdma_disconnect", &[DISCONNECTED, STATE, RETRIES], &[]),
    gone("07", Server, "SLOW  rdma_disconnect", &[DISCONNECTED, RETRIES], &[]),
];

/// Its kernel disconnects for it.
#[test]
fn the_program_is_killed() {
    survive(&KILLED, true);
}

#[test]
fn the_machine_loses_its_power() {
    survive(&WITHOUT_POWER, false);
}

#[test]
#[ignore = "takes long: make test-long"]
fn at_every_other_stage() {
    survive(&WITHOUT_POWER, true);
    for case in [KILLED].iter().chain(&OTHERS) {
        survive(case, false);
        if !case.killed.is_empty() {
            survive(case, true);
        }
    }
}

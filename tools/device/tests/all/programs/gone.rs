//! A peer is gone: from one packet on nothing of it comes, as when its machine loses its power, or its program is killed, for with
//! it goes its device. Whoever is left fails in time and says what it was waiting for. That nobody hangs at whatever packet, shows
//! faults.rs.

use super::support::{each, Run, CLIENT, SERVER};

const KNOCK: &str = "waited 5 s for a client's connect request";
const ESTABLISHED: &str = "waited 5 s for RDMA_CM_EVENT_ESTABLISHED";
const DISCONNECTED: &str = "waited 5 s for RDMA_CM_EVENT_DISCONNECTED";
const RECV: &str = "waited 5 s for the completion of work request 1 (a RECV with the peer's metadata)";
/// The device's own verdict on a request that nobody answers: after 7 times 0.54 s, and on a busy machine some more.
const RETRIES: &str = "completed with IBV_WC_RETRY_EXC_ERR";
const STATE: &str = "waited 5 s for a completion in the state SS_";

/// A lesson; the packet with which the cable breaks; and what the server and the client say of it: one of these, or nothing if
/// they have heard all that they wait for. In 06 and 07 both send, and each may wait for the other or find it out by itself.
type Case = (&'static str, &'static str, &'static [&'static str], &'static [&'static str]);

const CASES: [Case; 16] = [
    ("02", "1st REQ", &[KNOCK], &[ESTABLISHED]),
    ("02", "1st REP", &[ESTABLISHED], &[ESTABLISHED]),
    ("02", "1st RTU", &[ESTABLISHED], &[DISCONNECTED]),
    ("02", "1st DREQ", &[DISCONNECTED], &[DISCONNECTED]),
    ("02", "1st DREP", &[], &[DISCONNECTED]),
    ("03", "1st \"RC Send Only\" from client", &[RECV, RETRIES], &[RETRIES]),
    ("03", "1st \"RC Send Only\" from server", &[RETRIES], &[RECV, RETRIES]),
    ("04", "1st \"RC RDMA Write Only\"", &[DISCONNECTED], &[RETRIES]),
    ("04", "2nd \"RC Acknowledge\" from server", &[DISCONNECTED], &[RETRIES]),
    ("05", "1st \"RC RDMA Read Request\"", &[DISCONNECTED], &[RETRIES]),
    ("05", "1st \"RC RDMA Read Response Only\"", &[DISCONNECTED], &[RETRIES]),
    ("06", "1st \"RC Send Only\" from client", &[STATE, RETRIES], &[RETRIES]),
    ("06", "1st \"RC RDMA Write Only\" from server", &[RETRIES], &[STATE, RETRIES]),
    ("06", "2nd \"RC Send Only\" from server", &[RETRIES], &[STATE, RETRIES]),
    ("07", "1st \"RC RDMA Write Only\" from client", &[STATE, RETRIES], &[RETRIES]),
    ("07", "1st DREQ", &[DISCONNECTED], &[DISCONNECTED]),
];

#[test]
fn a_peer_that_falls_silent_is_missed_in_words() {
    each(&CASES, |(lesson, packet, server, client)| {
        let limit = |says: &[&str]| if says == [RETRIES] { "--timeout 30" } else { "--timeout 5" };
        let check = Run::lesson(lesson, limit(server), limit(client)).wire(&format!("cut {packet}")).check();
        for (node, says) in [(SERVER, server), (CLIENT, client)] {
            let what = format!("lesson {lesson}, cut {packet}: {}", check.all());
            assert_eq!(check.node(node).exit, Some(i32::from(!says.is_empty())), "{node}: {what}");
            if !says.is_empty() {
                let error = check.line(node, "] ERR  ");
                assert!(says.iter().any(|text| error.contains(text)), "{node}, none of {says:?}: {what}");
                check.logs(node, "the stages so far: main → ");
            }
        }
    });
}

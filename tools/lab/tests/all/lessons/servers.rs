//! A server outlives its clients, whatever they do, and holds no more than before. That is counted while the server runs, before
//! each client: RDMA resources, descriptors, memory. What it says of each is tried on the device (tools/device/tests/all/programs).

use crate::support::served::{self, WAITS};
use crate::support::{assert_nothing_left_open, example, Run, CLIENT, SERVER};

/// What clients of lesson 05 do: three of ten are served well.
const MANNERS: [&str; 10] = [
    "lesson-05 client -a 10.47.91.1",
    "odd_peer client 10.47.91.1 send=0102 sleep=100",
    "odd_peer client 10.47.91.1 close",
    "lesson-05 client -a 10.47.91.1 --len 5000",
    "odd_peer client 10.47.91.1 send=0000000000001000000003e800200000 sleep=100",
    "odd_peer client 10.47.91.1 write=555555555000,dead,00*8 sleep=100",
    "odd_peer client 10.47.91.1 sleep=1",
    "lesson-05 client -a 10.47.91.1 --metadata private-data",
    "odd_peer client 10.47.91.1 send=ff*500 sleep=100",
    "lesson-05 client -a 10.47.91.1 -s 'the last one'",
];
const CLIENTS: usize = 1000;
/// What the kernel holds for itself, in KiB, behind the RDMA resources.
const SLAB: &str = "sed -n 's/SUnreclaim: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo";

#[test]
#[ignore = "takes long: make test-long"]
fn soak() {
    let clients: Vec<&str> = MANNERS.into_iter().cycle().take(CLIENTS).collect();
    let server = format!("lesson-05 server -n {CLIENTS} --timeout 40 --stages wait_connect_request");
    let run = served::run(&server, WAITS, &clients).with("deadline", "10800");
    let mut check = run.with("inspect", &format!("/usr/bin/rdma resource show; {SLAB}")).check().exits(1, 0);
    check.logs(SERVER, &format!("{} of {CLIENTS} clients could not be served", CLIENTS * 7 / 10));
    served::assert_nothing_grows(&check, CLIENTS);
    for node in [SERVER, CLIENT] {
        let inspected = check.outcome.inspected.get_mut(node).unwrap();
        let [before, after] = inspected.each_mut().map(|lines| lines.pop().unwrap().parse::<u64>().unwrap());
        assert_nothing_left_open(&check, node);
        // A connection's smallest kernel object is bigger than a kilobyte, so a leak of one each would exceed this.
        assert!(after < before + CLIENTS as u64 * 2, "the {node}'s kernel held {before} KiB, and holds {after}");
    }
}

/// Clients that are killed at any moment: so what the server says of them, and of how many, is open.
#[test]
#[ignore = "takes long: make test-long"]
fn killed_clients_leave_nothing_in_the_server() {
    for number in ["02", "03", "04", "06", "07"] {
        let good = format!("lesson-{number} client -a 10.47.91.1");
        let killed = |after: u32| format!("{good} & victim=$!; usleep {after}000; kill -9 $victim; wait $victim");
        let clients = [&good, &killed(40), &killed(110), &killed(180), &good];
        let check = served::run(&format!("lesson-{number} server -n 0"), WAITS, &clients.map(String::as_str)).check();
        assert_eq!(check.node(SERVER).exit, Some(128 + 15), "{}", check.all());
        assert!(check.count(SERVER, "is accepted") >= 2, "{}", check.all());
        served::assert_nothing_grows(&check, 6);
    }
}

#[test]
fn a_device_that_goes_away_ends_the_connection_and_nothing_hangs() {
    // The device has a QP of its own, which is always ready: so the type counts, too.
    let is_connected = "/usr/bin/rdma resource show qp | grep -q 'type RC state RTS'";
    let remove = format!("until {is_connected}; do usleep 50000; done; sleep 1; /usr/bin/rdma link delete rxe0");
    let run = Run::programs().server(&format!("({remove}) & lesson-03 server --timeout 20"));
    // The client stays until it hears that its peer is gone: on a busy machine that takes seconds.
    let check = run.client(&format!("{} client 10.47.91.1 goodbye", example("odd_peer"))).check();
    assert_eq!(check.node(SERVER).exit, Some(1));
    // Linux 6.1 takes the device away, and the event says so. Linux 7.2 waits for its users, and our deadline comes first.
    let told = "RDMA_CM_EVENT_DEVICE_REMOVAL instead of a RECV with the peer's metadata";
    let (told, waited) = (check.count(SERVER, told), check.count(SERVER, "waited 20 s"));
    assert_eq!(told.max(waited), 1, "{}", check.all());
    check.logs(SERVER, "server shut-down is complete");
}

//! A server outlives its clients, whatever they do: it says which failed, in which stage and why, serves the next one, and
//! holds no more than before. That is counted while the server runs, before each client: RDMA resources, descriptors, memory.

use crate::support::check;
use crate::support::served::{self, Held, MANNERS};
use lab::{Run, SERVER};

#[test]
#[ignore = "takes long: make test-long"]
fn clients_of_mixed_manners_leave_nothing_in_the_server() {
    let clients = MANNERS.map(|(client, _)| client);
    // None of them makes it wait so long, but a loaded machine may take a while to start the next one.
    let check = check(served::run("lesson-05 server -n 10 --timeout 40", &clients)).exits(1, 0);
    for (client, why) in MANNERS {
        let Some(why) = why else { continue };
        let lines = check.outcome.node("server").log.iter().filter(|line| line.contains("] ERR   client "));
        assert!(lines.filter(|line| line.contains(why)).count() >= 1, "{client}: not {why:?}");
    }
    check.logs(SERVER, "7 of 10 clients could not be served");
    assert_eq!(check.count(SERVER, "the memory holds "), 3, "three good ones");
    served::assert_nothing_grows(&served::samples(&check.outcome), 10);
}

/// Clients that are killed at any moment: so what the server says of them, and of how many, is open.
fn killed_clients_leave_nothing(numbers: &[&str]) {
    let killed = |number: &str, after: u32| {
        let client = format!("lesson-{number} client -a 10.47.91.1 & victim=$!");
        format!("{client}; usleep {after}000; kill -9 $victim; wait $victim")
    };
    for number in numbers {
        let good = format!("lesson-{number} client -a 10.47.91.1");
        let clients = [&good, &killed(number, 40), &killed(number, 110), &killed(number, 180), &good];
        let clients: Vec<&str> = clients.iter().map(|client| client.as_str()).collect();
        let check = check(served::run(&format!("lesson-{number} server -n 0"), &clients));
        let what = format!("lesson {number}:\n{}", check.outcome.node("server").log.join("\n"));
        assert_eq!(check.outcome.node("server").exit, Some(128 + 15), "{what}");
        assert!(check.count(SERVER, "is accepted") >= 2, "{what}");
        served::assert_nothing_grows(&served::samples(&check.outcome), 6);
    }
}

#[test]
#[ignore = "takes long: make test-long"]
fn killed_clients_leave_nothing_in_the_server() {
    killed_clients_leave_nothing(&["04"]);
}

#[test]
#[ignore = "takes long: make test-long"]
fn killed_clients_leave_nothing_in_the_other_lessons_servers() {
    killed_clients_leave_nothing(&["02", "03", "06", "07"]);
}

#[test]
fn a_device_that_goes_away_ends_the_connection_and_nothing_hangs() {
    // The device has a QP of its own, which is always ready: so the type counts, too.
    let remove = "until rdma resource show qp | grep -q 'type RC state RTS'; do usleep 50000; done; sleep 1; rdma link delete rxe0";
    let remove = remove.replace("rdma ", "/usr/bin/rdma ");
    let server = format!("({remove}) & lesson-03 server --timeout 20");
    let client = served::with_paths("odd_peer client 10.47.91.1 sleep=3000");
    let check = check(Run::programs().server(&server).client(&client));
    assert_eq!(check.outcome.node("server").exit, Some(1));
    // Linux 6.1 takes the device away, and the event says so. Linux 7.2 waits for its users, and our deadline comes first.
    let told = "RDMA_CM_EVENT_DEVICE_REMOVAL instead of a RECV with the peer's metadata";
    let (told, waited) = (check.count(SERVER, told), check.count(SERVER, "waited 20 s"));
    assert_eq!(told.max(waited), 1, "{}", check.outcome.node("server").log.join("\n"));
    check.logs(SERVER, "server shut-down is complete");
}

/// A test of the counting itself: a server that leaks a descriptor, or more, for each client is found.
#[test]
fn growth_is_found() {
    let held = |fds, cm_id| Held { fds, rss: 4000, resources: format!("0: rxe0: qp 1 cm_id {cm_id}") };
    let judge = |samples: Vec<Held>| std::panic::catch_unwind(|| served::assert_nothing_grows(&samples, 4)).is_err();
    assert!(!judge(vec![held(7, 1); 4]));
    assert!(judge(vec![held(7, 1), held(7, 1), held(7, 1), held(8, 1)]));
    assert!(judge(vec![held(7, 1), held(7, 1), held(7, 2), held(7, 2)]));
    assert!(judge(vec![held(7, 1); 3]), "a sample is missing");
}

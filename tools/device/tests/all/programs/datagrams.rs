//! Lesson 11: whatever becomes of a datagram, each request is carried out once, and each client gets its answers.

use super::support::{each, Run, CLIENT, SERVER};

const ONE: &str = "carried_out=3 came_again=";

#[test]
fn each_fault_on_each_datagram_is_survived() {
    let acts = ["drop", "duplicate", "swap", "delay", "corrupt"];
    let nth = [("client", 1), ("client", 2), ("client", 3), ("server", 1), ("server", 2), ("server", 3)];
    let cases: Vec<_> = acts.iter().flat_map(|act| nth.map(|(from, nth)| (*act, from, nth))).collect();
    each(&cases, |(act, from, nth)| {
        // Nothing comes behind the last one that it could be swapped with: a swap is a loss there.
        let by = if *act == "delay" { " by 1200 ms" } else { "" };
        let which = ["1st", "2nd", "3rd"][nth - 1];
        let check = Run::lesson("11", "", "").wire(&format!("{act} {which} UD Send Only from {from}{by}")).check();
        let check = check.exits(0, 0);
        check.logs(CLIENT, "request 2: 20 coins are in the box");
        let line = check.line(SERVER, ONE);
        assert!(line.contains("coins=20"), "{act} {which} from {from}: {line}");
    });
}

#[test]
fn what_is_lost_every_time_ends_with_an_error_that_says_so() {
    let check = Run::lesson("11", "--timeout 6", "").wire("drop every UD Send Only from server").check().exits(1, 1);
    check.logs(CLIENT, "request 1 had no answer, 6 times");
    check.logs(SERVER, "request 1 of client 1 comes again");
    // Longer than the MTU: nothing is sent, and that is no error.
    let check = Run::lesson("11", "--timeout 6", "--size 1025").check().exits(1, 1);
    assert_eq!(check.packets_named("UD Send Only"), 0, "{}", check.all());
    Run::lesson("11", "", "--size 1024").check().exits(0, 0);
}

#[test]
fn one_queue_pair_serves_eight_clients_and_connections_have_one_each() {
    for (options, queue_pairs) in
        [("", "queue_pairs=1 receives=16 bytes=17024"), ("--transport rc", "queue_pairs=8 receives=16 bytes=16384")]
    {
        let check = Run::lesson("11", options, options).clients(8).check();
        check.logs(SERVER, &format!("clients=8 {queue_pairs}"));
        check.logs(SERVER, "carried_out=24 came_again=0 coins=160");
    }
}

#[test]
fn a_group_hears_one_datagram() {
    let check = Run::lesson("11", "--multicast", "--multicast").clients(4).check();
    assert_eq!(check.packets_named("UD Send Only Immediate"), 1, "{}", check.all());
    for client in 1..=4 {
        check.logs(&format!("client-{client}"), "the group hears: 80 coins");
    }
    // Whoever misses it is not missed.
    let lost =
        Run::lesson("11", "--multicast", "--multicast --timeout 3").wire("drop 1st UD Send Only Immediate").check();
    lost.exits(0, 1).logs(CLIENT, "nothing came to the group");
}

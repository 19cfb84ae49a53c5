//! What becomes of names, addresses and arguments.

use super::*;
use crate::options::Fetched;

#[test]
fn nodes_have_names_and_addresses_in_their_order() {
    let run = Run::programs().node("worker-1", "true").node("worker-2", "true").node("worker-1", "false");
    assert_eq!(run.names(), ["server", "worker-1", "worker-2"]);
    assert_eq!(run.nodes[1].command.as_deref(), Some("false"));
    assert!(run.hosts().ends_with("10.47.91.3 worker-2\nfd47:91::3 worker-2\n"), "{}", run.hosts());
    let several = Run::lesson("04").unwrap().clients(3);
    assert_eq!(several.names(), ["server", "client-1", "client-2", "client-3"]);
    assert_eq!(several.nodes[0].command.as_deref(), Some("lesson-04 server -n 3"));
    assert!(run.check().is_ok());
    for wrong in ["", "a b", "Worker", "-x", "lab", "ü"] {
        assert!(run.clone().node(wrong, "true").check().is_err(), "{wrong}");
    }
    assert!(Run::programs().client("true").clients(9).check().is_err(), "nine and the server");
    assert!(run.clone().kill_when("nobody", "x").check().is_err());
}

#[test]
fn what_a_running_machine_would_get_in_part_is_refused() {
    let run = |command: &str| Run::programs().client("true").inspect(command);
    let refusal = |run: Run| run.check().unwrap_err().to_string();
    let long = format!("true {}; test -e /tmp/nowhere", "#".repeat(4000));
    assert!(run("true\ttab ü").check().is_ok() && run(&long[..3900]).check().is_ok());
    assert!(refusal(run(&long)).contains("more than 4000 bytes"));
    assert!(refusal(run("true\nfalse")).contains("one line"));
    assert!(refusal(run("true \x15false")).contains("one line"), "Ctrl-U takes back what stands before it");
    let options = [
        Options { ready: Some(long.clone()), ..Options::default() },
        Options { faults: vec![Trap::parse(&format!("on client {long} when x")).unwrap()], ..Options::default() },
        Options { out: vec![Fetched::parse("/tmp/x").unwrap(); 900], ..Options::default() },
    ];
    for options in options {
        assert!(refusal(run("true").options(options)).contains("--bring"));
    }
}

#[test]
fn options_take_no_fault_away() {
    let options = |wire: &str| Options { wire: wire.to_owned(), ..Options::default() };
    let rules = |run: Run| run.check().unwrap().trouble();
    let both = Some("the rules `drop 1st REQ` and `drop 1st RTU` never met their packets".to_owned());
    assert_eq!(rules(Run::programs().wire("drop 1st REQ").options(options("drop 1st RTU; "))), both);
    assert_eq!(rules(Run::programs().options(options("drop 1st REQ")).wire("drop 1st RTU")), both);
    assert_eq!(rules(Run::programs().options(options(""))), None);
}

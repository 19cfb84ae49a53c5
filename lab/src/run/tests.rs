//! What becomes of names, addresses and arguments.

use super::*;

fn client(arguments: &str) -> String {
    Run::lesson("04").unwrap().client_args(arguments).nodes[1].command.clone().unwrap()
}

#[test]
fn the_client_goes_to_the_server_unless_told_otherwise() {
    assert_eq!(client(""), "lesson-04 client -a 10.47.91.1");
    assert_eq!(client("--len 2500"), "lesson-04 client -a 10.47.91.1 --len 2500");
    assert_eq!(client("-a server -p 9"), "lesson-04 client -a server -p 9");
    assert_eq!(client("-afd47:91::1"), "lesson-04 client -afd47:91::1");
    assert_eq!(client("--address=x"), "lesson-04 client --address=x");
    assert_eq!(client("-s 'hi -a'"), "lesson-04 client -a 10.47.91.1 -s 'hi -a'");
}

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
fn a_lesson_has_two_digits() {
    for wrong in ["4", "004", "x4", ""] {
        assert!(Run::lesson(wrong).is_err(), "{wrong}");
    }
    assert_eq!(Run::lesson("01").unwrap().nodes[0].command.as_deref(), Some("lesson-01 server"));
}

//! What becomes of names, addresses and arguments.

use super::*;

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

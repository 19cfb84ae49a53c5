//! More than two machines on one switch.

use lab::{Lab, Options, Outcome, Run, SERVER};

fn run(run: &Run) -> Outcome {
    Lab::open().and_then(|lab| lab.run(run)).unwrap_or_else(|error| panic!("{error:#}"))
}

#[test]
#[ignore = "takes long: make test-long"]
fn machines_know_their_own_names_and_the_others() {
    let ask = "hostname; grep -c . /etc/hosts; ping -c 1 db >/dev/null && echo seen";
    let run_it = Run::programs().server("sleep 600").node("db", "sleep 600").node("worker-1", ask);
    let ready = Options { ready: Some("true".to_owned()), ..Options::default() };
    let run_it = run_it.kill_when("db", "seen").kill_when(SERVER, "seen").options(ready);
    let outcome = run(&run_it);
    assert_eq!(outcome.node("worker-1").log, ["worker-1", "7", "seen"]);
    // No ARP: more than two know each other. There and back goes the ping.
    assert_eq!(outcome.counts.others, 2);
    assert_eq!(outcome.nodes.iter().map(|node| node.exit).collect::<Vec<_>>(), [Some(137), Some(137), Some(0)]);
}

#[test]
fn a_program_can_be_started_on_any_node() {
    let commands =
        "on nobody true; on worker-1 'hostname; exit 4'; until grep -q done /run/done; do usleep 10000; done";
    let run_it = Run::programs().server(commands).node("worker-1", None).power_off_when(SERVER, "worker-1");
    let outcome = run(&run_it);
    assert_eq!(outcome.node("worker-1").log, ["worker-1"]);
    let mut acts = Vec::new();
    outcome
        .each_event(|event| {
            if let run::file::Event::Line(line) = event {
                acts.extend((!line.act.is_empty()).then(|| format!("{} {}: {}", line.node, line.act, line.text)));
            }
        })
        .unwrap();
    let wanted =
        ["worker-1 start: hostname; exit 4", "server trouble: there is no node `nobody`; there are: server, worker-1"];
    assert!(wanted.iter().all(|line| acts.iter().any(|act| act == line)), "{acts:?}");
}

//! More than two machines on one switch.

use crate::support::{Run, SERVER};
use run::file::Event;

#[test]
#[ignore = "takes long: make test-long"]
fn machines_know_their_own_names_and_the_others() {
    let ask = "worker-1=hostname; grep -c . /etc/hosts; ping -c 1 db >/dev/null && echo seen";
    let run = Run::programs().server("sleep 600").with("node", "db=sleep 600").with("node", ask).with("ready", "true");
    let check = run.with("fault", "kill db when seen").with("fault", "kill server when seen").check();
    assert_eq!(check.node("worker-1").log, ["worker-1", "7", "seen"]);
    // More than two know each other as soon as their programs start: who starts asks nobody by ARP. db, which is pinged, may not
    // have come so far, and ask. There and back goes the ping.
    let (mut asked, mut pings) = (0, 0);
    check.each_event(|event| {
        if let Event::Packet(record) = event {
            let of = |at: usize, bytes: &[u8]| record.data.get(at..at + bytes.len()) == Some(bytes);
            asked += usize::from(of(12, &[0x08, 0x06]) && of(6, &[2, 0, 0, 0, 0, 3]) && of(20, &[0, 1]));
            pings += usize::from(of(12, &[0x08, 0x00]));
        }
    });
    assert_eq!((asked, pings), (0, 2), "{}", check.all());
    assert_eq!([SERVER, "db", "worker-1"].map(|node| check.node(node).exit), [Some(137), Some(137), Some(0)]);
}

#[test]
fn a_program_can_be_started_on_any_node() {
    let commands =
        "on nobody true; on worker-1 'hostname; exit 4'; until grep -q done /run/done; do usleep 10000; done";
    let run = Run::programs().server(commands).with("node", "worker-1");
    let check = run.with("fault", "power-off server when worker-1").check();
    // How the program ended may come before the power is off.
    assert_eq!(check.node("worker-1").log.first().map(String::as_str), Some("worker-1"), "{}", check.all());
    let mut acts = Vec::new();
    check.each_event(|event| {
        if let Event::Line(line) = event {
            acts.extend((!line.act.is_empty()).then(|| format!("{} {}: {}", line.node, line.act, line.text)));
        }
    });
    let wanted = [
        "worker-1 start: hostname; exit 4",
        "server trouble: there is no node `nobody`. This run has: server, worker-1",
    ];
    assert!(wanted.iter().all(|line| acts.iter().any(|act| act == line)), "{acts:?}");
}

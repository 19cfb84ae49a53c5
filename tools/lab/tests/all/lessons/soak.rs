//! A thousand clients of mixed manners against one server: nothing grows. `make test-long group=soak`.

use crate::support::check;
use crate::support::served::{self, MANNERS};
use lab::{CLIENT, SERVER};
use std::time::Duration;

const CLIENTS: usize = 1000;

/// RDMA resources, and the memory that the kernel holds for itself in KiB.
const INSPECT: &str = "/usr/bin/rdma resource show; sed -n 's/SUnreclaim: *\\([0-9]*\\) kB/slab \\1/p' /proc/meminfo";

#[test]
#[ignore = "takes long: make test-long"]
fn a_thousand_clients_leave_nothing_behind() {
    let clients: Vec<&str> = MANNERS.iter().map(|(client, _)| *client).cycle().take(CLIENTS).collect();
    let server = format!("lesson-05 server -n {CLIENTS} --timeout 40 --stages wait_connect_request");
    let run = served::run(&server, &clients).inspect(INSPECT).deadline(Duration::from_secs(3 * 3600));
    let check = check(run).exits(1, 0);
    check.logs(SERVER, &format!("{} of {CLIENTS} clients could not be served", CLIENTS * 7 / 10));
    let samples = served::samples(&check.outcome);
    served::assert_nothing_grows(&samples, CLIENTS);
    println!("the server held {:?} at first, and {:?} at last", samples[1], samples[CLIENTS - 1]);

    for side in [SERVER, CLIENT] {
        let ended = check.outcome.node(side);
        let (resources_before, slab_before) = split(&ended.before);
        let (resources_after, slab_after) = split(&ended.after);
        println!("{}: {resources_after:?}, kernel {slab_before} KiB before, {slab_after} KiB after", side);
        assert_eq!(resources_before, resources_after, "RDMA resources are left on the {}", side);
        // A connection's smallest kernel object is bigger than a kilobyte, so a leak of one each would exceed this.
        let growth = slab_after.saturating_sub(slab_before);
        assert!(growth < CLIENTS as u64 * 2, "the {}'s kernel holds {growth} KiB more", side);
    }
}

fn split(lines: &[String]) -> (Vec<&String>, u64) {
    let slab = lines.iter().find_map(|line| line.strip_prefix("slab ")).and_then(|number| number.parse().ok());
    (lines.iter().filter(|line| !line.starts_with("slab ")).collect(), slab.unwrap_or_default())
}

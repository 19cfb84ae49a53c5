//! A strict device, as judges use it: right programs don't notice, and what a program leaves is told.

use super::support::{each, Check, Run, CLIENT, SERVER};
use run::file::Event;

fn strict(run: Run) -> Run {
    run.with("--strict=server").with("--strict=client").with("--late-read").log()
}

/// How often a node's device tells this fact, or a program prints these words.
fn told(check: &Check, node: &str, wanted: &str) -> usize {
    let mut count = 0;
    check.each_event(|event| {
        let is_it = matches!(event, Event::Line(line) if line.node == node && line.fact().map_or_else(|| line.text.contains(wanted), |fact| fact == wanted));
        count += usize::from(is_it);
    });
    count
}

#[test]
fn right_programs_do_not_notice() {
    each(&["01", "02", "03", "04", "05", "06", "07"], |number| {
        let check = strict(Run::lesson(number, "", "")).check().exits(0, 0);
        for node in [SERVER, CLIENT] {
            assert_eq!(told(&check, node, "left") + told(&check, node, "circles"), 0, "{}", check.all());
        }
    });
}

#[test]
fn a_channel_that_is_not_destroyed_is_told() {
    let opens = "import os; channel = os.open('/dev/infiniband/rdma_cm', os.O_RDWR)";
    for (program, count) in [(opens.to_owned(), 1), (format!("{opens}; os.close(channel)"), 0)] {
        let python = format!("python3 -c \"{program}\"");
        let check = strict(Run::programs(&python, "true")).check().exits(0, 0);
        assert_eq!(told(&check, SERVER, "left"), count, "{}", check.all());
    }
}

/// The device says it after its program has ended, and on a busy machine a while after.
#[test]
fn what_is_left_is_told_however_busy_the_machine_is() {
    let opens = "python3 -c \"import os; channel = os.open('/dev/infiniband/rdma_cm', os.O_RDWR)\"";
    testkit::each::each(12, &[(); 36], |()| {
        let check = strict(Run::programs(opens, opens)).check().exits(0, 0);
        assert_eq!([SERVER, CLIENT].map(|node| told(&check, node, "left")), [1, 1], "{}", check.all());
    });
}

#[test]
fn another_machines_processes_cannot_be_seen() {
    // Its own are there, by their numbers as well; the runner that started both sides isn't.
    let looks = "cat /proc/self/cmdline /proc/$$/cmdline | tr '\\0' ' '; ! cat /proc/1/cmdline";
    let check = strict(Run::programs(looks, "sleep 0.2")).check().exits(0, 0);
    assert!(told(&check, SERVER, "cat /proc/self/cmdline") > 0, "{}", check.all());
    assert!(told(&check, SERVER, "No such file") > 0, "{}", check.all());
}

#[test]
fn programs_that_have_too_much_memory_together_are_ended() {
    // Each process has little.
    let fork = "import os, time\nfor _ in range(7): os.fork() or [memory := bytearray(b'x' * (16 << 20)), time.sleep(9)]\ntime.sleep(9)";
    for (limit, is_ended) in [("--memory=64", true), ("--memory=1024", false)] {
        let program = format!("timeout 4 python3 -c \"{fork}\"");
        let check = Run::programs(&program, "sleep 0.2").with(limit).check();
        assert_eq!(told(&check, SERVER, "MiB of memory, and is ended") > 0, is_ended, "{}", check.all());
    }
}

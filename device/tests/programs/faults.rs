//! Every packet of a lesson is lost, doubled, overtaken or damaged, one at a time: the lesson succeeds all the same, or each
//! program that fails says why.

use crate::support::{each, lesson, Check, Run, CLIENT, SERVER};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Rules for one fault at each packet of a lesson in turn, or at each of its data: behind the handshake, before the goodbye.
fn rules(number: &str, act: &str, only_data: bool) -> Vec<String> {
    let undisturbed = lesson(number, "", "");
    let mut rules = Vec::new();
    for (node, mark, handshake) in [(CLIENT, "C ", 2), (SERVER, "S ", 1)] {
        let count = undisturbed.packets().iter().filter(|packet| packet.starts_with(mark)).count();
        let (first, end) = if only_data { (handshake + 1, count) } else { (1, count + 1) };
        for nth in first..end {
            let suffix = ["th", "st", "nd", "rd"].get(if nth % 100 / 10 == 1 { 0 } else { nth % 10 }).unwrap_or(&"th");
            rules.push(format!("{act} {nth}{suffix} packet from {node}"));
        }
    }
    rules
}

/// Each of them ends with 0, or tells why not. True if both end with 0.
fn is_good(check: &Check, rule: &str) -> bool {
    for node in &check.nodes {
        let told = node.log.iter().any(|line| line.contains("] ERR  "));
        assert!(node.exit == Some(0) || (node.exit == Some(1) && told), "{rule}: {}", check.all());
    }
    check.nodes.iter().all(|node| node.exit == Some(0))
}

/// How many runs succeeded, and how many there were.
fn sweep(number: &str, act: &str, only_data: bool) -> (usize, usize) {
    let (good, rules) = (AtomicUsize::new(0), rules(number, act, only_data));
    each(&rules, |rule| {
        let check = Run::lesson(number, "", "").wire(rule).check();
        good.fetch_add(usize::from(is_good(&check, &format!("lesson {number}, {rule}"))), Ordering::Relaxed);
    });
    (good.into_inner(), rules.len())
}

#[test]
fn data_that_is_lost_doubled_overtaken_or_damaged_arrives_all_the_same() {
    for act in ["drop", "duplicate", "swap", "corrupt"] {
        let (good, all) = sweep("05", act, true);
        assert_eq!(good, all, "{act}");
        assert!(all > 6);
    }
}

#[test]
fn a_handshake_and_a_goodbye_that_are_disturbed_end_well_or_in_words() {
    for act in ["drop", "duplicate", "corrupt"] {
        let (good, all) = sweep("02", act, false);
        assert!(good >= 4 && all == 5, "{act}: {good} of {all}");
    }
}

#[test]
#[ignore = "some minutes: cargo test -p device --test programs every_packet -- --ignored --nocapture"]
fn every_packet_of_every_lesson() {
    for number in ["01", "02", "03", "04", "05", "06", "07"] {
        for act in ["drop", "duplicate", "swap", "corrupt"] {
            let (good, all) = sweep(number, act, false);
            println!("lesson {number}, {act}: {good} of {all} succeeded, the others said why not");
        }
    }
}

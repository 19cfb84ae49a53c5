//! One fault at a time on every packet of a lesson: dropped, duplicated, delayed, swapped with the next, corrupted. Each
//! side must come to a right end, or say what is wrong, within its own deadline, and leave nothing open.
//!
//! `make test-long group=sweep` tries all of them and prints what came of each; the default tests do the same on the device in user space
//! (tools/device/tests/all/programs/faults.rs).

use crate::support::run_of;
use lab::{Lab, Outcome, CLIENT, SERVER};
use roce::Packet;
use std::collections::HashMap;
use std::time::Instant;

/// A lesson, the client's options, and what the log of a side says once the result is right.
const LESSONS: [(&str, &str, &str, &str); 5] = [
    ("02", "", CLIENT, "connected"),
    ("04", "", SERVER, "the memory holds 60 bytes: \"One side writes, and the other side's processor never knows.\""),
    ("04", "--len 2500", SERVER, "the memory holds 2500 bytes"),
    ("05", "", CLIENT, "SUCCESS, source and destination buffers match"),
    ("05", "--len 2500", CLIENT, "SUCCESS, source and destination buffers match"),
];
const ACTS: [&str; 5] = ["drop", "duplicate", "delay", "swap", "corrupt"];
/// Longer than a sender waits: 0.54 s for an ACK, 4.3 s for the answer to a CM message.
const DELAYS: [&str; 2] = [" by 700 ms", " by 5 s"];
/// What must be the same before and after.
const SHOW: &str = "/usr/bin/rdma resource show";

/// A lesson with one fault, and how to tell that it went well.
struct Case {
    number: &'static str,
    options: &'static str,
    good: (&'static str, &'static str),
    rule: String,
}

/// All faults, one for each packet of an undisturbed run.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, options, side, text) in LESSONS {
        let mut counts: HashMap<(String, &str), usize> = HashMap::new();
        let undisturbed = Lab::open().unwrap().run(&run_of(number, "", options)).unwrap();
        let each = |sender: &str, packet: &Packet<'_>| {
            let count = counts.entry((sender.to_owned(), packet.name())).or_default();
            *count += 1;
            let suffix = ["th", "st", "nd", "rd"].get(*count).unwrap_or(&"th");
            for act in ACTS {
                let time = if act == "delay" { DELAYS[usize::from(packet.cm().is_some())] } else { "" };
                let rule = format!("{act} {count}{suffix} \"{}\" from {sender}{time}", packet.name());
                cases.push(Case { number, options, good: (side, text), rule });
            }
        };
        undisturbed.each_packet(each).unwrap();
    }
    cases
}

/// Runs a case, prints how it went, and gives that line if it is not as it should be.
fn tried(case: &Case) -> Option<String> {
    let begun = Instant::now();
    let run = run_of(case.number, "", case.options).wire(&case.rule).inspect(SHOW);
    let (verdict, is_good) = match Lab::open().unwrap().run(&run) {
        Ok(outcome) => judge(case, &outcome),
        Err(error) => (format!("the lab failed: {error:#}"), false),
    };
    let (mark, seconds) = (if is_good { ' ' } else { '!' }, begun.elapsed().as_secs_f32());
    let line = format!("{mark} {} {:<10}  {:<58}  {seconds:5.1} s  {verdict}", case.number, case.options, case.rule);
    println!("{line}");
    (!is_good).then_some(line)
}

/// A side that fails says why and what to do next; if none fails, the result is right; and nothing is left open.
fn judge(case: &Case, outcome: &Outcome) -> (String, bool) {
    let (mut words, mut problems) = (Vec::new(), Vec::new());
    for ended in &outcome.nodes {
        let error = ended.log.iter().find_map(|line| line.split("] ERR  ").nth(1)).unwrap_or_default();
        words.push(match ended.exit {
            Some(0) => format!("{} 0", ended.name),
            status => format!("{} {status:?}: {error}", ended.name),
        });
        if ended.exit != Some(0) && !(ended.exit == Some(1) && error.contains("Next: ")) {
            problems.push(format!("the {} ends without a word", ended.name));
        }
        if ended.before != ended.after || ended.before.is_empty() {
            problems.push(format!("left open on the {}: {:?}", ended.name, ended.after));
        }
    }
    let (side, text) = case.good;
    if [SERVER, CLIENT].iter().all(|node| outcome.node(node).exit == Some(0)) {
        let is_right = outcome.node(side).log.iter().any(|line| line.contains(text));
        problems.extend((!is_right).then(|| format!("the {side} does not say {text:?}")));
    }
    problems.extend(outcome.trouble.clone());
    ([words, problems.clone()].concat().join("; "), problems.is_empty())
}

#[test]
#[ignore = "takes long: make test-long"]
fn sweep() {
    let cases = cases();
    let bad: Vec<String> = cases.iter().filter_map(tried).collect();
    println!("{} faults, {} of them with a bad end", cases.len(), bad.len());
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

//! Every packet of a lesson is lost, doubled, overtaken or damaged, one at a time: the lesson succeeds all the same, or each
//! program that fails says why.

use super::support::{each, lesson, Check, Run, CLIENT, SERVER};
use std::sync::Mutex;

/// A lesson's number, and its client's options.
type Lesson<'a> = [&'a str; 2];

/// Rules for one fault at each packet of a lesson in turn, or at each of its data: behind the handshake, before the goodbye.
fn rules(run: Lesson<'_>, act: &str, only_data: bool) -> Vec<String> {
    let undisturbed = lesson(run[0], "", run[1]).exits(0, 0);
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

/// Each rule, and whether the run with it succeeded.
fn sweep(run: Lesson<'_>, acts: &[&str], only_data: bool) -> Vec<(String, bool)> {
    let rules: Vec<String> = acts.iter().flat_map(|act| rules(run, act, only_data)).collect();
    let ended = Mutex::new(Vec::new());
    let look = |rule: &String| {
        let check = Run::lesson(run[0], "", run[1]).wire(rule).check();
        let is_good = is_good(&check, &format!("lesson {run:?}, {rule}"));
        ended.lock().unwrap().push((rule.clone(), is_good));
    };
    each(&rules, look);
    ended.into_inner().unwrap()
}

#[test]
fn data_that_is_lost_doubled_overtaken_or_damaged_arrives_all_the_same() {
    let ended = sweep(["05", ""], &["drop", "duplicate", "swap", "corrupt"], true);
    assert!(ended.len() > 4 * 6 && ended.iter().all(|(_, is_good)| *is_good), "{ended:?}");
}

/// A WRITE that comes again, as its ACK is lost and the next answer is late, is acknowledged with the number of the FETCH_ADD
/// behind it. That is no other story.
#[test]
fn an_ack_with_the_number_of_a_later_request_is_part_of_the_story() {
    let rules = "drop 1st Acknowledge from server; drop 1st \"Atomic Acknowledge\"";
    let check = Run::lesson("09", "", "").wire(rules).check().exits(0, 0);
    let story = run::story::named("09").unwrap();
    let problems = run::story::proof::problems(&story, &std::fs::read(&check.file).unwrap());
    // (The story has three workers.)
    assert!(!problems.iter().any(|problem| problem.contains("not part of the story")), "{problems:#?}");
    // Eight rounds, and one that comes again.
    assert_eq!(check.packets().iter().filter(|packet| packet.contains("Fetch Add")).count(), 9, "{}", check.all());
}

#[test]
fn a_handshake_and_a_goodbye_that_are_disturbed_end_well_or_in_words() {
    let acts = ["drop", "duplicate", "corrupt"];
    let ended = sweep(["02", ""], &acts, false);
    assert_eq!(ended.len(), acts.len() * 5, "{ended:?}");
    for act in acts {
        let good = ended.iter().filter(|(rule, is_good)| rule.starts_with(act) && *is_good);
        assert!(good.count() >= 4, "{act}: {ended:?}");
    }
}

/// From any packet on nothing of one side comes: neither hangs.
#[test]
#[ignore = "takes long: make test-long"]
fn who_falls_silent_at_any_packet_is_missed_in_time() {
    let rules = rules(["06", ""], "cut", false);
    each(&rules, |rule| {
        is_good(&Run::lesson("06", "--timeout 20", "--timeout 20").wire(rule).check(), rule);
    });
    assert!(rules.len() > 15, "{rules:?}");
}

#[test]
#[ignore = "takes long: make test-long"]
fn every_packet_of_every_lesson() {
    let few = "--op send --count 4";
    let lessons = ["01", "02", "03", "04", "05", "06", "07", "08", "09"].map(|number| [number, ""]);
    for run in lessons.into_iter().chain([["10", "--count 4"], ["10", few]]) {
        for act in ["drop", "duplicate", "swap", "corrupt"] {
            let ended = sweep(run, &[act], false);
            let (good, all) = (ended.iter().filter(|(_, is_good)| *is_good).count(), ended.len());
            assert!(good > 0, "lesson {}, {act}: none succeeded", run.join(" "));
            println!("lesson {}: {act}: {good} of {all} succeeded, the others said why not", run.join(" "));
        }
    }
}

//! `wire explain` is measured: random lessons run on the device with a random fault at a random packet, each capture is cut at
//! random, and what is said of it is held against the fault. What the wire did is in comments of the run file; they are taken
//! out first. Then each capture is put into every kind of tunnel, where it must be explained in the same words.
//! docs/explain.md has the table that the long test prints.

mod judged;
mod made;

use crate::programs::support::each;
use judged::{Came, Seen};
use made::{each_capture, Capture, Cut, Fault, Situation, Undisturbed};
use run::capture::Reader;
use std::collections::BTreeMap;
use std::sync::Mutex;
use testkit::wrapped::{apart, Wrap, WRAPS};
use wire::explain::{explain, Explanation};

type Table = BTreeMap<(String, Cut), BTreeMap<Came, u64>>;

fn explained(file: &[u8]) -> Explanation {
    explain(&mut Reader::new(file).unwrap()).unwrap()
}

/// Makes this many runs from this seed on, and seven captures of each.
fn measure(seed: u64, count: u64) -> Table {
    let undisturbed = Undisturbed::run();
    let table = Mutex::new(Table::new());
    let seeds: Vec<u64> = (seed..seed + count).collect();
    each(&seeds, |seed| {
        let (situation, pick) = Situation::run(*seed, &undisturbed);
        each_capture(&situation.packets, pick, |capture| {
            // Without its beginning a connection that never was is one of which nothing is left.
            if matches!(situation.fault, Fault::Never(_)) && capture.cut == Cut::Begin {
                return;
            }
            let (class, came) = look_at(*seed, &situation, &capture);
            *table.lock().unwrap().entry((class, capture.cut)).or_default().entry(came).or_default() += 1;
        });
    });
    table.into_inner().unwrap()
}

/// What is said of a capture in this tunnel, but for the tunnel itself: it makes packets longer.
fn words(capture: &Capture<'_>, wrap: fn(&[u8]) -> Vec<u8>) -> String {
    let (words, _) = apart(&explained(&capture.file(wrap)));
    let cut_after = |bytes: usize| format!("cut after {bytes} bytes");
    words.replace(&cut_after(capture.snap_in(wrap)), &cut_after(capture.snap_in(<[u8]>::to_vec)))
}

/// What it is counted as, and how it came out.
fn look_at(seed: u64, situation: &Situation, capture: &Capture<'_>) -> (String, Came) {
    let Situation { fault, name, how, packets, has_consequence } = situation;
    let (cut, told) = (capture.cut, explained(&capture.file(<[u8]>::to_vec)));
    let hits = |packets: &[made::Taken]| packets.iter().filter_map(|packet| packet.hit.clone()).collect::<Vec<_>>();
    let (hits, of_run) = (hits(capture.packets), hits(packets));
    let is_to_be_seen = *has_consequence && !hits.is_empty() && !cut.is_blind();
    let came = Seen { hits: &of_run, is_to_be_seen, cut }.judge(&told, *fault);
    if came != Came::Right {
        eprintln!("{came:?}: seed {seed}, {how}, {cut:?}\n{hits:?}\n{told}");
    }
    for Wrap { name: tunnel, wrap, .. } in WRAPS {
        assert_eq!(words(capture, *wrap), words(capture, <[u8]>::to_vec), "in {tunnel}: seed {seed}, {how}, {cut:?}");
    }
    let class = match (name, fault, hits.first()) {
        (Some(name), ..) => (*name).to_owned(),
        (None, Fault::Act(act), Some((class, _))) => format!("{act} a {class:?}"),
        _ => "nothing".to_owned(),
    };
    (class, came)
}

fn print(table: &Table) -> [u64; 3] {
    let mut sums = [0; 3];
    println!("| what the wire did | the capture | right | cannot tell | wrong |\n|---|---|---|---|---|");
    for ((class, cut), came) in table {
        let of =
            [Came::Right, Came::CannotTell, Came::Wrong].map(|which| came.get(&which).copied().unwrap_or_default());
        println!("| {class} | {cut:?} | {} | {} | {} |", of[0], of[1], of[2]);
        sums.iter_mut().zip(of).for_each(|(sum, count)| *sum += count);
    }
    println!("all: {sums:?}");
    sums
}

#[test]
#[ignore = "500 runs take minutes"]
fn faults_are_named() {
    let seed = std::env::var("SEED").ok().map_or(1, |seed| seed.parse().unwrap());
    let runs = std::env::var("RUNS").ok().map_or(500, |runs| runs.parse().unwrap());
    let [right, cannot_tell, wrong] = print(&measure(seed, runs));
    let all = right + cannot_tell + wrong;
    assert!(right * 100 >= all * 95 && wrong * 100 <= all, "right {right}, wrong {wrong} of {all}");
}

#[test]
fn most_faults_are_named() {
    let [.., wrong] = print(&measure(1_000_000, 10));
    assert!(wrong <= 1, "{wrong} of 70 captures are explained wrongly");
}

//! Is a history of reads and writes one of registers, each of which does one thing after the other, at a moment between the
//! begin and the end of each operation? That is linearizability (Herlihy and Wing, 1990). No two writes here have the same value,
//! so each read tells whose value it has; then zones decide it exactly (Gibbons and Korach, "Testing Shared Memories", 1997): a
//! value's zone reaches from the first end of any operation with this value to the last begin of one.

use std::collections::{BTreeMap, HashMap};

/// An operation on one key. Of a write without an end nobody knows whether it was done.
pub struct Operation {
    begin: u128,
    end: u128,
    put: bool,
    value: String,
}

/// What the load of lesson 12 notes (examples/store_load.rs), a line for each: `begin put key value end done`, or `begin get key end value`, where `nothing` is the
/// value of a key that nobody has written. Who was killed leaves a line without an end.
pub fn parse(text: &str, into: &mut BTreeMap<String, Vec<Operation>>) -> Result<(), String> {
    for line in text.lines().filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (begin, put, key, value, end) = match words[..] {
            [begin, "put", key, value, end, "done"] => (begin, true, key, value, Some(end)),
            [begin, "put", key, value, ..] => (begin, true, key, value, None),
            [begin, "get", key, end, value] => (begin, false, key, value, Some(end)),
            // It has told nobody anything.
            _ => continue,
        };
        let time = |text: &str| text.parse().map_err(|_| format!("no operation: {line}"));
        let end = end.map_or(Ok(u128::MAX), time)?;
        into.entry(key.into()).or_default().push(Operation { begin: time(begin)?, end, put, value: value.into() });
    }
    Ok(())
}

/// The operations with one value.
#[derive(Clone, Copy)]
struct Zone {
    written: Option<u128>,
    first_end: u128,
    last_begin: u128,
}

/// What is wrong with the history of one key.
pub fn check(operations: &[Operation]) -> Result<(), String> {
    let mut zones: HashMap<&str, Zone> = HashMap::new();
    zones.insert("nothing", Zone { written: Some(0), first_end: 0, last_begin: 0 });
    for Operation { begin, end, put, value } in operations {
        let zone = zones.entry(value).or_insert(Zone { written: None, first_end: u128::MAX, last_begin: 0 });
        if *put && zone.written.replace(*begin).is_some() {
            return Err(format!("{value} was written twice: nobody knows which of the two was read"));
        }
        (zone.first_end, zone.last_begin) = (zone.first_end.min(*end), zone.last_begin.max(*begin));
    }
    let mut forward = Vec::new();
    for (value, zone) in &zones {
        match zone.written {
            None => return Err(format!("{value} was read, and nobody has written it: torn, or invented")),
            Some(begin) if zone.first_end < begin => return Err(format!("{value} was read before it was written")),
            Some(_) if zone.first_end < zone.last_begin => forward.push((zone.first_end, zone.last_begin, *value)),
            Some(_) => {}
        }
    }
    forward.sort_unstable();
    for pair in forward.windows(2) {
        if pair[1].0 < pair[0].1 {
            return Err(format!("{} was there again after {}, or at the same time", pair[0].2, pair[1].2));
        }
    }
    for (value, zone) in zones.iter().filter(|(_, zone)| zone.first_end >= zone.last_begin) {
        // The last of those that begin before it.
        let before = forward.partition_point(|(from, ..)| *from < zone.last_begin);
        if let Some((_, until, other)) = before.checked_sub(1).map(|at| forward[at]) {
            if zone.first_end < until {
                return Err(format!("{value} was done while {other} was there before and after it: it is lost"));
            }
        }
    }
    Ok(())
}

/// All keys; how many operations there were.
pub fn check_all(histories: &BTreeMap<String, Vec<Operation>>) -> Result<usize, String> {
    histories.iter().try_for_each(|(key, operations)| check(operations).map_err(|what| format!("{key}: {what}")))?;
    Ok(histories.values().map(Vec::len).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(text: &str) -> Result<usize, String> {
        let mut histories = BTreeMap::new();
        parse(text, &mut histories)?;
        check_all(&histories)
    }

    #[test]
    fn what_can_have_happened_is_accepted() {
        let fine = [
            "10 put k a 20 done\n30 get k  40 a\n",
            // At the same time: either is first.
            "10 put k a 50 done\n10 put k b 50 done\n60 get k  70 a\n80 get k  90 a\n",
            "10 put k a 50 done\n20 get k  30 nothing\n35 get k  40 a\n",
            // Nobody knows whether it was done: seen later, or never.
            "10 put k a\n100 put k b 110 done\n120 get k  130 b\n",
            "10 put k a 20 done\n30 put k b\n40 get k  50 a\n60 get k  70 b\n",
            "10 get k\n20 put k b 30 done\n",
            "10 get k  20 nothing\n10 put l a 20 done\n30 get l  40 a\n",
        ];
        fine.iter().for_each(|text| assert!(verdict(text).is_ok(), "{text}: {:?}", verdict(text)));
    }

    #[test]
    fn each_planted_error_is_found() {
        let cases = [
            ("10 put k a 20 done\n30 get k  40 nothing\n", "it is lost"),
            ("10 put k a 20 done\n30 put k b 40 done\n50 get k  60 a\n", "it is lost"),
            ("10 put k a 50 done\n20 get k  30 a\n35 get k  40 nothing\n", "it is lost"),
            ("10 put k a 20 done\n30 put k b 40 done\n50 get k  60 b\n70 get k  80 a\n", "again"),
            ("10 put k aa 20 done\n10 put k bb 20 done\n30 get k  40 ab\n", "torn, or invented"),
            ("10 get k  20 a\n30 put k a 40 done\n", "before it was written"),
            ("10 put k a 20 done\n10 put k a 20 done\n", "twice"),
        ];
        for (text, wanted) in cases {
            let found = verdict(text).unwrap_err();
            assert!(found.contains(wanted), "{text}: {found}");
        }
    }
}

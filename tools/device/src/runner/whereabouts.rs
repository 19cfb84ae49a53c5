//! Where in the NIC a device is that goes in circles.

use device::machine::calls_of;

/// What is in a backtrace for a function without a name.
const UNKNOWN: &str = "<unknown>";

/// The function of the NIC in which a thread of ours is, and its line, if the program was built with lines.
pub fn in_nic(thread: i32) -> Option<String> {
    // Now and then it is at a point from which its calls cannot be seen.
    const LOOKS: usize = 4;
    (0..LOOKS).find_map(|_| innermost(&calls_of(thread).ok()?))
}

/// The innermost call in a NIC's source, the project's or a learner's, of a backtrace. That has a line `N: function` for each call, and
/// mostly one more, `at file:line:column`. An empty loop has none: its function is told, and where that was called.
fn innermost(calls: &str) -> Option<String> {
    let mut frames: Vec<(&str, Option<&str>)> = Vec::new();
    for line in calls.lines().map(str::trim) {
        match (line.strip_prefix("at "), frames.last_mut()) {
            (Some(place), Some(frame)) => frame.1 = place.rsplit_once(':').map(|(place, _column)| place),
            _ => frames.extend(line.split_once(": ").map(|(_, name)| (name, None))),
        }
    }
    // The handler's own call comes first, and the kernel's, which has no name.
    let own = 1 + frames.iter().position(|(name, _)| *name == UNKNOWN)?;
    let frames: Vec<_> = frames.into_iter().skip(own).filter(|(name, _)| *name != UNKNOWN).collect();
    let is_in_nic = |(_, place): &(&str, Option<&str>)| place.is_some_and(|place| place.contains("nic/src/"));
    let at = frames.iter().position(is_in_nic).or_else(|| frames.iter().position(|(_, place)| place.is_some()))?;
    let (name, place) = frames[at];
    let place = place?.trim_start_matches("./");
    Some(match frames[..at].last() {
        Some((inner, None)) => format!("{inner}, called at {place}"),
        _ => format!("{name}, {place}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_call_of_the_nic_is_told_with_its_line() {
        let own = "0: tell_calls\n  at ./tools/device/src/machine/kernel.rs:228:25\n  1: <unknown>\n";
        let calls = "3: after\n  at ./tools/nic/src/psn.rs:17:5\n  4: receive\n  at ./tools/nic/src/qp/mod.rs:80:9\n";
        assert_eq!(innermost(&format!("{own}{calls}")).as_deref(), Some("after, tools/nic/src/psn.rs:17"));
        let looped = format!("{own}2: psn_of\n{calls}").replace("tools/nic", "mine-nic");
        assert_eq!(innermost(&looped).as_deref(), Some("psn_of, called at mine-nic/src/psn.rs:17"));
        let empty = format!("{own}2: receive\n  3: serve\n  at ./tools/device/src/node/mod.rs:291:60\n");
        assert_eq!(innermost(&empty).as_deref(), Some("receive, called at tools/device/src/node/mod.rs:291"));
        assert_eq!(innermost(own), None);
        assert_eq!(innermost("0: after\n"), None, "a program without lines");
    }

    #[test]
    fn a_thread_that_is_gone_says_nothing() {
        assert_eq!(in_nic(i32::MAX), None);
    }
}

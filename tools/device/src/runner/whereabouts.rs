//! Where in the NIC a device is that goes in circles.

use device::machine::calls_of;

/// The function of the NIC in which a thread of ours is, and its line, if the program was built with lines.
pub fn in_nic(thread: i32) -> Option<String> {
    innermost(&calls_of(thread).ok()?)
}

/// The innermost call in a NIC's source, the project's or a learner's, of a backtrace. That has a line `N: function` for each call, and
/// mostly one more, `at file:line:column`. An empty loop has none: its function is told, and where that was called.
fn innermost(calls: &str) -> Option<String> {
    let lines: Vec<_> = calls.lines().map(str::trim).collect();
    let name = |line: &str| Some(line.split_once(": ")?.1.to_owned()).filter(|name| name != "<unknown>");
    let is_place = |line: &&str| line.starts_with("at ");
    // The handler's own call comes first, and the kernel's, which has no name.
    let own = 1 + lines.iter().position(|line| line.ends_with(": <unknown>"))?;
    let is_in_nic = |line: &&str| is_place(line) && line.contains("nic/src/");
    let at = own + lines[own..].iter().position(is_in_nic).or_else(|| lines[own..].iter().position(is_place))?;
    let (place, _column) = lines[at].strip_prefix("at ")?.rsplit_once(':')?;
    let place = place.trim_start_matches("./");
    Some(match at.checked_sub(2).filter(|inner| *inner >= own && !is_place(&lines[*inner])) {
        Some(inner) => format!("{}, called at {place}", name(lines[inner])?),
        None => format!("{}, {place}", name(lines[at - 1])?),
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

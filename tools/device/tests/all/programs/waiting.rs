//! Nobody waits for more than two seconds without a line that says for what, and until when.

use super::support::{each, DEVICE};
use std::process::Command;

/// The options of a run in which nothing is to be seen for a while, and how the lines about that begin and end. A second may go by
/// before a client has failed.
type Case<'a> = (&'a [&'a str], &'a [[&'a str; 2]]);

const CASES: [Case<'_>; 5] = [
    (
        &["--server=rping -s", "--client=sleep 9", "--deadline=5"],
        &[["device: waiting for the server and the client to end (until 5 s", ", --deadline)"]],
    ),
    (
        &["--server=rping -s", "--client=false", "--grace=5"],
        &[["device: waiting for the server to end (until ", " s, --grace)"]],
    ),
    (
        &["--server=rping -s", "--client=sh -c 'echo begun; sleep 9'", "--idle=5"],
        &[["device: waiting for the server and the client to end (until ", " s, --idle)"]],
    ),
    (
        &["--server=sleep 5", "--client=true"],
        &[["device: waiting for the server to listen (10 s of silence at most)", ""]],
    ),
    // Nothing is shown while it runs: so what is waited for is said again when that changes, and not once all have ended.
    (
        &["--server=rping -s", "--client=sleep 4", "--deadline=7", "--json"],
        &[
            ["device: waiting for the server and the client to end (until 7 s", ", --deadline)"],
            ["device: waiting for the server to end (until 7 s", ", --deadline)"],
        ],
    ),
];

#[test]
fn who_waits_reads_for_what_and_until_when() {
    each(&CASES.map(|case| case), |(options, expected)| {
        let mut command = Command::new(DEVICE);
        let name = format!("--name=test-waiting-{}", options.join("").len());
        let output = command.arg("exec").args(*options).arg(name).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        let told: Vec<&str> = text.lines().filter(|line| line.contains(": waiting for ")).collect();
        let fits = |(line, [begin, end]): (&&str, &[&str; 2])| line.starts_with(begin) && line.ends_with(end);
        let is_same = told.len() == expected.len() && told.iter().zip(*expected).all(fits);
        assert!(is_same, "{options:?}, not {expected:?}: {told:?}");
    });
}

#[test]
fn who_wants_to_hear_nothing_hears_nothing_of_that() {
    let options = ["exec", "--quiet", "--server=sleep 3", "--name=test-waiting-quiet"];
    let output = Command::new(DEVICE).args(options).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

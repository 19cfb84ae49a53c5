//! Lesson 10 with every operation and technique, and the ping-pong of the benchmarks. What is counted is what was asked for; what
//! is measured is not looked at.

use super::support::{each, example, programs, CLIENT};

/// The first of these numbers in what a client says with these options.
fn numbers<const N: usize>(program: &str, server: &str, client: &str, names: [&str; N]) -> [u64; N] {
    let server = format!("RUST_LOG=off {program} server {server}");
    let check = programs(&server, &format!("RUST_LOG=off {program} client -a $SERVER {client}")).exits(0, 0);
    names.map(|name| {
        let line = check.line(CLIENT, &format!("{name}="));
        let word = line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        word.unwrap().parse().unwrap_or_else(|_| panic!("{name}: {line}"))
    })
}

fn posts_and_completions(options: &str) -> [u64; 2] {
    numbers("lesson-10", "", options, ["posts", "completions"])
}

#[test]
fn every_operation_in_every_way_to_wait() {
    let ways = ["poll", "sleep", "hybrid"].map(|wait| {
        ["write", "send", "read", "fetch-add"].map(|op| format!("--op {op} --wait {wait} --count 50 --depth 4"))
    });
    each(&ways.concat(), |options| assert_eq!(posts_and_completions(options), [50, 50], "{options}"));
}

#[test]
fn fewer_posts_and_completions_for_as_many_requests() {
    // Batches of 8, and what is left; one completion for five.
    assert_eq!(posts_and_completions("--count 100 --depth 16 --batch 8 --signal-every 5"), [13, 20]);
    assert_eq!(posts_and_completions("--count 101 --depth 16 --signal-every 16 --inline"), [101, 7]);
    posts_and_completions("--count 100 --depth 4 --mrs each");
}

#[test]
fn there_and_back_as_the_benchmarks_have_it() {
    for options in ["--op write", "--op send --wait sleep", "--op send --signal-every 8"] {
        let options = format!("--turns 50 {options}");
        assert_eq!(numbers("pingpong", &options, &options, ["count"]), [50], "{options}");
    }
}

#[test]
fn with_credits_no_message_finds_no_receive() {
    for receives in [1, 3, 8] {
        let options = format!("--op send --count 60 --depth 16 --receives {receives} --credits");
        // The words of the server are completions, too.
        assert!(posts_and_completions(&options)[1] > 60, "{options}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let cases = [
        ("--depth 4 --signal-every 5", "at most --depth"),
        ("--op read --inline", "goes out"),
        ("--count 0", "at least 1"),
        ("--credits", "for send"),
        ("--size 4000000 --depth 64", "too much"),
    ];
    each(&cases, |(options, wanted)| {
        programs("true", &format!("lesson-10 client -a ::1 {options}")).exits(0, 1).logs(CLIENT, wanted);
    });
}

/// A request through `common` allocates nothing and formats no log line while nobody reads the log: the program itself fails if
/// anything is counted.
#[test]
fn a_request_allocates_nothing_and_formats_nothing() {
    let program = example("fast_path");
    let check = programs(&format!("{program} server"), &format!("{program} client $SERVER")).exits(0, 0);
    assert!(check.packets_named("RC RDMA Read Request") > 0 && check.packets_named("RC Fetch Add") > 0);
}

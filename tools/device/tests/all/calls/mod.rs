//! Calls that the kernel answers in a way of its own, made by a program in C, as most programs are: `calls.txt` has what rdma_rxe of Linux
//! 6.1 returned in the lab. kernel.rs makes them there again.

use crate::kernel::known_calls;
use crate::programs::support::DEVICE;
use std::path::Path;
use std::process::Command;

/// A program of this folder, built.
pub fn program(name: &str) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/all/calls/{name}.c"));
    // Several tests may build it at once.
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-g", "-o"]).arg(&program).arg(&source);
    let made = compiler.args(["-lrdmacm", "-libverbs"]).output().expect("`cc` builds it");
    assert!(
        made.status.success(),
        "{} cannot be built. It needs a C compiler and rdma-core's headers, which `make setup` gets, and `. target/tools/env` \
         shows to the compiler:\n{}",
        source.display(),
        String::from_utf8_lossy(&made.stderr)
    );
    program.display().to_string()
}

/// What a program prints on a node of its own, if it ends well.
fn said(name: &str, words: &[&str]) -> String {
    let output = Command::new(DEVICE)
        .args(["run", &format!("--name=test-{name}"), "--"])
        .args(words)
        .env("PATH", format!("/usr/sbin:/sbin:{}", std::env::var("PATH").unwrap_or_default()))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{words:?}: {}: {text}{}", output.status, String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn odd_calls_return_what_they_return_on_the_kernels_but_for_known_differences() {
    let theirs: Vec<&str> = include_str!("calls.txt").lines().collect();
    let ours = said("odd-calls", &[&program("calls")]);
    let known = known_calls();
    let call = |line: &str| line.rsplit_once(" | ").map_or_else(String::new, |(call, _)| call.to_owned());
    assert_eq!(ours.lines().map(call).collect::<Vec<_>>(), theirs.iter().copied().map(call).collect::<Vec<_>>());
    let differ: Vec<_> = ours.lines().zip(&theirs).filter(|(ours, theirs)| ours != *theirs).collect();
    let unknown: Vec<_> = differ.iter().filter(|(ours, _)| !known.contains(&call(ours))).collect();
    assert!(unknown.is_empty(), "ours, theirs: {unknown:#?}");
    println!("known: {differ:#?}");
}

/// With few descriptors, and with more of the program's own than there are of ours below 1024.
#[test]
fn programs_run_with_few_descriptors_and_with_many() {
    let both = "rping -s -C 2 & until rping -c -a $NODE -C 2 -v; do sleep 0.1; done; wait";
    for limit in [16, 64] {
        let text = said(&format!("limit-{limit}"), &["sh", "-c", &format!("ulimit -n {limit}; {both}")]);
        assert!(text.contains("ping data: rdma-ping-1"), "{limit}: {text}");
    }
}

/// A thousand queue pairs, in pairs: each sends its neighbour a message.
#[test]
fn a_thousand_queue_pairs_work_at_once() {
    let text = said("thousand", &[&program("many"), "1000"]);
    assert_eq!(text, "1000 queue pairs, 2000 completions, 0 bad\n");
}

//! A capture may come through a pipe: as `-`, as /dev/stdin or as a FIFO, and nobody waits for one that's already empty.

use crate::files::{capture, file, root, scratch, text, wire};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use testkit::frames::conversation;

/// What `wire` does with these arguments, in this folder, while somebody writes the capture to its standard input.
fn piped(arguments: &[&str], folder: &Path, capture: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wire"));
    command.args(arguments).current_dir(folder);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    thread::scope(|scope| {
        // Whoever refuses the capture doesn't read it.
        scope.spawn(move || drop(input.write_all(capture)));
        child.wait_with_output().unwrap()
    })
}

const ACTS: [&[&str]; 8] = [
    &["show"],
    &["show", "--format", "lanes"],
    &["show", "--format", "ladder"],
    &["show", "--format", "tsv"],
    &["show", "--packet", "4"],
    &["explain"],
    &["svg"],
    &["svg", "--ladder"],
];

#[test]
fn every_command_reads_a_pipe_as_it_reads_a_file() {
    let folder = scratch("pipes");
    let run = std::fs::read(root().join("captures/04_rdma_write.pcapng")).unwrap();
    for bytes in [capture(conversation()), run] {
        let path = file("piped.pcapng", &bytes);
        for act in ACTS {
            let expected = wire(act[0], &path, &act[1..]).stdout;
            assert!(!expected.is_empty());
            for name in ["-", "/dev/stdin"] {
                let output = piped(&[act, &[name]].concat(), &folder, &bytes);
                assert!(output.stdout == expected, "{act:?} {name}: {output:?}");
            }
            // A file as standard input.
            let mut command = Command::new(env!("CARGO_BIN_EXE_wire"));
            let output = command.args(act).arg("-").stdin(File::open(&path).unwrap()).output().unwrap();
            assert!(output.stdout == expected, "{act:?} < FILE");
            let fifo = folder.join("fifo");
            let _ = std::fs::remove_file(&fifo);
            assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
            let output = thread::scope(|scope| {
                scope.spawn(|| std::fs::write(&fifo, &bytes));
                wire(act[0], &fifo, &act[1..])
            });
            assert!(output.stdout == expected, "{act:?} FIFO");
        }
    }
}

#[test]
fn new_files_of_a_pipe_are_in_the_working_directory() {
    let folder = scratch("pipes-out");
    let bytes = std::fs::read(root().join("captures/04_rdma_write.pcapng")).unwrap();
    for (arguments, made) in [
        (&["play", "-"][..], "stdin.html"),
        (&["play", "--data", "-"], "stdin.json"),
        (&["annotate", "--story", "04", "-"], "stdin-annotated.pcapng"),
    ] {
        let output = piped(arguments, &folder, &bytes);
        assert!(output.status.success(), "{output:?}");
        assert!(text(&output.stdout).contains(made) && folder.join(made).exists(), "{output:?}");
    }
}

#[test]
fn one_of_two_captures_may_come_through_a_pipe() {
    let folder = scratch("pipes-compare");
    let bytes = capture(conversation());
    let path = file("compared.pcapng", &bytes);
    let path = path.to_str().unwrap();
    for pair in [["-", path], [path, "-"], ["/dev/stdin", path]] {
        let output = piped(&[&["compare"], &pair[..]].concat(), &folder, &bytes);
        assert!(text(&output.stdout).starts_with("The same story"), "{pair:?}: {output:?}");
    }
    for pair in [["-", "-"], ["-", "/dev/stdin"]] {
        let output = piped(&[&["compare"], &pair[..]].concat(), &folder, &bytes);
        assert!(
            output.status.code() == Some(2) && text(&output.stderr).contains("are one pipe"),
            "{pair:?}: {output:?}"
        );
    }
    let output = piped(&["show", "--follow", "-"], &folder, &bytes);
    assert!(output.status.code() == Some(2) && text(&output.stderr).contains("can't be followed"), "{output:?}");
}

//! When a file of the device ends, and how many there can be.

use super::*;
use rustix::io::Errno;
use std::io::{Read, Write};

#[test]
fn a_file_is_open_until_its_last_descriptor_is_closed() {
    if acts() {
        for path in [UVERBS, RDMA_CM] {
            let file = open(path).unwrap();
            let copies: Vec<File> = (0..3).map(|_| file.try_clone().unwrap()).collect();
            drop(file);
            // Children have the descriptor too, unless they become another program.
            let mut sleeps = shell("echo up; read line").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            sleeps.stdout.take().unwrap().read_exact(&mut [0; 3]).unwrap();
            assert_eq!((&copies[2]).write(b"copied").unwrap(), 6);
            drop(copies);
            drop(sleeps);
        }
        let file = open(UVERBS).unwrap();
        // SAFETY: the child calls write and _exit alone.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let wrote = (&file).write(b"forked").is_ok();
            // SAFETY: as above.
            unsafe { libc::_exit(i32::from(!wrote)) };
        }
        drop(file);
        let mut status = 1;
        // SAFETY: the status is ours.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0);
        return;
    }
    let mut node = Node::start(again("files::a_file_is_open_until_its_last_descriptor_is_closed"), "127.0.0.9");
    let mut written = Vec::new();
    node.serve(|_, Wrote { call, bytes, .. }| {
        assert!(call.answer(Ok(bytes.len() as i64)));
        written.push(String::from_utf8(bytes).unwrap());
    });
    assert_eq!(written, ["copied", "copied", "forked"]);
    // Of an uverbs0 the end is told a moment later, when the next file may be open.
    node.heard.sort();
    let all = ["RdmaCm", "Uverbs", "Uverbs"];
    assert_eq!(node.heard, ["closed", "opened"].map(|what| all.map(|kind| format!("{what} {kind}"))).concat());
    node.end();
}

#[test]
fn the_files_of_a_killed_program_are_closed() {
    if acts() {
        let files = [UVERBS, RDMA_CM, UVERBS].map(|path| open(path).unwrap());
        let _copy = files[0].try_clone().unwrap();
        // Nobody answers this.
        let _ = (&files[0]).write(b"stuck");
        return;
    }
    let mut node = Node::start(again("files::the_files_of_a_killed_program_are_closed"), "127.0.0.9");
    let stuck = loop {
        match node.next() {
            Asked::Written { call, asker, .. } => break (call, asker.process),
            Asked::Opened { file, kind, .. } => drop(node.kinds.insert(file, kind)),
            other => panic!("{other:?}"),
        }
    };
    assert!(!stuck.0.is_gone() && stuck.1.read(8, &mut [0]) == Err(Errno::FAULT));
    node.child.kill().unwrap();
    let mut closed: Vec<Kind> = Vec::new();
    loop {
        match node.next() {
            Asked::Closed { file, .. } => closed.push(node.kinds[&file]),
            Asked::Deserted => break,
            other => panic!("{other:?}"),
        }
    }
    closed.sort_by_key(|kind| kind.numbers());
    assert_eq!(closed, [Kind::RdmaCm, Kind::Uverbs, Kind::Uverbs]);
    // An answer that nobody hears is no error.
    assert!(stuck.0.is_gone() && !stuck.0.answer(Ok(5)));
    assert_eq!(stuck.1.read(8, &mut [0]), Err(Errno::SRCH));
    assert!(!node.child.wait().unwrap().success());
}

#[test]
fn a_process_that_may_have_few_descriptors_has_the_device() {
    let open = |limit: &str, copies: usize| {
        let opens = "exec 3<>/dev/infiniband/rdma_cm; ".repeat(copies);
        shell(&format!("ulimit -n {limit}; {opens} test -e /proc/self/fd/3 && echo opened"))
    };
    for limit in ["16", "64", "100", "128", "256", "600", "1024"] {
        let (heard, said) = run(open(limit, 1), "127.0.0.9");
        assert_eq!(
            (heard, said.as_str()),
            (vec!["opened RdmaCm".into(), "closed RdmaCm".into()], "opened\n"),
            "{limit}"
        );
    }
    // As open(2) says it: too many open files.
    let mut node = Node::start(open("11", 1), "127.0.0.9");
    node.serve(|_, _| ());
    assert_eq!(node.heard, [""; 0]);
    let output = node.child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("Too many open files"), "{said}");
}

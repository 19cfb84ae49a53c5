//! What a program sees of the device, and what the device can do for it.

use super::*;
use rustix::io::Errno;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::thread;

#[test]
fn a_shell_sees_the_device_in_sysfs() {
    let line = "cat /sys/class/infiniband/rxe0/ports/1/gids/0 /sys/class/infiniband/rxe0/node_guid /sys/class/infiniband_verbs/uverbs0/dev
        readlink /sys/class/infiniband/rxe0; ls /sys/class/infiniband /dev/infiniband
        test -c /dev/infiniband/uverbs0 && test -w /dev/infiniband/rdma_cm && test -d /sys/class/infiniband && echo there
        ls -lL /dev/infiniband 2>&1 | grep -v total | cut -c1-10
        test -e /dev/infiniband/uverbs1 || echo no second; test -e /sys/class/infiniband/../net || echo no way out
        stat -c '%F %t:%T' /dev/infiniband/uverbs0; stat -Lc %F /sys/class/infiniband/rxe0; stat -c %F /sys/class/infiniband/rxe0
        cat /sys/class/infiniband/rxe0/ports/1/gids/1 2>&1 | grep -o 'Invalid argument'; cat /sys/class/infiniband/rxe1 2>&1 | grep -o 'No such file'
        echo x 2>/dev/null >/sys/class/infiniband/rxe0/node_desc || echo not to be written";
    let rest = "231:192\n../../devices/virtual/infiniband/rxe0\n/dev/infiniband:\nrdma_cm\nuverbs0\n\n/sys/class/infiniband:\n\
        rxe0\nthere\ncrw-rw-rw-\ncrw-rw-rw-\nno second\nno way out\ncharacter special file e7:c0\ndirectory\nsymbolic link\nInvalid argument\nNo such file\nnot to be written\n";
    for (address, numbers) in [
        ("127.0.0.9", "0000:0000:0000:0000:0000:ffff:7f00:0009\n0200:00ff:7f00:0009\n"),
        ("fd00::1:2", "fd00:0000:0000:0000:0000:0000:0001:0002\n0000:0000:0001:0002\n"),
    ] {
        let (heard, said) = run(shell(line), address);
        assert_eq!(said, format!("{numbers}{rest}"));
        assert_eq!(heard, [""; 0]);
    }
}

#[test]
fn a_write_comes_to_the_device_which_answers_it() {
    if acts() {
        let mut file = open(UVERBS).unwrap();
        assert!(file.metadata().unwrap().file_type().is_char_device());
        assert_eq!(file.metadata().unwrap().rdev(), 231 << 8 | 192);
        assert_eq!(file.write(b"hello").unwrap(), 5);
        // What the device answers is what the call says, wherever it comes from.
        assert_eq!(file.write(b"no").unwrap_err().raw_os_error(), Some(libc::EOPNOTSUPP));
        let copy = file.try_clone().unwrap();
        let far = thread::spawn(move || (&copy).write(b"hello").unwrap());
        assert_eq!(far.join().unwrap(), 5);
        return;
    }
    let mut node = Node::start(again("seen::a_write_comes_to_the_device_which_answers_it"), "127.0.0.9");
    let mut written = Vec::new();
    node.serve(|_, Wrote { call, bytes, .. }| {
        let result = if bytes == b"no" { Err(Errno::OPNOTSUPP) } else { Ok(bytes.len() as i64) };
        assert!(call.answer(result));
        written.push(String::from_utf8(bytes).unwrap());
    });
    assert_eq!(written, ["hello", "no", "hello"]);
    assert_eq!(node.heard, ["opened Uverbs", "closed Uverbs"]);
    node.end();
}

#[test]
fn the_device_writes_to_memory_and_gives_descriptors() {
    if acts() {
        let mut file = open(UVERBS).unwrap();
        let answer = [0_u8; 8];
        let number = file.write(&(answer.as_ptr() as u64).to_ne_bytes()).unwrap();
        // SAFETY: the device has given us this descriptor.
        let mut given = unsafe { File::from_raw_fd(number as i32) };
        let mut text = String::new();
        given.read_to_string(&mut text).unwrap();
        // SAFETY: it is the same array; the compiler cannot know that somebody else has written to it.
        assert_eq!((unsafe { std::ptr::read_volatile(&answer) }, text.as_str()), (*b"answered", "through"));
        return;
    }
    let mut node = Node::start(again("seen::the_device_writes_to_memory_and_gives_descriptors"), "127.0.0.9");
    node.serve(|machine, Wrote { call, bytes, file, process }| {
        let address = u64::from_ne_bytes(bytes.try_into().unwrap());
        process.write(address, b"answered").unwrap();
        assert_eq!(process.write(8, b"nowhere"), Err(Errno::FAULT));
        assert!(machine.files.pages(file).is_some());
        let (reading, writing) = rustix::pipe::pipe().unwrap();
        rustix::io::write(&writing, b"through").unwrap();
        let number = call.give(&reading, true).unwrap();
        assert!(call.answer(Ok(number.into())));
    });
    node.end();
}

#[test]
fn an_rdma_cm_is_readable_while_events_wait() {
    if acts() {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(RDMA_CM).unwrap();
        let readable = || {
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            poll(&mut [PollFd::new(&file, PollFlags::IN)], Some(&now)).unwrap() == 1
        };
        assert!(!readable());
        for expected in [true, true, false, false] {
            assert_eq!((&file).write(&[u8::from(expected)]).unwrap(), 1);
            assert_eq!(readable(), expected);
        }
        return;
    }
    let mut node = Node::start(again("seen::an_rdma_cm_is_readable_while_events_wait"), "127.0.0.9");
    let mut steps = ["ring twice", "hush", "hush", "hush"].into_iter();
    node.serve(|machine, Wrote { call, file, .. }| {
        assert!(call.must_not_wait(call.arguments[0] as i32) && !call.must_not_wait(0));
        match steps.next() {
            Some("hush") => machine.files.hush(file),
            _ => (0..2).for_each(|_| machine.files.ring(file)),
        }
        assert!(call.answer(Ok(1)));
    });
    assert_eq!(node.heard, ["opened RdmaCm", "closed RdmaCm"]);
    node.end();
}

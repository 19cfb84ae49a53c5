//! Programs that do what they should not, signals, and places where there can be no machine.

use super::*;
use rustix::io::Errno;
use rustix::process::WaitOptions;
use std::fs;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;

#[test]
fn a_write_that_escapes_spoils_no_queue() {
    if acts() {
        let file = open(UVERBS).unwrap();
        let copied_to = |number| {
            // SAFETY: dup2 to a number that is free.
            unsafe { OwnedFd::from_raw_fd(libc::dup2(file.as_raw_fd(), number)) }
        };
        assert_eq!(rustix::io::write(copied_to(40), b"spoiled"), Err(Errno::PERM));
        // One of our numbers again.
        assert_eq!(rustix::io::write(copied_to(50), b"copied"), Ok(6));
        return;
    }
    let (heard, _) = run(again("odd::a_write_that_escapes_spoils_no_queue"), "127.0.0.9");
    assert_eq!(heard, ["opened Uverbs", "closed Uverbs"]);
}

#[test]
fn a_descriptor_of_the_programs_own_with_one_of_our_numbers_is_its_own() {
    if acts() {
        let (mut reading, writing) = rustix::pipe::pipe().map(|(r, w)| (File::from(r), w)).unwrap();
        let file = open(UVERBS).unwrap();
        assert_eq!((&file).write(b"ours").unwrap(), 4);
        // The same number, which the machine knows already, in place of the device.
        // SAFETY: the number is the file's, which is given up.
        let own = unsafe { File::from_raw_fd(libc::dup2(writing.as_raw_fd(), file.into_raw_fd())) };
        assert_eq!((&own).write(b"own!").unwrap(), 4);
        let mut read = [0; 4];
        reading.read_exact(&mut read).unwrap();
        assert_eq!(&read, b"own!");
        assert!(own.metadata().unwrap().file_type().is_fifo());
        return;
    }
    let mut node =
        Node::start(again("odd::a_descriptor_of_the_programs_own_with_one_of_our_numbers_is_its_own"), "127.0.0.9");
    node.serve(|_, Wrote { call, bytes, .. }| {
        assert_eq!(bytes, b"ours");
        assert!(call.answer(Ok(4)));
    });
    assert_eq!(node.heard, ["opened Uverbs", "closed Uverbs"]);
    node.end();
}

/// Any call that is trapped, with arguments at random: most of them wrong.
fn any_call(random: &mut impl FnMut(usize) -> usize, buffer: &mut [u8]) {
    let mut numbers = vec![libc::SYS_write, libc::SYS_openat, libc::SYS_newfstatat, libc::SYS_statx, libc::SYS_dup];
    numbers.extend([libc::SYS_fcntl, libc::SYS_fstat, libc::SYS_readlinkat, libc::SYS_faccessat, libc::SYS_socket]);
    #[cfg(target_arch = "x86_64")]
    numbers.extend([libc::SYS_open, libc::SYS_stat, libc::SYS_lstat, libc::SYS_access, libc::SYS_readlink]);
    let paths = ["/dev/infiniband/uverbs0\0", "/dev/infiniband/rdma_cm\0", "/sys/class/infiniband/../rxe0/\0", "\0"];
    let mut one = || match random(8) {
        0 => random(1200),
        1 => [12, 48, 192, 512, 513, 1024][random(6)],
        2 => usize::MAX - random(5000),
        3 => buffer.as_ptr() as usize + random(buffer.len()),
        4 => 1 << random(64),
        5 | 6 => paths[random(paths.len())].as_ptr() as usize,
        _ => 0,
    };
    let arguments: [usize; 5] = std::array::from_fn(|_| one());
    let number = numbers[random(numbers.len())];
    // What a program does on its own descriptors is its own affair, and it needs these.
    let is_own = number == libc::SYS_fcntl || number == libc::SYS_dup || number == libc::SYS_write;
    let first = if is_own { 512 + arguments[0] % 512 } else { arguments[0] };
    let [_, a, b, c, d] = arguments;
    // SAFETY: what the kernel writes it writes to the buffer, or nowhere; paths are in memory that cannot be written.
    unsafe { libc::syscall(number, first, a, b, c, d) };
}

#[test]
fn calls_with_any_arguments_do_no_harm() {
    if acts() {
        // In a folder that is gone no call makes a file.
        let gone = env::temp_dir().join(format!("device-gone-{}", std::process::id()));
        fs::create_dir(&gone).unwrap();
        env::set_current_dir(&gone).unwrap();
        fs::remove_dir(&gone).unwrap();
        let (mut seed, mut buffer) = (7_u64, vec![b'x'; 64 << 10]);
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        (0..20_000).for_each(|_| any_call(&mut random, &mut buffer));
        // SAFETY: this test has no descriptor above the three.
        unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
        assert_eq!(open(UVERBS).unwrap().write(b"fine").unwrap(), 4);
        return;
    }
    let mut node = Node::start(again("odd::calls_with_any_arguments_do_no_harm"), "127.0.0.9");
    let mut last = Vec::new();
    node.serve(|_, Wrote { call, bytes, .. }| {
        assert!(call.answer(Ok(bytes.len() as i64)));
        last = bytes;
    });
    assert_eq!(last, b"fine");
    let count = |what: &str| node.heard.iter().filter(|heard| heard.starts_with(what)).count();
    assert!(count("opened") > 10 && count("opened") == count("closed"), "{:?}", node.heard);
    node.end();
}

extern "C" fn nothing(_: i32) {}

#[test]
fn a_signal_interrupts_a_call_whose_answer_is_kept_back() {
    /// A signal for this thread in 50 ms, whose handler does nothing.
    fn alarm(flags: i32) {
        // SAFETY: numbers alone, for which 0 is a value, and a handler that does nothing.
        let thread = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            (action.sa_sigaction, action.sa_flags) = (nothing as *const () as usize, flags);
            assert_eq!(libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut()), 0);
            libc::pthread_self()
        };
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            // SAFETY: the thread waits for this one's signal.
            unsafe { libc::pthread_kill(thread, libc::SIGALRM) };
        });
    }
    if acts() {
        let file = open(RDMA_CM).unwrap();
        for (flags, result) in [(0, Err(Errno::INTR)), (libc::SA_RESTART, Ok(5))] {
            alarm(flags);
            assert_eq!(rustix::io::write(&file, b"event"), result);
        }
        return;
    }
    let mut node = Node::start(again("odd::a_signal_interrupts_a_call_whose_answer_is_kept_back"), "127.0.0.9");
    let mut calls = 0;
    node.serve(|_, Wrote { call, .. }| {
        calls += 1;
        let begun = Instant::now();
        // It is answered then: the kernel makes EINTR of it, or the same call again. Before Linux 5.19 it has done so already.
        while calls < 3 && !call.is_over() {
            assert!(begun.elapsed() < PATIENCE, "no signal");
            std::thread::sleep(Duration::from_millis(1));
        }
        if calls == 3 {
            call.answer(Ok(5));
        }
    });
    assert_eq!(calls, 3);
    node.end();
}

#[test]
fn a_supervisor_may_have_many_descriptors() {
    if acts() {
        // One of the child's next ones, before it becomes a program, has one of the numbers that the filter traps.
        for most in [180, 186, 192, 198, 250] {
            let files: Vec<File> =
                (0..).map(|_| File::open("/dev/null").unwrap()).take_while(|file| file.as_raw_fd() < most).collect();
            let (_, said) = run(shell("echo started"), "127.0.0.9");
            assert_eq!((said.as_str(), files.is_empty()), ("started\n", false));
            // Who tells that it cannot be started has such a number, too.
            let mut nobody = Command::new("/nobody");
            let said = Machine::start(&mut nobody, [127, 0, 0, 9].into(), &folder(), false).unwrap_err();
            assert!(format!("{said:#}").contains("cannot start \"/nobody\": No such file"), "{said:#}");
        }
        return;
    }
    let mut child = again("odd::a_supervisor_may_have_many_descriptors").spawn().unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    assert!(child.wait().unwrap().success());
}

#[test]
fn there_is_one_supervisor() {
    if acts() {
        let said = Machine::start(&mut shell("exit 0"), [127, 0, 0, 8].into(), &folder(), false).unwrap_err();
        let said = format!("{said:#}");
        assert!(said.contains("seccomp fails") && said.contains("already runs under a supervisor"), "{said}");
        return;
    }
    run(again("odd::there_is_one_supervisor"), "127.0.0.9");
}

#[test]
fn where_a_sandbox_forbids_it_the_error_says_what_helps() {
    if acts() {
        let step = |code: u32, k: u32, jf: u8| libc::sock_filter { code: code as u16, jt: 0, jf, k };
        let refuse = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
        let mut steps = [
            step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
            step(libc::BPF_JMP | libc::BPF_JEQ, libc::SYS_process_vm_readv as u32, 1),
            step(libc::BPF_RET, refuse, 0),
            step(libc::BPF_RET, libc::SECCOMP_RET_ALLOW, 0),
        ];
        let sandbox = libc::sock_fprog { len: 4, filter: steps.as_mut_ptr() };
        rustix::thread::set_no_new_privs(true).unwrap();
        // SAFETY: the kernel reads the four steps.
        let installed = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &sandbox) };
        assert_eq!(installed, 0);
        let begun = Instant::now();
        let said = Machine::start(&mut shell("sleep 60"), [127, 0, 0, 8].into(), &folder(), false).unwrap_err();
        let said = format!("{said:#}");
        assert!(said.contains("process_vm_readv fails") && said.contains("Allow it there"), "{said}");
        // Nobody would answer its calls.
        let is_left = rustix::process::wait(WaitOptions::NOHANG).map(|_| ());
        assert!(begun.elapsed() < Duration::from_secs(30) && is_left == Err(Errno::CHILD));
        return;
    }
    let output = again("odd::where_a_sandbox_forbids_it_the_error_says_what_helps").output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

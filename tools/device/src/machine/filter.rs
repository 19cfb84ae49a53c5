//! Which system calls come to the supervisor: a program in BPF, which the kernel runs at each call (seccomp(2)).
//!
//! It sees the call's number and its arguments, but it cannot follow a pointer. So each call with a path comes to us, and of the
//! calls with a descriptor those whose descriptor has a number that we reserve. A program's own descriptor may have one,
//! too: then its calls take a detour, and nothing else happens.

use libc::{c_long, sock_filter};
use std::iter;
use std::mem::size_of;
use std::ops::Range;

/// Numbers of descriptors of our devices, in the order in which we look for a free one. The kernel would give the first free one, but
/// a call with a descriptor comes to us by its number, and each number that we reserve costs programs a detour if they have something of
/// their own there. So we begin high up, where few programs come; select(2) takes none above 1023. The next two are for programs that have
/// hundreds of these files, or of their own, and the short ones for those that may have few descriptors (`ulimit -n 128`, 64, 16).
pub const RESERVED: [Range<i32>; 6] = [512..1024, 192..512, 1024..NONE as i32, 96..128, 48..64, 12..16];

/// Which argument of mmap(2) is the descriptor.
pub const MMAP_DESCRIPTOR: usize = 4;

/// No descriptor has a number from here on: sysctl_nr_open is this, unless somebody has raised it.
pub const NONE: u32 = 1 << 20;

/// As `linux/audit.h` has them. A caller of another architecture has other numbers: it sees no device.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// What a call with a path asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnPath {
    Open,
    StatAt,
    #[allow(dead_code)] // Two that only old architectures have.
    Stat,
    #[allow(dead_code)]
    Lstat,
    Statx,
    Access,
    Readlink,
    /// Extended attributes, for which `ls -l` asks.
    Xattr,
}

/// Calls with a path, and which of their arguments it is. The last ones only old architectures have.
const PATHS: &[(c_long, OnPath, usize)] = &[
    (libc::SYS_openat, OnPath::Open, 1),
    (libc::SYS_newfstatat, OnPath::StatAt, 1),
    (libc::SYS_statx, OnPath::Statx, 1),
    (libc::SYS_faccessat, OnPath::Access, 1),
    (libc::SYS_faccessat2, OnPath::Access, 1),
    (libc::SYS_readlinkat, OnPath::Readlink, 1),
    (libc::SYS_getxattr, OnPath::Xattr, 0),
    (libc::SYS_lgetxattr, OnPath::Xattr, 0),
    (libc::SYS_listxattr, OnPath::Xattr, 0),
    (libc::SYS_llistxattr, OnPath::Xattr, 0),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, OnPath::Open, 0),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_stat, OnPath::Stat, 0),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_lstat, OnPath::Lstat, 0),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_access, OnPath::Access, 0),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_readlink, OnPath::Readlink, 0),
];

/// What a call with this number asks, and which of its arguments is the path.
pub fn on_path(number: c_long) -> Option<(OnPath, usize)> {
    PATHS.iter().find(|call| call.0 == number).map(|(_, asked, at)| (*asked, *at))
}

/// When a call comes to us.
enum When {
    Always,
    /// The argument with this index is one of our descriptors.
    OurDescriptor(u32),
    /// The same, or a number that [no descriptor](NONE) has.
    OurDescriptorOrNone,
    /// It has a path; or the argument with this index says AT_EMPTY_PATH, and the first is one of our descriptors.
    PathOrOurs(u32),
    /// A socket with the family and the protocol of netlink's RDMA part.
    RdmaSocket,
    /// It waits for as many descriptors as this argument says, and that's none.
    NoDescriptor(u32),
}

/// By which a program sleeps for a time: calls that do nothing else, and those that wait for descriptors and get none. Then these have
/// their count in this argument.
const SLEEPS: &[(c_long, Option<u32>)] = &[
    (libc::SYS_nanosleep, None),
    (libc::SYS_clock_nanosleep, None),
    (libc::SYS_ppoll, Some(1)),
    (libc::SYS_pselect6, Some(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_poll, Some(1)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_select, Some(0)),
];

/// The most frequent one first: a write is a doorbell. Sleeps are ours where time is.
fn trapped(is_time_ours: bool) -> impl Iterator<Item = (c_long, When)> {
    let first = [libc::SYS_fstat, libc::SYS_dup, libc::SYS_fcntl, libc::SYS_close].map(|number| (number, 0));
    let ours = first.into_iter().chain([(libc::SYS_mmap, MMAP_DESCRIPTOR as u32)]);
    let paths = PATHS.iter().map(|(number, ..)| match *number {
        // This is fstat(3) of glibc 2.33 to 2.38.
        libc::SYS_newfstatat => (*number, When::PathOrOurs(3)),
        libc::SYS_statx => (*number, When::PathOrOurs(2)),
        _ => (*number, When::Always),
    });
    iter::once((libc::SYS_write, When::OurDescriptorOrNone))
        .chain(ours.map(|(number, at)| (number, When::OurDescriptor(at))))
        .chain(paths)
        .chain([(libc::SYS_socket, When::RdmaSocket)])
        .chain(
            SLEEPS
                .iter()
                .filter(move |_| is_time_ours)
                .map(|(number, count)| (*number, count.map_or(When::Always, When::NoDescriptor))),
        )
}

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
/// The lower half of an argument: both architectures are little-endian.
const fn argument(index: u32) -> u32 {
    16 + index * size_of::<u64>() as u32
}

const TRAP: sock_filter = step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_USER_NOTIF, 0, 0);
const PASS: sock_filter = step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0);

const fn step(code: u32, k: u32, yes: u8, no: u8) -> sock_filter {
    sock_filter { code: code as u16, jt: yes, jf: no, k }
}

const fn load(offset: u32) -> sock_filter {
    step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0, 0)
}

/// Skips this many steps if the test says yes, or no.
const fn test(kind: u32, value: u32, yes: u8, no: u8) -> sock_filter {
    step(libc::BPF_JMP | kind | libc::BPF_K, value, yes, no)
}

/// The whole program.
pub fn program(is_time_ours: bool) -> Vec<sock_filter> {
    let mut program = vec![load(ARCH), test(libc::BPF_JEQ, ARCHITECTURE, 1, 0), PASS, load(NUMBER)];
    for (number, when) in trapped(is_time_ours) {
        let rest = when.steps();
        // Another call: behind these steps.
        program.push(test(libc::BPF_JEQ, number as u32, 0, rest.len() as u8));
        program.extend(rest);
    }
    program.push(PASS);
    program
}

impl When {
    /// The steps that decide about a call. The last one ends the program.
    fn steps(&self) -> Vec<sock_filter> {
        match self {
            When::Always => vec![TRAP],
            When::OurDescriptor(at) => {
                let in_range = |range: &Range<i32>| {
                    let (start, end) = (range.start as u32, range.end as u32);
                    [test(libc::BPF_JGE, end, 2, 0), test(libc::BPF_JGE, start, 0, 1), TRAP]
                };
                let ranges = RESERVED.iter().flat_map(in_range);
                [load(argument(*at))].into_iter().chain(ranges).chain([PASS]).collect()
            }
            When::OurDescriptorOrNone => {
                let none = [load(argument(0)), test(libc::BPF_JGE, NONE, 0, 1), TRAP];
                none.into_iter().chain(When::OurDescriptor(0).steps()).collect()
            }
            When::PathOrOurs(flags) => {
                let path = [load(argument(*flags)), test(libc::BPF_JSET, libc::AT_EMPTY_PATH as u32, 1, 0), TRAP];
                path.into_iter().chain(When::OurDescriptor(0).steps()).collect()
            }
            When::NoDescriptor(count) => vec![load(argument(*count)), test(libc::BPF_JEQ, 0, 0, 1), TRAP, PASS],
            When::RdmaSocket => {
                const NETLINK_RDMA: u32 = 20;
                let family = [load(argument(0)), test(libc::BPF_JEQ, libc::AF_NETLINK as u32, 0, 3)];
                let protocol = [load(argument(2)), test(libc::BPF_JEQ, NETLINK_RDMA, 0, 1), TRAP, PASS];
                family.into_iter().chain(protocol).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the program as the kernel would; whether the call is trapped.
    fn is_trapped(is_time_ours: bool, architecture: u32, number: c_long, arguments: [u64; 6]) -> bool {
        let mut data = [number as u32, architecture, 0, 0].to_vec();
        data.extend(arguments.iter().flat_map(|argument| [*argument as u32, (*argument >> 32) as u32]));
        let (program, mut at, mut register) = (program(is_time_ours), 0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            at += 1;
            let jump = |is_so: bool| usize::from(if is_so { jt } else { jf });
            match u32::from(code) & !libc::BPF_K {
                code if code == libc::BPF_LD | libc::BPF_W | libc::BPF_ABS => register = data[k as usize / 4],
                code if code == libc::BPF_JMP | libc::BPF_JEQ => at += jump(register == k),
                code if code == libc::BPF_JMP | libc::BPF_JGE => at += jump(register >= k),
                code if code == libc::BPF_JMP | libc::BPF_JSET => at += jump(register & k != 0),
                _ => return k == libc::SECCOMP_RET_USER_NOTIF,
            }
        }
    }

    #[test]
    fn calls_with_a_path_or_with_our_descriptors_are_trapped() {
        let traps = |number, arguments: &[u64]| {
            let mut all = [0; 6];
            all[..arguments.len()].copy_from_slice(arguments);
            is_trapped(false, ARCHITECTURE, number, all)
        };
        for number in [libc::SYS_write, libc::SYS_fstat, libc::SYS_dup, libc::SYS_fcntl, libc::SYS_close] {
            let of = |descriptor: u64| traps(number, &[descriptor]);
            assert!([192, 255, 512, 1023, 1024, 1 << 19, 96, 48, 63, 12, 15, 512 | 7 << 32].into_iter().all(of));
            assert!(![0, 11, 16, 47, 64, 95, 128, 191].into_iter().any(of));
            // Only of a write it's worth knowing that it goes nowhere.
            assert_eq!(of(u64::from(u32::MAX)), number == libc::SYS_write);
        }
        let empty = libc::AT_EMPTY_PATH as u64;
        for (number, flags) in [(libc::SYS_newfstatat, [1, 0, 0]), (libc::SYS_statx, [1, 1, 1])] {
            let (with, without) = (flags.map(|_| empty), [0; 3]);
            assert!(traps(number, &[&[3, 1][..], &without].concat()));
            assert!(traps(number, &[&[600, 1][..], &with].concat()));
            assert!(!traps(number, &[&[3, 1][..], &with].concat()));
        }
        assert!(PATHS.iter().all(|(number, ..)| traps(*number, &[])));
        assert!(traps(libc::SYS_socket, &[16, 3, 20]));
        assert!(!traps(libc::SYS_socket, &[16, 3, 0]) && !traps(libc::SYS_socket, &[2, 3, 20]));
        assert!(!traps(libc::SYS_read, &[600]) && !traps(libc::SYS_execve, &[]));
        let maps = |descriptor| traps(libc::SYS_mmap, &[600, 600, 3, 1, descriptor, 0]);
        assert!(maps(600) && !maps(3) && !maps(u64::MAX), "memory of no file has -1");
    }

    #[test]
    fn a_caller_of_another_architecture_sees_no_device() {
        assert!(is_trapped(false, ARCHITECTURE, libc::SYS_openat, [0; 6]));
        assert!(!is_trapped(false, 0x4000_0003, libc::SYS_openat, [0; 6]));
        // x32 calls have the architecture of x86-64, and a bit of their own in the number.
        assert!(!is_trapped(false, ARCHITECTURE, libc::SYS_openat | 0x4000_0000, [0; 6]));
    }

    #[test]
    fn sleeps_are_trapped_where_time_is_ours() {
        for (number, count) in SLEEPS {
            let traps = |ours, arguments| is_trapped(ours, ARCHITECTURE, *number, arguments);
            assert_eq!([false, true].map(|ours| traps(ours, [0; 6])), [false, true]);
            // Who waits for two descriptors doesn't sleep for a time.
            assert_eq!(traps(true, [2; 6]), count.is_none());
        }
        assert!(is_trapped(true, ARCHITECTURE, libc::SYS_openat, [0; 6]));
    }
}

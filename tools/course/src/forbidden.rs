//! System calls that a program in the [sandbox](crate::sandbox) may not make, as a filter that the kernel runs at each call
//! (seccomp(2)). bubblewrap gets it as a file.
//!
//! What the program prints goes into a socket of ours, which is outside. So it must not send anything elsewhere by that socket, nor
//! connect it with another one. Some memory belongs to no process, and no limit counts it. And a sandbox of its own, a debugger or a ring
//! of calls that no filter sees (io_uring(7)) has nothing to do with RDMA.

use libc::{c_long, sock_filter};
use std::mem::size_of;

/// Calls that fail with EPERM.
const FORBIDDEN: [c_long; 34] = [
    // To reach somebody outside.
    libc::SYS_connect,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Memory that no limit counts.
    libc::SYS_memfd_create,
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
    // To look into others, or into the kernel.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    // Other root folders.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
];

/// As `linux/audit.h` has them.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
/// From here on numbers are calls of x32, which are the same ones under another name.
const OTHER_NUMBERS: u32 = 0x4000_0000;

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const fn argument(index: u32) -> u32 {
    16 + index * size_of::<u64>() as u32
}

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const IS: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const IS_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
const HAS: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

const fn step(code: u32, k: u32, yes: u8, no: u8) -> sock_filter {
    sock_filter { code: code as u16, jt: yes, jf: no, k }
}

const PASS: sock_filter = step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0);
const fn fails(errno: i32) -> sock_filter {
    step(RETURN, libc::SECCOMP_RET_ERRNO | errno as u32, 0, 0)
}

/// The filter, as bubblewrap reads it.
pub(crate) fn filter() -> Vec<u8> {
    let mut steps = vec![
        step(LOAD, ARCH, 0, 0),
        step(IS, ARCHITECTURE, 1, 0),
        step(RETURN, libc::SECCOMP_RET_KILL_PROCESS, 0, 0),
        step(LOAD, NUMBER, 0, 0),
        step(IS_LEAST, OTHER_NUMBERS, 0, 1),
        fails(libc::ENOSYS),
        // Its flags are behind a pointer, which no filter can follow. The C library asks clone(2) then.
        step(IS, libc::SYS_clone3 as u32, 0, 1),
        fails(libc::ENOSYS),
    ];
    for number in FORBIDDEN {
        steps.extend([step(IS, number as u32, 0, 1), fails(libc::EPERM)]);
    }
    let namespaces = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP;
    // A test of an argument ends the filter.
    steps.extend([
        step(IS, libc::SYS_clone as u32, 0, 4),
        step(LOAD, argument(0), 0, 0),
        step(HAS, namespaces as u32, 0, 1),
        fails(libc::EPERM),
        PASS,
        // With an address.
        step(IS, libc::SYS_sendto as u32, 0, 5),
        step(LOAD, argument(4), 0, 0),
        step(IS, 0, 0, 2),
        step(LOAD, argument(4) + 4, 0, 0),
        step(IS, 0, 1, 0),
        fails(libc::EPERM),
        PASS,
    ]);
    let bytes = |step: sock_filter| {
        let [code, k] = [step.code.to_ne_bytes().to_vec(), step.k.to_ne_bytes().to_vec()];
        [code, vec![step.jt, step.jf], k].concat()
    };
    steps.into_iter().flat_map(bytes).collect()
}

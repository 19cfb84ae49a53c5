//! What differs between processor architectures, in one table.
//!
//! The machines always have the host's architecture: the programs that run in them are the host's own.

use anyhow::{ensure, Result};
pub use std::env::consts::ARCH;
#[cfg(target_arch = "x86_64")]
use std::time::{Duration, Instant};

/// How QEMU builds a machine of one architecture.
#[derive(Debug)]
pub struct Arch {
    /// Value of `-M`. Devices the lab has no use for are left out: the boot is faster.
    pub machine: &'static str,
    /// The processor that is emulated without KVM.
    pub processor: &'static str,
    /// The first serial port as the guest names it: kernel messages and the agent.
    pub console: &'static str,
    /// The second serial port as the guest names it: the program's standard output, and the input of a shell.
    pub program: &'static str,
    /// The third one: standard error.
    pub error: &'static str,
    /// QEMU arguments that connect the second serial port to the character device `program`.
    pub program_port: [&'static str; 2],
    /// Kernel arguments that make an emulated processor faster; each is harmless on a real one.
    pub kernel_arguments: &'static str,
    /// The dynamic loader: run as a program, it lists the libraries of another one.
    pub loader: &'static str,
}

const TABLE: [Arch; 2] = [
    Arch {
        // `microvm` would boot faster but hangs in about half of its boots without KVM.
        machine: "q35,vmport=off,sata=off,smbus=off",
        // Emulated, the fast copies of the newest processors (ERMS) go byte by byte; without them Linux copies words.
        processor: "max,-erms,-fsrm",
        console: "ttyS0",
        program: "ttyS1",
        error: "ttyS2",
        program_port: ["-serial", "chardev:program"],
        // Without the first one the kernel finds the emulated time stamp counter wanting, and asks a slow timer
        // for the time instead; without the second, a kernel that a busy host lets stand for a moment takes its timer for
        // broken and panics; five-level page tables only make each look-up longer.
        kernel_arguments: "tsc=reliable no_timer_check no5lvl mitigations=off init_on_alloc=0",
        loader: "/lib64/ld-linux-x86-64.so.2",
    },
    Arch {
        machine: "virt",
        // `max` boots seven times as slowly: pointer authentication is expensive to emulate, and so are others of its features.
        processor: "cortex-a72",
        console: "ttyAMA0",
        // The `virt` board has one serial port of its own; the others are PCI cards.
        program: "ttyS0",
        error: "ttyS1",
        program_port: ["-device", "pci-serial,chardev=program"],
        kernel_arguments: "mitigations=off init_on_alloc=0",
        loader: "/lib/ld-linux-aarch64.so.1",
    },
];

/// The architecture of this host; [`check`] tells if it has none of the table.
pub const HOST: &Arch = if cfg!(target_arch = "aarch64") { &TABLE[1] } else { &TABLE[0] };

pub fn check() -> Result<()> {
    let is_known = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
    ensure!(
        is_known,
        "the lab emulates x86_64 and aarch64 machines, not {ARCH}. Run the lessons on two real machines instead"
    );
    Ok(())
}

/// Folder below `/usr/lib` that holds shared libraries on Debian and Ubuntu.
pub fn library_folder() -> String {
    format!("{ARCH}-linux-gnu")
}

/// How fast this host's time stamp counter counts, if it has one.
pub fn time_stamps_per_ms() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        const SPAN: Duration = Duration::from_millis(20);
        // SAFETY: each x86-64 processor has this instruction, and it touches no memory.
        let now = || (unsafe { std::arch::x86_64::_rdtsc() }, Instant::now());
        let (first, began) = now();
        std::thread::sleep(SPAN);
        let (last, ended) = now();
        u64::try_from(u128::from(last.wrapping_sub(first)) * 1_000_000 / (ended - began).as_nanos()).ok()
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

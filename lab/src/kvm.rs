//! Whether KVM really runs a guest here.
//!
//! `/dev/kvm` may exist, open and answer while a guest never executes an instruction (a cloud machine without nested
//! virtualization). So a machine is started on it, and has to say something within a moment. The answer is
//! remembered until the host is rebooted; a no only when it was given twice, as the host may have been busy.

use crate::arch::Arch;
use crate::cpio::Archive;
use crate::files;
use crate::interrupt::Interrupt;
use crate::kernel::Kernel;
use crate::machine::{Hardware, Machine, Start};
use crate::payload;
use crate::port::Port;
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// With KVM the kernel speaks within half a second.
const MOMENT: Duration = Duration::from_secs(5);

/// Finds out, or remembers, whether machines run on KVM.
///
/// # Errors
/// The answer cannot be written down in `folder`, or the lab was interrupted.
pub fn runs(folder: &Path, arch: &'static Arch, qemu: &Path, kernel: &Kernel, interrupt: &Interrupt) -> Result<bool> {
    if File::options().read(true).write(true).open("/dev/kvm").is_err() {
        return Ok(false);
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let [yes, perhaps, no] =
        ["true", "perhaps", "false"].map(|answer| format!("{answer} {} {}", qemu.display(), boot.trim()));
    let note = folder.join("kvm");
    let known = fs::read_to_string(&note).unwrap_or_default();
    if known == yes || known == no {
        return Ok(known == yes);
    }
    let answer = probe(arch, qemu, kernel, interrupt)?;
    let learned = if answer {
        &yes
    } else if known == perhaps {
        &no
    } else {
        &perhaps
    };
    files::write(&note, learned.as_bytes())?;
    Ok(answer)
}

/// Boots the kernel with nothing to run: it panics, and says so, if the guest runs at all.
fn probe(arch: &'static Arch, qemu: &Path, kernel: &Kernel, interrupt: &Interrupt) -> Result<bool> {
    let initramfs = tempfile::NamedTempFile::new().context("cannot create a temporary file")?;
    files::write(initramfs.path(), &Archive::new().finish())?;
    let hardware = Hardware {
        arch,
        qemu: qemu.to_owned(),
        kvm: true,
        memory: 256,
        kernel: kernel.image.clone(),
        initramfs: initramfs.path().to_owned(),
    };
    let memory = tempfile::NamedTempFile::new().context("cannot create a temporary file")?;
    let machine = Machine::start(&hardware, 1, &payload::empty()?, Port::Output, Start::Boot(memory.path()))?;
    machine.console.set_nonblocking(true).context("cannot use the console")?;
    let limit = Instant::now() + MOMENT;
    interrupt.wait(&[(machine.console.as_fd(), false)], limit)?;
    // The console's end, too, makes it readable: then QEMU has refused to use KVM.
    Ok(matches!(std::io::Read::read(&mut &machine.console, &mut [0]), Ok(1)))
}

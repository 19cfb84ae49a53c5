//! Whether KVM really runs a guest here.
//!
//! `/dev/kvm` may exist, open and answer while a guest never executes an instruction (a cloud machine without nested
//! virtualization). So a machine is started on it, and has to say something within a moment. The answer is
//! remembered until the host is rebooted; a no only when it was given twice, as the host may have been busy.

use crate::archive::Archive;
use crate::files;
use crate::interrupt::Interrupt;
use crate::kernel::Kernel;
use crate::machine::{Hardware, Machine, Start, Wiring};
use crate::port::SerialPort;
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// With KVM the kernel speaks within half a second.
const MOMENT: Duration = Duration::from_secs(5);

/// Finds out, or remembers, whether machines run on KVM.
pub fn runs(folder: &Path, qemu: &Path, kernel: &Kernel, interrupt: &Interrupt) -> Result<bool> {
    if File::options().read(true).write(true).open("/dev/kvm").is_err() {
        return Ok(false);
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let asked = format!(" {} {}", qemu.display(), boot.trim());
    let note = folder.join("kvm");
    let known = fs::read_to_string(&note).unwrap_or_default();
    let known = known.strip_suffix(&asked).unwrap_or_default();
    if known == "true" || known == "false" {
        return Ok(known == "true");
    }
    let answer = probe(qemu, kernel, interrupt)?;
    let learned = match (answer, known) {
        (true, _) => "true",
        (false, "perhaps") => "false",
        (false, _) => "perhaps",
    };
    files::write(&note, (learned.to_owned() + &asked).as_bytes())?;
    Ok(answer)
}

/// Boots the kernel with nothing to run: it panics, and says so, if the guest runs at all.
fn probe(qemu: &Path, kernel: &Kernel, interrupt: &Interrupt) -> Result<bool> {
    let initramfs = tempfile::NamedTempFile::new().context("cannot create a temporary file")?;
    files::write(initramfs.path(), &Archive::default().finish()?)?;
    let (qemu, kernel, initramfs) = (qemu.to_owned(), kernel.image.clone(), initramfs.path().to_owned());
    let hardware = Hardware { qemu, kvm: true, memory: 256, kernel, initramfs };
    let memory = tempfile::NamedTempFile::new().context("cannot create a temporary file")?;
    let place = Wiring::new("probe", SerialPort::Output)?;
    let machine = Machine::start(&hardware, 1, &place, Start::Boot(memory.path()))?;
    let mut console = &machine.agent.console;
    interrupt.wait(&[(console.as_fd(), false)], Instant::now() + MOMENT)?;
    // The console's end also makes it readable. Then QEMU has refused to use KVM.
    Ok(matches!(console.read(&mut [0]), Ok(1)))
}

//! What the captures are recorded with.

use anyhow::{ensure, Context, Result};
use std::path::Path;
use std::process::Command;

/// Names and versions of what a capture depends on.
#[derive(Debug)]
pub struct Versions {
    /// Of the machines, for example `Linux 6.1.0-56-amd64`.
    pub kernel: String,
    /// Of libibverbs and librdmacm, for example `rdma-core 44.0`.
    pub rdma_core: String,
    /// Of the emulator, for example `QEMU 7.2.22`.
    pub qemu: String,
}

impl Versions {
    /// Asks a machine of the lab for its kernel, and this machine for the rest: the lab uses its libraries.
    ///
    /// # Errors
    /// One of the programs is missing or says something unknown.
    pub fn find(lab: &Path, runs: &Path) -> Result<Versions> {
        run(Command::new(lab).args(["exec", "--server", "uname -sr"]))?;
        let log = runs.join("exec/server.log");
        let kernel = std::fs::read_to_string(&log).with_context(|| format!("cannot read {}", log.display()))?;
        // The package's version follows that of the library's interface: 1.14.44.0 is rdma-core 44.0.
        let library = run(Command::new("pkg-config").args(["--modversion", "libibverbs"]))?;
        let rdma_core: Vec<&str> = library.trim().splitn(3, '.').collect();
        let emulator = format!("qemu-system-{}", std::env::consts::ARCH);
        let qemu = run(Command::new(emulator).arg("--version"))?;
        let qemu = qemu.split_whitespace().nth(3).context("QEMU does not say its version")?;
        Ok(Versions {
            kernel: kernel.trim().into(),
            rdma_core: format!("rdma-core {}", rdma_core.last().copied().unwrap_or_default()),
            qemu: format!("QEMU {qemu}"),
        })
    }
}

/// What a program prints.
fn run(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run {program}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} failed: {}", errors.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

//! Finding a Linux kernel with SoftRoCE that the machines can boot, without installing one.
//!
//! In this order: the host's own, if its files are readable and hold `rdma_rxe`; one that was
//! downloaded before; one that `apt-get download` brings (that needs no root) and `dpkg-deb -x` unpacks.

use crate::arch::Arch;
use crate::files::{self, read, write};
use crate::interrupt::Interrupt;
use crate::{modules, unpack};
use anyhow::{bail, ensure, Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A kernel image and the modules that belong to it.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// Version as `uname -r` prints it.
    pub release: String,
    /// What QEMU boots: `vmlinux` taken out of the image, or else the image itself.
    pub image: PathBuf,
    /// The folder with `modules.dep`.
    pub modules: PathBuf,
}

impl Kernel {
    /// Reads `modules.dep`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn modules_dep(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&read(&self.modules.join("modules.dep"))?).into_owned())
    }
}

/// Finds a kernel, or downloads one into `store`.
///
/// # Errors
/// There is none and none can be downloaded; the message says what to install.
pub fn find(store: &Path, arch: &Arch, interrupt: &Interrupt) -> Result<Kernel> {
    // Two first runs at a time must not download, and unpack, over each other.
    let _lock = files::lock(store, "fetching the kernel", interrupt)?;
    let files = match host_kernel().or_else(|| stored_kernel(store)) {
        Some(files) => files,
        None => download(store, arch)?,
    };
    let image = bootable(store, &files)?;
    Ok(Kernel { release: files.release, image, modules: files.modules })
}

/// Where the parts of a kernel lie before its image has been looked at.
struct Files {
    release: String,
    vmlinuz: PathBuf,
    modules: PathBuf,
}

impl Files {
    /// `None` unless all the lab needs is there and readable.
    fn complete(release: &str, vmlinuz: PathBuf, modules: PathBuf) -> Option<Self> {
        let dep = fs::read_to_string(modules.join("modules.dep")).ok()?;
        let has_rxe = dep.lines().any(|line| modules::name_of(line.split(':').next().unwrap_or("")) == modules::RXE);
        (has_rxe && fs::File::open(&vmlinuz).is_ok()).then(|| Self { release: release.to_owned(), vmlinuz, modules })
    }
}

fn host_kernel() -> Option<Files> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let release = release.trim();
    let modules = Path::new("/lib/modules").join(release);
    Files::complete(release, format!("/boot/vmlinuz-{release}").into(), modules)
}

/// The newest kernel in the store: one folder per release, with `vmlinuz` and `modules/` in it.
fn stored_kernel(store: &Path) -> Option<Files> {
    let mut folders: Vec<PathBuf> = fs::read_dir(store).ok()?.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    folders.into_iter().rev().find_map(|folder| {
        let release = folder.file_name()?.to_str()?;
        Files::complete(release, folder.join("vmlinuz"), folder.join("modules"))
    })
}

/// `vmlinux` if the image holds one (taken out once and kept in the store), else the image.
fn bootable(store: &Path, files: &Files) -> Result<PathBuf> {
    let folder = store.join(&files.release);
    let vmlinux = folder.join("vmlinux");
    if vmlinux.exists() {
        return Ok(vmlinux);
    }
    match unpack::vmlinux(&read(&files.vmlinuz)?)? {
        Some(elf) => {
            write(&vmlinux, &elf)?;
            Ok(vmlinux)
        }
        None => Ok(files.vmlinuz.clone()),
    }
}

fn download(store: &Path, arch: &Arch) -> Result<Files> {
    let packages = arch
        .kernel_packages
        .iter()
        .map(|meta| packages_of(meta))
        .find(|packages| !packages.is_empty())
        .with_context(|| no_kernel(arch))?;
    eprintln!("lab: downloading a kernel for the machines (it is not installed): {}", packages.join(" "));
    fs::create_dir_all(store).with_context(|| format!("cannot create {}", store.display()))?;
    let scratch = tempfile::tempdir_in(store).with_context(|| format!("cannot write to {}", store.display()))?;
    succeed(Command::new("apt-get").arg("download").args(&packages).current_dir(scratch.path()))?;
    let root = scratch.path().join("root");
    for package in with_suffix(scratch.path(), ".deb")? {
        succeed(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&root))?;
    }
    keep_what_is_needed(&root, scratch.path(), store)
}

/// The packages with files that stand behind a meta package such as `linux-image-amd64`.
fn packages_of(meta: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![meta.to_owned()];
    while let Some(package) = open.pop() {
        for name in dependencies(&package) {
            if holds_files(&name) && !found.contains(&name) {
                found.push(name.clone());
                open.push(name);
            }
        }
    }
    found
}

/// Whether a package is the image or the modules of a certain version, as Debian and Ubuntu name them.
fn holds_files(package: &str) -> bool {
    let of_kernel = package.starts_with("linux-image-") || package.starts_with("linux-modules-");
    of_kernel && package.split('-').any(|part| part.starts_with(|c: char| c.is_ascii_digit()))
}

/// Direct dependencies of a package; none if apt does not know it or is not there.
fn dependencies(package: &str) -> Vec<String> {
    match Command::new("apt-cache").args(["depends", "--important", package]).output() {
        Ok(output) => parse_dependencies(&String::from_utf8_lossy(&output.stdout)),
        Err(_) => Vec::new(),
    }
}

/// Reads lines such as `  Depends: linux-image-6.1.0-56-amd64`. Of alternatives (` |Depends:`) only the last one counts:
/// no kernel package has any.
fn parse_dependencies(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.trim().strip_prefix("Depends: ")).map(str::to_owned).collect()
}

/// Copies the image and the wanted modules out of the unpacked packages: 10 MB of 400.
fn keep_what_is_needed(root: &Path, scratch: &Path, store: &Path) -> Result<Files> {
    let folders = fs::read_dir(root.join("lib/modules")).context("the kernel package holds no lib/modules")?;
    let release = folders.flatten().next().context("the kernel package holds no modules")?.file_name();
    let release = release.to_string_lossy().into_owned();
    let depmod = crate::files::program("depmod").context("cannot find `depmod`; install the package kmod")?;
    succeed(Command::new(depmod).arg("-b").arg(root).arg(&release))?;

    let unpacked = root.join("lib/modules").join(&release);
    let dep = String::from_utf8_lossy(&read(&unpacked.join("modules.dep"))?).into_owned();
    let kept = scratch.join("kept");
    for module in modules::load_order(&dep, &modules::WANTED) {
        write(&kept.join("modules").join(&module), &read(&unpacked.join(&module))?)?;
    }
    write(&kept.join("modules/modules.dep"), dep.as_bytes())?;
    write(&kept.join("vmlinuz"), &read(&root.join(format!("boot/vmlinuz-{release}")))?)?;

    let folder = store.join(&release);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot replace {}", folder.display()))?;
    }
    fs::rename(&kept, &folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let files = Files::complete(&release, folder.join("vmlinuz"), folder.join("modules"));
    files.with_context(|| format!("the downloaded kernel {release} has no module {}", modules::RXE))
}

fn with_suffix(folder: &Path, suffix: &str) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let found: Vec<PathBuf> = paths.filter(|path| path.to_string_lossy().ends_with(suffix)).collect();
    ensure!(!found.is_empty(), "no *{suffix} in {}", folder.display());
    Ok(found)
}

/// Runs a command whose output only matters when it fails.
fn succeed(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run `{name}`"))?;
    if !output.status.success() {
        bail!("{command:?} failed ({}):\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

fn no_kernel(arch: &Arch) -> String {
    format!(
        "no kernel with SoftRoCE ({}) for the machines: this host's own is not readable or lacks the module, \
         and apt knows none of {}.\n\
         Debian, Ubuntu: run `apt-get update` and try again. \
         Fedora: install kernel-modules-extra and make /boot/vmlinuz-$(uname -r) readable.",
        modules::RXE,
        arch.kernel_packages.join(", "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_packages_are_told_from_their_company() {
        let ubuntu = "linux-image-generic\n  Depends: linux-image-6.8.0-60-generic\n  Depends: linux-modules-extra-6.8.0-60-generic\n\
                      \x20 Depends: linux-firmware\n  Depends: intel-microcode\n  Recommends: thermald\n";
        let names: Vec<String> = parse_dependencies(ubuntu).into_iter().filter(|name| holds_files(name)).collect();
        assert_eq!(names, ["linux-image-6.8.0-60-generic", "linux-modules-extra-6.8.0-60-generic"]);
        assert!(!holds_files("linux-image-amd64") && !holds_files("linux-base"));
    }

    #[test]
    fn a_kernel_without_rxe_or_image_is_no_kernel() {
        let folder = tempfile::tempdir().unwrap();
        let (image, modules) = (folder.path().join("vmlinuz"), folder.path().join("modules"));
        let complete = || Files::complete("6.1", image.clone(), modules.clone()).is_some();
        write(&image, b"").unwrap();
        write(&modules.join("modules.dep"), b"kernel/virtio.ko.xz:\n").unwrap();
        assert!(!complete(), "no rdma_rxe");
        write(&modules.join("modules.dep"), b"kernel/rdma_rxe.ko.xz: kernel/ib_core.ko.xz\n").unwrap();
        assert!(complete());
        fs::remove_file(&image).unwrap();
        assert!(!complete(), "no image");
    }
}

//! Finding a Linux kernel with SoftRoCE that the machines can boot, without installing one.
//!
//! The one that the run names; else, in this order: the host's own, if its files are readable and hold `rdma_rxe`; one that was
//! unpacked before; the packages that set-up has downloaded (`tools/lab/setup.sh`), unpacked with `dpkg-deb`.

use crate::arch::ARCH;
use crate::driver::Driver;
use crate::files::{self, read, succeed, write};
use crate::interrupt::Interrupt;
use crate::options::Options;
use crate::{libs, modules, unpack};
use anyhow::{bail, ensure, Context, Result};
use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// So many kernels are kept, each is 75 MB. A lab that is about to boot an older one looks for it no further back than this.
const KEPT: usize = 3;

/// A kernel image and the modules that belong to it.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// Version as `uname -r` prints it.
    pub release: String,
    /// What QEMU boots: `vmlinux` taken out of the image, or else the image itself.
    pub image: PathBuf,
    /// The folder with `modules.dep` and `modules.builtin`.
    pub modules: PathBuf,
    /// What its machines are to load.
    pub driver: Driver,
    /// The driver's module, if set-up has built it because the kernel came without.
    pub built: Option<PathBuf>,
}

impl Kernel {
    /// The modules that the machines load, and those that are requested, with their dependencies.
    pub fn plan(&self, requested: &[&'static str]) -> Result<modules::Plan> {
        let mut dep = self.list("modules.dep")?;
        if let Some(built) = &self.built {
            dep += &modules::built_line(&dep, &read(built)?);
        }
        modules::plan(&dep, &self.list("modules.builtin").unwrap_or_default(), self.driver, requested)
            .with_context(|| format!("cannot use the kernel {}", self.release))
    }

    /// Where a module of the plan is on this host.
    pub fn file(&self, module: &str) -> PathBuf {
        self.built.clone().filter(|_| module == modules::BUILT).unwrap_or_else(|| self.modules.join(module))
    }

    fn list(&self, name: &str) -> Result<String> {
        Ok(String::from_utf8_lossy(&read(&self.modules.join(name))?).into_owned())
    }

    fn has(&self, module: &str) -> bool {
        let dep = self.list("modules.dep").unwrap_or_default();
        dep.lines().any(|line| modules::name_of(line.split(':').next().unwrap_or("")) == module)
    }

    /// `None` unless all the lab needs is there and readable.
    fn complete(release: &str, image: PathBuf, modules: PathBuf, requested: &[&'static str]) -> Option<Self> {
        let kernel = Self { release: release.to_owned(), image, modules, driver: Driver::default(), built: None };
        // Of a kernel that was unpacked, only those files are here that the lab wanted then.
        let has_files = || kernel.plan(requested).is_ok_and(|plan| kernel.missing(&plan).is_none());
        (kernel.has(Driver::Rxe.module()) && fs::File::open(&kernel.image).is_ok() && has_files()).then_some(kernel)
    }

    /// The first file of a plan that isn't here.
    fn missing(&self, plan: &modules::Plan) -> Option<PathBuf> {
        plan.files.iter().map(|file| self.file(file)).find(|file| !file.exists())
    }

    /// The same kernel with a driver that may not be one of its own modules.
    fn with(self, driver: Driver, folder: &Path) -> Result<Self> {
        let (module, release, title) = (driver.module(), &self.release, driver.title());
        let built = folder.join(module).join(release).join(format!("{module}.ko"));
        let built = (!self.has(module)).then_some(built);
        if let Some(built) = built.as_ref().filter(|built| !built.exists()) {
            let built = built.display();
            bail!(
                "the kernel {release} has no module {module} ({title}), and set-up hasn't built one: there is no {built}. \
                 Debian, Ubuntu: `tools/lab/setup.sh {module}` builds it for the kernel that the lab boots by itself"
            );
        }
        let kernel = Self { driver, built, ..self };
        let missing = kernel.missing(&kernel.plan(&[])?);
        ensure!(
            missing.is_none(),
            "{}, which {title} needs, isn't there, because the kernel was unpacked by an older lab. Remove {}, and run \
             `tools/lab/setup.sh lab {module}`: it gets the kernel again",
            missing.unwrap_or_default().display(),
            kernel.modules.parent().unwrap_or(&kernel.modules).display(),
        );
        Ok(kernel)
    }
}

/// Finds a kernel with the requested modules in `folder`, or puts one there.
pub fn find(folder: &Path, options: &Options, requested: &[&'static str], interrupt: &Interrupt) -> Result<Kernel> {
    let chosen = options.kernel.as_slice();
    // Those that were chosen once are of no concern to the runs that choose others, or none.
    let stores = folder.join("kernels");
    let store = if chosen.is_empty() { folder.join("kernel") } else { stores.join(files::key(chosen.iter(), ())?) };
    if !chosen.is_empty() && !store.exists() {
        // Two labs that choose others must not make room at a time: each would remove what the other one has just begun.
        let _lock = files::lock(&stores, files::CHANGE, "making room for a kernel", interrupt)?;
        files::keep_newest(&stores, KEPT - 1);
        fs::create_dir_all(&store).with_context(|| format!("cannot make {}", store.display()))?;
    }
    // Two first runs at a time must not unpack over each other.
    let _lock = files::lock(&store, files::CHANGE, "unpacking the kernel", interrupt)?;
    let kernel = match (chosen, &options.modules) {
        ([], _) => {
            let there = host_kernel(requested).or_else(|| stored_kernel(&store, requested));
            there.map_or_else(|| unpack_downloaded(&store, requested), Ok)?
        }
        ([vmlinuz], Some(modules)) => named(vmlinuz, modules, requested)?,
        (packages, None) => {
            stored_kernel(&store, requested).map_or_else(|| unpack_packages(&store, packages, requested), Ok)?
        }
        (_, Some(_)) => bail!("--modules needs exactly one --kernel, which is a vmlinuz"),
    };
    let image = bootable(&store, &kernel)?;
    Kernel { image, ..kernel }.with(options.driver, folder)
}

fn host_kernel(requested: &[&'static str]) -> Option<Kernel> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let release = release.trim();
    let modules = Path::new("/lib/modules").join(release);
    Kernel::complete(release, format!("/boot/vmlinuz-{release}").into(), modules, requested)
}

/// A kernel image with a folder of modules that is named for the release.
fn named(vmlinuz: &Path, modules: &Path, requested: &[&'static str]) -> Result<Kernel> {
    let modules = env::current_dir().context("cannot find the current folder; has it been removed?")?.join(modules);
    let release = modules.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (image, folder, module) = (vmlinuz.display(), modules.display(), names(requested));
    let complaint = format!(
        "{image} and {folder} are no kernel for the lab: it takes a vmlinuz, and a folder such as /lib/modules/6.1.0 with \
         modules.dep (depmod makes it) and {module}"
    );
    Kernel::complete(&release, vmlinuz.to_owned(), modules.clone(), requested).context(complaint)
}

/// The kernel that came last into the store: one folder per release, with `vmlinuz` and `modules/` in it.
fn stored_kernel(store: &Path, requested: &[&'static str]) -> Option<Kernel> {
    files::newest_first(store).into_iter().find_map(|folder| {
        let release = folder.file_name()?.to_str()?;
        Kernel::complete(release, folder.join("vmlinuz"), folder.join("modules"), requested)
    })
}

/// `vmlinux` if the image holds one (taken out once and kept in the store), else the image. A host's kernel may be replaced
/// by one of the same release: size and time of the image tell.
fn bootable(store: &Path, kernel: &Kernel) -> Result<PathBuf> {
    let image = &kernel.image;
    let (_, length, time, _) = files::stamp(image)?;
    let vmlinux = store.join(&kernel.release).join(format!("vmlinux-{length:x}-{time:x}"));
    if vmlinux.exists() {
        return Ok(vmlinux);
    }
    let Some(elf) = unpack::vmlinux(&read(image)?)? else { return Ok(image.clone()) };
    write(&vmlinux, &elf)?;
    files::keep_newest(store, KEPT);
    Ok(vmlinux)
}

/// The modules that a kernel must have, in words.
fn names(requested: &[&'static str]) -> String {
    match requested {
        [] => format!("the module {}", Driver::Rxe.module()),
        names => format!("the modules {}, {}", Driver::Rxe.module(), names.join(", ")),
    }
}

fn unpack_downloaded(store: &Path, requested: &[&'static str]) -> Result<Kernel> {
    let folder = libs::unpacked().unwrap_or_default().join("kernel");
    let packages = files::newest_first(&folder);
    let setup = if requested.is_empty() { "make setup" } else { "tools/lab/setup.sh nvme" };
    ensure!(
        !packages.is_empty(),
        "no kernel with {}, for {ARCH}, is here for the machines: this host's own is not readable or lacks them.\n\
         Debian, Ubuntu: `{setup}` downloads one. \
         Fedora: install kernel-modules-extra and make /boot/vmlinuz-$(uname -r) readable.",
        names(requested),
    );
    let kernel = unpack_packages(store, &packages, requested)?;
    // 70 to 125 MB that have done their work. What cannot be removed is in nobody's way.
    let _ = fs::remove_dir_all(&folder);
    Ok(kernel)
}

/// Unpacks packages, and keeps what the lab needs of them.
fn unpack_packages(store: &Path, packages: &[PathBuf], requested: &[&'static str]) -> Result<Kernel> {
    eprintln!("lab: unpacking the kernel for the machines (it is not installed)");
    // 400 MB that a lab left behind when it was killed right here.
    files::remove_abandoned(store);
    let scratch = files::scratch(store)?;
    let root = scratch.path().join("root");
    for package in packages {
        succeed(Command::new("dpkg-deb").arg("-x").arg(package).arg(&root))?;
    }
    let (release, modules) = release_of(&root)?;
    succeed(Command::new(libs::required("depmod")?).arg("-b").arg(&root).arg(&release))?;

    // The image and the wanted modules: 10 MB of 400.
    let kept = scratch.path().join("kept");
    for list in ["modules.dep", "modules.builtin"] {
        write(&kept.join("modules").join(list), &read(&modules.join(list))?)?;
    }
    let dep = String::from_utf8_lossy(&read(&modules.join("modules.dep"))?).into_owned();
    for module in modules::kept(&dep) {
        write(&kept.join("modules").join(&module), &read(&modules.join(&module))?)?;
    }
    let images = [root.join(format!("boot/vmlinuz-{release}")), modules.join("vmlinuz")];
    let image = images.iter().find(|image| image.exists()).context("the kernel packages contain no vmlinuz")?;
    write(&kept.join("vmlinuz"), &read(image)?)?;

    let folder = store.join(&release);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot replace {}", folder.display()))?;
    }
    fs::rename(&kept, &folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let kernel = Kernel::complete(&release, folder.join("vmlinuz"), folder.join("modules"), requested);
    kernel.with_context(|| format!("the kernel {release} doesn't have {}", names(requested)))
}

/// The version of an unpacked kernel, and where its modules are: `/lib` and `/usr/lib` are one folder for depmod.
fn release_of(root: &Path) -> Result<(String, PathBuf)> {
    let [merged, before] = ["usr/lib/modules", "lib/modules"].map(|name| root.join(name));
    let (there, missing) = if before.exists() { (&before, &merged) } else { (&merged, &before) };
    if !missing.exists() {
        fs::create_dir_all(missing.parent().unwrap_or(root))?;
        symlink(there, missing).context("cannot unpack the kernel")?;
    }
    let folder = files::newest_first(&merged).into_iter().next().context("the kernel packages contain no modules")?;
    let release = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok((release, folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_new_packages_hold_their_modules_in_different_places() {
        for place in ["lib/modules", "usr/lib/modules"] {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir_all(root.path().join(place).join("6.12-amd64")).unwrap();
            let (release, folder) = release_of(root.path()).unwrap();
            assert_eq!(release, "6.12-amd64");
            assert!(folder.exists() && root.path().join("lib/modules/6.12-amd64").exists(), "{place}");
        }
    }
}

//! The first file system of a machine: this host's own tools and libraries, the modules, and the agent.

use crate::archive::Archive;
use crate::driver::Driver;
use crate::files::read;
use crate::kernel::Kernel;
use crate::{libs, modules, unpack};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The machine's first process.
const INIT: &str = include_str!("../guest/init.sh");
/// Starts a command on another machine.
const ON: &str = include_str!("../guest/on.sh");
/// The script that makes an RDMA device, the same that a person runs on a real machine.
const SOFTROCE: &str = include_str!("../softroce.sh");

/// What goes into every machine, found on this host.
pub struct Contents {
    /// Programs and libraries: where they are in the machine, and on this host.
    pub files: BTreeMap<PathBuf, PathBuf>,
    /// The commands that busybox is when it is called by their name.
    applets: Vec<String>,
}

impl Contents {
    pub fn find(driver: Driver) -> Result<Self> {
        let mut files = BTreeMap::from([("/bin/sh".into(), libs::required("/bin/sh")?)]);
        for name in ["ip", "tc", "rdma", "date"] {
            files.insert(Path::new("/usr/bin").join(name), libs::required(name)?);
        }
        // Threads that end with pthread_exit load libgcc_s by name, so that the loader does not list it.
        let named = ["libibverbs.so.1", "librdmacm.so.1", "libgcc_s.so.1"].into_iter().map(libs::locate);
        let (name, title) = (driver.name(), driver.title());
        let provider = libs::provider(name)
            .with_context(|| format!("cannot find lib{name}-rdmav*.so, libibverbs' driver for {title}; {}", libs::GET));
        for path in named.chain([provider]) {
            let path = path?;
            files.insert(libs::inside(&path), path);
        }
        let programs: Vec<&PathBuf> = files.values().collect();
        files.extend(libs::closure(&programs)?.into_iter().map(|path| (libs::inside(&path), path)));
        let busybox = libs::required("busybox")?;
        let output = Command::new(&busybox).arg("--list").output().context("cannot run `busybox --list`")?;
        let applets = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
        files.insert("/bin/busybox".into(), busybox);
        Ok(Self { files, applets })
    }

    /// Whether a bare name is a program that is in the machine already.
    pub fn has_tool(&self, name: &str) -> bool {
        self.is_copied(name) || self.applets.iter().any(|applet| applet == name)
    }

    fn is_copied(&self, name: &str) -> bool {
        ["/bin", "/usr/bin"].iter().any(|folder| self.files.contains_key(&Path::new(folder).join(name)))
    }

    pub fn archive(&self, kernel: &Kernel) -> Result<Vec<u8>> {
        let mut archive = Archive::default();
        for folder in ["/proc", "/sys", "/dev", "/tmp", "/run", "/root"] {
            archive.folder(folder)?;
        }
        for (path, permissions, text) in written(kernel, &kernel.plan(&[])?) {
            archive.file(path, permissions, text.as_bytes())?;
        }
        for (inside, file) in &self.files {
            archive.file(inside, 0o755, &read(file)?)?;
        }
        for applet in self.applets.iter().filter(|applet| !self.is_copied(applet)) {
            archive.symlink(Path::new("/bin").join(applet), "busybox")?;
        }
        pack_modules(&mut archive, kernel, &[])?;
        Ok(archive.finish()?)
    }
}

/// Packs the modules that a machine has anyway, and those that are requested. They're on the list of dependencies, which modprobe reads.
pub fn pack_modules(archive: &mut Archive, kernel: &Kernel, requested: &[&'static str]) -> Result<()> {
    let plan = kernel.plan(requested)?;
    let folder = Path::new("/lib/modules").join(&kernel.release);
    archive.file(folder.join("modules.dep"), 0o644, plan.dep.as_bytes())?;
    for module in &plan.files {
        let bytes = read(&kernel.file(module))?;
        let bytes = unpack::decompress(&bytes)?.unwrap_or(bytes);
        archive.file(folder.join(modules::plain(module)), 0o644, &bytes)?;
    }
    Ok(())
}

/// The files that are no copies of this host's: path, permissions, text.
pub fn written(kernel: &Kernel, plan: &modules::Plan) -> Vec<(PathBuf, u32, String)> {
    let file = |path: &str, permissions, text: &str| (PathBuf::from(path), permissions, text.to_owned());
    let driver = kernel.driver.name();
    vec![
        file("/init", 0o755, INIT),
        file("/usr/sbin/softroce.sh", 0o755, SOFTROCE),
        file("/usr/bin/on", 0o755, ON),
        file("/etc/passwd", 0o644, "root:x:0:0:root:/root:/bin/sh\n"),
        file("/etc/nsswitch.conf", 0o644, "hosts: files\n"),
        // The only driver named here: libibverbs warns about each one whose file is not there.
        file(&format!("/etc/libibverbs.d/{driver}.driver"), 0o644, &format!("driver {driver}\n")),
        // For /init: whose device it makes.
        file("/etc/driver", 0o644, &format!("{driver}\n")),
        // For /init: those that are not built in.
        file("/etc/modules", 0o644, &plan.drivers.iter().map(|name| format!("{name}\n")).collect::<String>()),
    ]
}

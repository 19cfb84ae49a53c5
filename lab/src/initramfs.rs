//! The first file system of a machine: this host's own tools and libraries, the modules, and the agent.

use crate::archive::Archive;
use crate::files::read;
use crate::kernel::Kernel;
use crate::{libs, modules, unpack};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
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
    busybox: PathBuf,
    /// The commands that busybox is when it is called by their name.
    applets: Vec<String>,
    shell: PathBuf,
    /// Programs that go to `/usr/bin`, whatever their folder on this host.
    tools: Vec<PathBuf>,
    /// Libraries; they keep their paths.
    libraries: BTreeSet<PathBuf>,
    provider: PathBuf,
}

impl Contents {
    pub fn find() -> Result<Self> {
        let tools = ["ip", "tc", "rdma", "date"].iter().map(|name| libs::required(name)).collect::<Result<Vec<_>>>()?;
        let shell = libs::required("/bin/sh")?;
        let provider = libs::rxe_provider()
            .with_context(|| format!("cannot find librxe-rdmav*.so, libibverbs' driver for SoftRoCE; {}", libs::GET))?;
        // Threads that end with pthread_exit load libgcc_s by name, so that the loader does not list it.
        let named = ["libibverbs.so.1", "librdmacm.so.1", "libgcc_s.so.1"];
        let mut libraries = named.into_iter().map(libs::locate).collect::<Result<BTreeSet<_>>>()?;
        let roots: Vec<&PathBuf> = tools.iter().chain([&shell, &provider]).chain(&libraries).collect();
        libraries.extend(libs::closure(&roots)?);
        let busybox = libs::required("busybox")?;
        let listed = Command::new(&busybox).arg("--list").output().context("cannot run `busybox --list`")?;
        let applets = String::from_utf8_lossy(&listed.stdout).lines().map(str::to_owned).collect();
        Ok(Self { busybox, applets, shell, tools, libraries, provider })
    }

    /// Every file of this host that goes in, for the key of the saved state.
    pub fn sources(&self) -> impl Iterator<Item = &Path> {
        let single = [&self.busybox, &self.shell, &self.provider];
        single.into_iter().chain(&self.tools).chain(&self.libraries).map(PathBuf::as_path)
    }

    /// Whether a program finds this library in the machine already.
    pub fn has_library(&self, path: &Path) -> bool {
        self.libraries.contains(path)
    }

    /// Whether a bare name is a program that is in the machine already.
    pub fn has_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.file_name().is_some_and(|own| own == name))
            || self.applets.iter().any(|applet| applet == name)
    }

    pub fn archive(&self, kernel: &Kernel) -> Result<Vec<u8>> {
        let mut archive = Archive::default();
        for folder in ["/proc", "/sys", "/dev", "/tmp", "/run", "/root"] {
            archive.folder(folder)?;
        }
        let plan = kernel.plan()?;
        for (path, permissions, text) in written(&kernel.release, &plan) {
            archive.file(path, permissions, text.as_bytes())?;
        }
        self.add_programs(&mut archive)?;
        for module in &plan.files {
            let bytes = read(&kernel.modules.join(module))?;
            let bytes = unpack::decompress(&bytes)?.unwrap_or(bytes);
            archive.file(folder_of(&kernel.release).join(modules::plain(module)), 0o644, &bytes)?;
        }
        Ok(archive.finish()?)
    }

    fn add_programs(&self, archive: &mut Archive) -> Result<()> {
        archive.file("/bin/busybox", 0o755, &read(&self.busybox)?)?;
        archive.file("/bin/sh", 0o755, &read(&self.shell)?)?;
        let mut taken: BTreeSet<String> = ["sh", "busybox"].map(str::to_owned).into();
        for tool in &self.tools {
            let name = tool.file_name().unwrap_or_default().to_string_lossy().into_owned();
            archive.file(Path::new("/usr/bin").join(&name), 0o755, &read(tool)?)?;
            taken.insert(name);
        }
        for applet in &self.applets {
            if taken.insert(applet.clone()) {
                archive.symlink(Path::new("/bin").join(applet), "busybox")?;
            }
        }
        for library in self.libraries.iter().chain([&self.provider]) {
            archive.file(libs::inside(library), 0o755, &read(library)?)?;
        }
        Ok(())
    }
}

/// The files that are no copies of this host's: path, permissions, text.
pub fn written(release: &str, plan: &modules::Plan) -> Vec<(PathBuf, u32, String)> {
    let file = |path: &str, permissions, text: &str| (PathBuf::from(path), permissions, text.to_owned());
    vec![
        file("/init", 0o755, INIT),
        file("/usr/sbin/softroce.sh", 0o755, SOFTROCE),
        file("/usr/bin/on", 0o755, ON),
        file("/etc/passwd", 0o644, "root:x:0:0:root:/root:/bin/sh\n"),
        file("/etc/nsswitch.conf", 0o644, "hosts: files\n"),
        // The only driver named here: libibverbs warns about each one whose file is not there.
        file("/etc/libibverbs.d/rxe.driver", 0o644, "driver rxe\n"),
        // For /init: those that are not built in.
        file("/etc/modules", 0o644, &plan.drivers.iter().map(|name| format!("{name}\n")).collect::<String>()),
        (folder_of(release).join("modules.dep"), 0o644, plan.dep.clone()),
    ]
}

fn folder_of(release: &str) -> PathBuf {
    Path::new("/lib/modules").join(release)
}

//! What stands for /sys/class/infiniband, /dev/infiniband and their neighbours: a folder with real files, which programs open
//! in their place. Shaped as rdma_rxe's are; the name `rxe0` has libibverbs choose the provider for SoftRoCE.
//!
//! Where rdma-core was only unpacked (`RDMA_TOOLS` says where), its provider is found there.

use super::file::{inode, Kind};
use rustix::fs::{AtFlags, CWD};
use std::collections::hash_map::DefaultHasher;
use std::env;
use std::ffi::{CString, OsStr};
use std::fs;
use std::hash::{Hash, Hasher};
use std::io;
use std::net::IpAddr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The device's name.
pub const NAME: &str = "rxe0";

/// What we answer for, with all below it.
const OURS: [&str; 7] = [
    "/sys/class/infiniband",
    "/sys/class/infiniband_verbs",
    "/sys/class/misc/rdma_cm",
    "/sys/devices/virtual/infiniband",
    "/sys/devices/virtual/infiniband_verbs",
    "/dev/infiniband",
    // Which providers libibverbs loads, before it asks each whether the device is its own: there is one.
    "/etc/libibverbs.d",
];

/// Where a path leads.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Destination {
    /// The file that stands for it.
    pub real: CString,
    /// It is to look as a device.
    pub device: Option<Kind>,
}

#[derive(Debug)]
pub(super) struct Sysfs {
    root: PathBuf,
    tools: Option<PathBuf>,
}

impl Sysfs {
    /// The folder of a device with this address, below another one. Machines with the same contents share it, and it stays
    /// for the next run.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn make(below: &Path, address: IpAddr) -> io::Result<Sysfs> {
        let files = files(address, &interface(address).unwrap_or_else(|| "lo".into()));
        let mut hasher = DefaultHasher::new();
        files.hash(&mut hasher);
        let root = below.join(format!("{NAME}-{:016x}", hasher.finish()));
        if !root.exists() {
            // Others may do the same at this moment: whoever is first wins.
            static COUNT: AtomicUsize = AtomicUsize::new(0);
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let new = below.join(format!("new-{}-{number}", std::process::id()));
            write(&new, &files)?;
            match fs::rename(&new, &root) {
                Err(_) if root.exists() => fs::remove_dir_all(&new)?,
                renamed => renamed?,
            }
        }
        Ok(Sysfs { root: root.canonicalize()?, tools: env::var_os("RDMA_TOOLS").map(PathBuf::from) })
    }

    /// Where it lies.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether a thread finds it by itself: somebody has bound it into the root folder of that one's sandbox.
    pub fn is_in_root_of(&self, thread: u32) -> bool {
        let folder = OURS[0].trim_start_matches('/');
        let theirs = inode(CWD, format!("/proc/{thread}/root/{folder}"), AtFlags::empty());
        theirs.is_ok() && theirs == inode(CWD, self.root.join(folder), AtFlags::empty())
    }

    /// What stands for a path; None if the kernel has it.
    pub fn place(&self, path: &[u8]) -> Option<Destination> {
        let path = Path::new(OsStr::from_bytes(path));
        if OURS.iter().any(|ours| path.starts_with(ours)) {
            let path = straight(path);
            let device = Kind::ALL.into_iter().find(|kind| path == Path::new(kind.path()));
            return self.below(&self.root, &path, device);
        }
        let tools = self.tools.as_ref().filter(|_| is_provider(path) && !path.exists())?;
        self.below(tools, path, None)
    }

    /// The file that stands for an open device.
    pub fn device(&self, kind: Kind) -> Option<Destination> {
        self.below(&self.root, Path::new(kind.path()), Some(kind))
    }

    fn below(&self, root: &Path, path: &Path, device: Option<Kind>) -> Option<Destination> {
        let real = root.join(path.strip_prefix("/").ok()?);
        Some(Destination { real: CString::new(real.into_os_string().into_vec()).ok()?, device })
    }
}

/// All files of the folder, with what is in them.
fn files(address: IpAddr, interface: &str) -> Vec<(String, String)> {
    let numbers = |kind: Kind| {
        let (major, minor) = kind.numbers();
        format!("{major}:{minor}")
    };
    let known = [
        ("NAME", NAME.to_owned()),
        ("INTERFACE", interface.to_owned()),
        ("GUID", words(&nic::cm::Cm::guid(address).to_be_bytes())),
        ("GID", words(&nic::cm::gid(address))),
        ("UVERBS", numbers(Kind::Uverbs)),
        ("RDMA_CM", numbers(Kind::RdmaCm)),
    ];
    let filled = |text: &str| {
        known.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("<{name}>"), value))
    };
    let lines = include_str!("sysfs.txt").lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once(" ="))
        .map(|(path, text)| (filled(path), filled(text.trim_start()) + "\n"))
        .collect()
}

/// Writes them below this folder, and the links from the classes to the devices.
fn write(root: &Path, files: &[(String, String)]) -> io::Result<()> {
    for (path, text) in files {
        let path = root.join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap_or(root))?;
        fs::write(path, text)?;
    }
    for (class, name) in [("infiniband", NAME), ("infiniband_verbs", "uverbs0")] {
        let folder = root.join("sys/class").join(class);
        fs::create_dir_all(&folder)?;
        symlink(format!("../../devices/virtual/{class}/{name}"), folder.join(name))?;
    }
    Ok(())
}

/// A path without `..`, so that nothing leads out of the folder.
fn straight(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut straight, part| {
        match part {
            Component::ParentDir => drop(straight.pop()),
            part => straight.push(part),
        }
        straight
    })
}

/// Whether this is the provider that libibverbs looks for.
fn is_provider(path: &Path) -> bool {
    let file = path.file_name().unwrap_or_default().as_bytes();
    file.starts_with(b"librxe-rdmav") && path.parent().is_some_and(|folder| folder.ends_with("libibverbs"))
}

/// The network interface that has this address, or whose network has it; None for one that is only on this machine.
fn interface(address: IpAddr) -> Option<String> {
    let table = |name: &str| fs::read_to_string(Path::new("/proc/net").join(name)).unwrap_or_default();
    let hex = |word: Option<&&str>| word.and_then(|word| u32::from_str_radix(word, 16).ok());
    match address {
        IpAddr::V6(address) => {
            let number = format!("{:032x}", u128::from(address));
            table("if_inet6")
                .lines()
                .find(|line| line.starts_with(&number))?
                .split_whitespace()
                .last()
                .map(str::to_owned)
        }
        IpAddr::V4(address) => {
            let address = u32::from_ne_bytes(address.octets());
            let route = |line: &str| {
                let words: Vec<&str> = line.split_whitespace().collect();
                let (network, mask) = (hex(words.get(1))?, hex(words.get(7))?);
                (mask != 0 && address & mask == network).then(|| (mask.count_ones(), words[0].to_owned()))
            };
            table("route").lines().filter_map(route).max().map(|(_, name)| name)
        }
    }
}

/// As the kernel writes GUIDs and GIDs: 0200:00ff:7f00:0002.
fn words(bytes: &[u8]) -> String {
    let words: Vec<String> =
        bytes.chunks(2).map(|pair| pair.iter().map(|byte| format!("{byte:02x}")).collect()).collect();
    words.join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_with_the_same_address_share_a_folder() {
        let below = env::temp_dir().join(format!("device-sysfs-{}", std::process::id()));
        let make = |last| Sysfs::make(&below, [127, 0, 0, last].into()).unwrap().root;
        // Many at once: all have the same one, which is whole.
        let roots: Vec<PathBuf> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| make(9))).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(roots.iter().all(|root| *root == roots[0]));
        let gid = fs::read_to_string(roots[0].join("sys/class/infiniband/rxe0/ports/1/gids/0")).unwrap();
        assert_eq!(gid, "0000:0000:0000:0000:0000:ffff:7f00:0009\n");
        assert!(make(10) != roots[0]);
        assert_eq!(fs::read_dir(&below).unwrap().count(), 2);
        fs::remove_dir_all(below).unwrap();
    }

    #[test]
    fn paths_lead_into_the_folder_and_never_out_of_it() {
        let sysfs = Sysfs { root: "/root".into(), tools: Some("/tools".into()) };
        let place =
            |path: &str| sysfs.place(path.as_bytes()).map(|place| (place.real.into_string().unwrap(), place.device));
        let is = |real: &str, device| Some((real.to_owned(), device));
        assert_eq!(place("/dev/infiniband/uverbs0"), is("/root/dev/infiniband/uverbs0", Some(Kind::Uverbs)));
        assert_eq!(place("/dev//infiniband/./rdma_cm"), is("/root/dev/infiniband/rdma_cm", Some(Kind::RdmaCm)));
        assert_eq!(place("/dev/infiniband/uverbs1"), is("/root/dev/infiniband/uverbs1", None));
        assert_eq!(place("/sys/class/infiniband"), is("/root/sys/class/infiniband", None));
        assert_eq!(place("/sys/class/infiniband/../../../../etc/passwd"), is("/root/etc/passwd", None));
        // The kernel's own.
        for path in
            ["", "/", "/dev", "/dev/infinibands", "dev/infiniband/uverbs0", "/sys/class/infiniband_mad", "/etc/passwd"]
        {
            assert_eq!(place(path), None, "{path}");
        }
        // Only what is nowhere else is taken from where rdma-core was unpacked.
        let provider = |folder: &str| format!("{folder}/libibverbs/librxe-rdmav0.so");
        assert_eq!(place(&provider("/usr/lib/none")), is(&provider("/tools/usr/lib/none"), None));
        let there = env::temp_dir().join(format!("device-provider-{}", std::process::id()));
        fs::create_dir_all(there.join("libibverbs")).unwrap();
        let path = provider(there.to_str().unwrap());
        assert!(place(&path).is_some());
        fs::write(&path, "").unwrap();
        assert_eq!(place(&path), None);
        fs::remove_dir_all(there).unwrap();
        assert_eq!(place("/usr/lib/none/libibverbs/libmlx5-rdmav0.so"), None);
    }
}

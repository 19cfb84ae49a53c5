//! Which kernel modules the machines need.
//!
//! `modules.dep` (man 5 modules.dep) has one line per module: `path: path path …`, the module and all that it depends on,
//! relative to its folder.

use crate::driver::Driver;
use anyhow::{bail, Result};
use std::collections::BTreeSet;

/// So many of them are loaded by the machine when it starts; the others are loaded by name when they are needed.
const DRIVERS: usize = 3;

/// The modules that a machine gets when its command names them, with what they depend on. Most runs can do without, and would wait for
/// a larger image. A machine loads them with modprobe, so a command that needs one names it anyway.
pub const ON_REQUEST: [&str; 3] = ["nvme_rdma", "nvmet_rdma", "brd"];

/// The path of the one module that set-up builds, because Debian's kernels come without it.
pub const BUILT: &str = "extra/siw.ko";
/// What that one depends on besides what rdma_ucm does. A kernel's packages are unpacked before anybody knows whether it's needed.
const FOR_BUILT: &str = "libcrc32c";

/// What the machines load, in this order.
pub fn wanted(driver: Driver) -> [&'static str; 7] {
    [
        "virtio_pci",
        "virtio_net",
        "virtio_blk",
        driver.checksum(),
        driver.module(),
        "rdma_ucm",
        // A lossy or slow link: `tc qdisc add dev eth0 root netem …`.
        "sch_netem",
    ]
}

/// Which files a machine needs, and what it loads itself when it starts.
#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    /// Paths relative to the modules' folder.
    pub files: BTreeSet<String>,
    /// Names that are not built into the kernel.
    pub drivers: Vec<&'static str>,
    /// The `modules.dep` of these files alone, with the compression suffix taken off.
    pub dep: String,
}

/// Those of [`ON_REQUEST`] that a text names.
pub fn requested(text: &str) -> Vec<&'static str> {
    let words: Vec<String> = text.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_').map(name_of).collect();
    ON_REQUEST.into_iter().filter(|name| words.iter().any(|word| word == name)).collect()
}

/// Plans what to take of a kernel, from its `modules.dep` and `modules.builtin` (man 5 modules.builtin: one path each line), for
/// machines with this driver, if these modules are requested.
pub fn plan(dep: &str, builtin: &str, driver: Driver, requested: &[&'static str]) -> Result<Plan> {
    let table: Vec<(&str, &str)> = dep.lines().filter_map(|line| line.split_once(':')).collect();
    let builtin: BTreeSet<String> = builtin.lines().map(name_of).collect();
    // A kernel has thousands of modules, and this is on the way of every run.
    let names: Vec<&'static str> = wanted(driver).into_iter().chain(requested.iter().copied()).collect();
    let wanted: Vec<_> = table.iter().filter(|(path, _)| names.contains(&name_of(path).as_str())).collect();
    let (mut files, mut drivers) = (BTreeSet::new(), Vec::new());
    for (index, name) in names.into_iter().enumerate() {
        match wanted.iter().find(|(path, _)| name_of(path) == name) {
            Some((path, dependencies)) => {
                files.extend([*path].into_iter().chain(dependencies.split_whitespace()).map(str::to_owned));
                drivers.extend((index < DRIVERS).then_some(name));
            }
            None if name == driver.checksum() || builtin.contains(name) => {}
            None => bail!("it has no module {name}"),
        }
    }
    let kept = table.iter().filter(|(path, _)| files.contains(*path));
    let line = |(path, dependencies): &(&str, &str)| {
        let dependencies: String = dependencies.split_whitespace().map(|path| format!(" {}", plain(path))).collect();
        format!("{}:{dependencies}\n", plain(path))
    };
    let dep = kept.map(line).collect();
    Ok(Plan { files, drivers, dep })
}

/// What to keep of a kernel that is unpacked, as the packages are gone then: all modules that some run may want, and that it has.
pub fn kept(dep: &str) -> BTreeSet<String> {
    let names = [&Driver::ALL.map(wanted).concat(), &ON_REQUEST[..], &[FOR_BUILT]].concat();
    let is_kept = |path: &str| names.contains(&&*name_of(path));
    let lines = dep.lines().filter_map(|line| line.split_once(':')).filter(|(path, _)| is_kept(path));
    let paths = lines.flat_map(|(path, dependencies)| [path].into_iter().chain(dependencies.split_whitespace()));
    paths.map(str::to_owned).collect()
}

/// The line of `modules.dep` for the module that set-up has built, which names what it needs in its own file.
pub fn built_line(dep: &str, module: &[u8]) -> String {
    let mut words = module.split(|byte| *byte == 0).filter_map(|word| word.strip_prefix(b"depends="));
    let names = String::from_utf8_lossy(words.next().unwrap_or_default()).into_owned();
    let is_needed = |path: &str| names.split(',').any(|name| name_of(path) == name);
    let lines = dep.lines().filter_map(|line| line.split_once(':')).filter(|(path, _)| is_needed(path));
    let paths = lines.map(|(path, dependencies)| format!(" {path}{dependencies}")).collect::<String>();
    format!("{BUILT}:{paths}\n")
}

/// The path of a module without `.xz`, `.zst` or `.gz`.
pub fn plain(path: &str) -> &str {
    path.find(".ko").map_or(path, |at| &path[..at + 3])
}

/// The name `modprobe` knows a module by: no folder, no suffix, `_` for `-`.
pub fn name_of(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    plain(file).trim_end_matches(".ko").replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_in_is_not_loaded_and_what_is_missing_is_named() {
        let modules = ["virtio_net", "virtio_blk", "rdma_rxe", "rdma_ucm", "sch_netem"];
        let dep: String = modules.iter().map(|name| format!("kernel/{name}.ko.xz:\n")).collect();
        let plan_of = |builtin: &str, driver| {
            plan(&dep, builtin, driver, &[]).map(|plan| plan.drivers).map_err(|error| error.to_string())
        };
        let builtin = "kernel/drivers/virtio/virtio_pci.ko\n";
        assert_eq!(plan_of(builtin, Driver::Rxe), Ok(vec!["virtio_net", "virtio_blk"]));
        assert_eq!(plan_of("", Driver::Rxe), Err("it has no module virtio_pci".to_owned()));
        assert_eq!(plan_of(builtin, Driver::Siw), Err("it has no module siw".to_owned()));
    }

    #[test]
    fn a_module_that_was_built_needs_what_its_file_names() {
        let dep = "k/ib_core.ko:\nk/iw_cm.ko.xz: k/ib_core.ko\nk/libcrc32c.ko:\nk/virtio.ko:\n";
        let module = b"\x7fELF\0license=GPL\0depends=iw_cm,libcrc32c\0name=siw\0";
        assert_eq!(built_line(dep, module), "extra/siw.ko: k/iw_cm.ko.xz k/ib_core.ko k/libcrc32c.ko\n");
        assert_eq!(kept(dep), BTreeSet::from(["k/libcrc32c.ko".to_owned()]));
    }
}

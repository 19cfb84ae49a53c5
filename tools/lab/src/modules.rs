//! Which kernel modules the machines need.
//!
//! `modules.dep` (man 5 modules.dep) has one line per module: `path: path path …`, the module and all that it depends on,
//! relative to its folder.

use anyhow::{bail, Result};
use std::collections::BTreeSet;

/// So many of them are loaded by the machine when it starts; the others are loaded by name when they are needed.
const DRIVERS: usize = 3;
/// What the machines load, in this order.
pub const WANTED: [&str; 7] = [
    "virtio_pci",
    "virtio_net",
    "virtio_blk",
    CRC32,
    RXE,
    "rdma_ucm",
    // A lossy or slow link: `tc qdisc add dev eth0 root netem …`.
    "sch_netem",
];

/// The modules that a machine gets when its command names them, with what they depend on. Most runs can do without, and would wait for
/// a larger image. A machine loads them with modprobe, so a command that needs one names it anyway.
pub const ON_REQUEST: [&str; 3] = ["nvme_rdma", "nvmet_rdma", "brd"];

/// The module without which there is nothing to teach.
pub const RXE: &str = "rdma_rxe";
/// rdma_rxe of older kernels asks the crypto layer for "crc32" by name, so no dependency line mentions it. Newer kernels have
/// neither the question nor the module.
const CRC32: &str = "crc32_generic";

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

/// Plans what to take of a kernel, from its `modules.dep` and `modules.builtin` (man 5 modules.builtin: one path each line), if these
/// modules are requested.
pub fn plan(dep: &str, builtin: &str, requested: &[&'static str]) -> Result<Plan> {
    let table: Vec<(&str, &str)> = dep.lines().filter_map(|line| line.split_once(':')).collect();
    let builtin: BTreeSet<String> = builtin.lines().map(name_of).collect();
    // A kernel has thousands of modules, and this is on the way of every run.
    let names: Vec<&'static str> = WANTED.iter().chain(requested).copied().collect();
    let wanted: Vec<_> = table.iter().filter(|(path, _)| names.contains(&name_of(path).as_str())).collect();
    let (mut files, mut drivers) = (BTreeSet::new(), Vec::new());
    for (index, name) in names.into_iter().enumerate() {
        match wanted.iter().find(|(path, _)| name_of(path) == name) {
            Some((path, dependencies)) => {
                files.extend([*path].into_iter().chain(dependencies.split_whitespace()).map(str::to_owned));
                drivers.extend((index < DRIVERS).then_some(name));
            }
            None if name == CRC32 || builtin.contains(name) => {}
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
        let plan_of =
            |builtin: &str| plan(&dep, builtin, &[]).map(|plan| plan.drivers).map_err(|error| error.to_string());
        assert_eq!(plan_of("kernel/drivers/virtio/virtio_pci.ko\n"), Ok(vec!["virtio_net", "virtio_blk"]));
        assert_eq!(plan_of(""), Err("it has no module virtio_pci".to_owned()));
    }
}

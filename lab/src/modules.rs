//! Which kernel modules the machines need, and in which order.
//!
//! `modules.dep` (man 5 modules.dep) has one line per module: `path: path path …`, the module and
//! all it depends on, nearest first, relative to its folder.

use anyhow::{bail, Result};
use std::collections::{BTreeMap, BTreeSet};

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

/// The module without which there is nothing to teach.
pub const RXE: &str = "rdma_rxe";
/// rdma_rxe of older kernels asks the crypto layer for "crc32" by name, so no dependency line mentions it. Newer kernels have
/// neither the question nor the module.
const CRC32: &str = "crc32_generic";

/// Which files a machine needs, and what it loads itself when it starts.
#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    /// Paths relative to the modules' folder, dependencies first.
    pub files: Vec<String>,
    /// Names that are not built into the kernel.
    pub drivers: Vec<&'static str>,
    /// The `modules.dep` of these files alone, with the compression suffix taken off.
    pub dep: String,
}

/// Plans what to take of a kernel, from its `modules.dep` and `modules.builtin` (man 5 modules.builtin: one path each line).
///
/// # Errors
/// A module is neither a file nor built in.
pub fn plan(dep: &str, builtin: &str) -> Result<Plan> {
    let files: BTreeSet<String> = dep.lines().filter_map(|line| Some(name_of(line.split_once(':')?.0))).collect();
    let builtin: BTreeSet<String> = builtin.lines().map(name_of).collect();
    let absent = WANTED.iter().find(|name| **name != CRC32 && !files.contains(**name) && !builtin.contains(**name));
    if let Some(name) = absent {
        bail!("it has no module {name}");
    }
    let drivers = WANTED[..3].iter().filter(|name| files.contains(**name)).copied().collect();
    let order = load_order(dep, &WANTED);
    Ok(Plan { dep: subset(dep, &order), files: order, drivers })
}

/// The paths of `wanted` and of all they depend on, each once, dependencies first.
fn load_order(modules_dep: &str, wanted: &[&str]) -> Vec<String> {
    let table: BTreeMap<String, (&str, Vec<&str>)> = modules_dep.lines().filter_map(parse_line).collect();
    let mut order = Vec::new();
    for name in wanted {
        visit(name, &table, &mut order);
    }
    order
}

/// A `modules.dep` for the modules in `paths` only, with the compression suffix taken off.
fn subset(modules_dep: &str, paths: &[String]) -> String {
    let mut text = String::new();
    for line in modules_dep.lines() {
        let Some((path, dependencies)) = line.split_once(':') else { continue };
        if paths.iter().any(|wanted| wanted == path) {
            text.push_str(plain(path));
            text.push(':');
            for dependency in dependencies.split_whitespace() {
                text.push(' ');
                text.push_str(plain(dependency));
            }
            text.push('\n');
        }
    }
    text
}

/// The path of a module without `.xz`, `.zst` or `.gz`.
#[must_use]
pub fn plain(path: &str) -> &str {
    path.find(".ko").map_or(path, |at| &path[..at + 3])
}

/// The name `modprobe` knows a module by: no folder, no suffix, `_` for `-`.
#[must_use]
pub fn name_of(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    plain(file).trim_end_matches(".ko").replace('-', "_")
}

fn parse_line(line: &str) -> Option<(String, (&str, Vec<&str>))> {
    let (path, dependencies) = line.split_once(':')?;
    Some((name_of(path), (path, dependencies.split_whitespace().collect())))
}

fn visit(name: &str, table: &BTreeMap<String, (&str, Vec<&str>)>, order: &mut Vec<String>) {
    let Some((path, dependencies)) = table.get(name) else { return };
    if order.iter().any(|done| done == path) {
        return;
    }
    // The file lists the nearest dependency first: what they need in turn stands further right.
    for dependency in dependencies.iter().rev() {
        visit(&name_of(dependency), table, order);
    }
    order.push((*path).to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEP: &str = "\
kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko.xz: kernel/core/ib_uverbs.ko.xz kernel/net/udp-tunnel.ko.xz kernel/core/ib_core.ko.xz
kernel/core/ib_uverbs.ko.xz: kernel/core/ib_core.ko.xz
kernel/core/ib_core.ko.xz:
kernel/net/udp-tunnel.ko.xz:
kernel/sound/snd.ko.xz:
";

    #[test]
    fn dependencies_come_first_and_once() {
        let order = load_order(DEP, &["udp_tunnel", "rdma_rxe", "not_here"]);
        let names: Vec<String> = order.iter().map(|path| name_of(path)).collect();
        assert_eq!(names, ["udp_tunnel", "ib_core", "ib_uverbs", "rdma_rxe"]);
    }

    #[test]
    fn what_is_built_in_is_not_loaded_and_what_is_missing_is_named() {
        let modules = ["virtio_net", "virtio_blk", "rdma_rxe", "rdma_ucm", "sch_netem"];
        let dep: String = modules.iter().map(|name| format!("kernel/{name}.ko.xz:\n")).collect();
        let plan_of = |builtin: &str| plan(&dep, builtin).map(|plan| plan.drivers).map_err(|error| error.to_string());
        assert_eq!(plan_of("kernel/drivers/virtio/virtio_pci.ko\n"), Ok(vec!["virtio_net", "virtio_blk"]));
        assert_eq!(plan_of(""), Err("it has no module virtio_pci".to_owned()));
    }

    #[test]
    fn subset_keeps_only_what_travels() {
        let order = load_order(DEP, &["ib_uverbs"]);
        assert_eq!(subset(DEP, &order), "kernel/core/ib_uverbs.ko: kernel/core/ib_core.ko\nkernel/core/ib_core.ko:\n");
    }

    #[test]
    fn names_lose_folder_suffix_and_dashes() {
        assert_eq!(name_of("kernel/net/udp-tunnel.ko.zst"), "udp_tunnel");
        assert_eq!(plain("a/b.ko"), "a/b.ko");
    }
}

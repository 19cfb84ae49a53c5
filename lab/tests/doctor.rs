//! `lab/doctor.sh` on invented machines: each check is seen to pass on a good one, and to name cause and cure on one that
//! lacks what it looks for.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

mod support;

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{symlink, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use support::invented::{needs, path_of, Machine, Need};

const WAYS: [&str; 3] = ["lab", "vms", "nic"];

/// Everything is fine on it: it has all of lab/needs.txt, KVM, SoftRoCE on eth0 and a NIC on ib0.
fn good() -> Machine {
    let machine = Machine::new(&[
        "$id=case $1 in -un) echo you ;; *) echo 0 ;; esac",
        "$qemu-system-x86_64=echo 'QEMU emulator version 7.2.9'",
        "dev/kvm=",
        "proc/sys/kernel/random/boot_id=this-boot",
        "a checkout/target/lab/kvm=true /usr/bin/qemu-system-x86_64 this-boot",
        "proc/self/limits=Max locked memory         8388608              8388608              bytes",
        "dev/infiniband/rdma_cm=",
        "dev/infiniband/uverbs0=",
        "home/you/.config/wireshark/profiles/rdma/colorfilters=",
        "sys/class/infiniband/rxe0/parent=eth0",
    ]);
    for (device, netdev) in [("rxe0", "eth0"), ("mlx5_0", "ib0")] {
        for file in [
            "node_type=1: CA",
            "ports/1/state=4: ACTIVE",
            "ports/1/gid_attrs/types/0=RoCE v2",
            "ports/1/gids/0=fe80:0000:0000:0000:0000:00ff:fe00:0002",
            "ports/1/gids/1=0000:0000:0000:0000:0000:ffff:0a2f:5b02",
            &format!("ports/1/gid_attrs/ndevs/0={netdev}"),
            &format!("../../net/{netdev}/mtu=1500"),
        ] {
            machine.edit(&[&format!("sys/class/infiniband/{device}/{file}")]);
        }
    }
    machine
}

/// What the doctor says about a machine.
struct Diagnosis {
    text: String,
    ready: bool,
}

fn diagnose(machine: &Machine) -> Diagnosis {
    Diagnosis::of(&mut machine.script("doctor.sh"))
}

impl Diagnosis {
    fn of(command: &mut Command) -> Self {
        let output = command.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "the doctor has nothing to complain about");
        Self { text: String::from_utf8(output.stdout).unwrap(), ready: output.status.success() }
    }

    /// A check says this: `OK`, `note`, or `FAIL` and the ways it stops, with this very cure.
    fn says(&self, status: &str, name: &str, text: &str, cure: &str) {
        let mut lines = self.text.lines();
        let line = lines.find(|line| line.len() > 31 && line[8..31].trim() == name);
        let line = line.unwrap_or_else(|| panic!("no check {name}:\n{}", self.text));
        let found_cure = lines.next().and_then(|line| line.trim().strip_prefix("cure: ")).unwrap_or_default();
        let (kind, ways) = status.split_once(' ').unwrap_or((status, ""));
        assert_eq!((line[..8].trim(), found_cure), (kind, cure), "{line}");
        assert!(line[31..].contains(text), "no {text:?} in: {line}");
        assert!(ways.is_empty() || line.ends_with(&format!(" (stops: {ways})")), "not {ways:?}: {line}");
        assert!(!ways.split_whitespace().any(|way| self.is_ready(way)), "{ways}:\n{}", self.text);
        assert_eq!(self.ready, WAYS.iter().any(|way| self.is_ready(way)), "{}", self.text);
    }

    fn is_ready(&self, way: &str) -> bool {
        self.text.contains(&format!("  yes {way},"))
    }
}

#[test]
fn a_good_machine_passes_every_check_and_is_ready_in_all_three_ways() {
    let diagnosis = diagnose(&good());
    assert!(WAYS.iter().all(|way| diagnosis.is_ready(way)), "{}", diagnosis.text);
    let bad = diagnosis.text.lines().find(|line| ["FAIL", "note", "cure"].iter().any(|word| line.contains(word)));
    assert_eq!(bad, None);
    for (name, text) in [
        ("cargo and rustc", "cargo 1.75.0"),
        ("QEMU", "version 7.2.9"),
        ("the SoftRoCE provider", " /usr/lib/x86_64-linux-gnu/librdmacm.so.1"),
        ("KVM", "really runs"),
        ("mlx5_0 interface", "ib0"),
    ] {
        diagnosis.says("OK", name, text, "");
    }
}

type Cure = fn(&Need) -> String;

/// Whatever of lab/needs.txt is missing: make gets it where there is apt, if it is not unpacked already. What has to be the
/// machine's own, and everything elsewhere, is named with the distribution's packages.
#[test]
fn each_row_of_the_table_is_missed_and_cured() {
    let is_own = |need: &Need| ["own", "device", "look"].contains(&need.stage.as_str());
    let cures: [(&str, Cure); 4] = [
        ("etc/os-release=ID=slackware", |need| {
            let debian = need.debian.trim_start_matches('@');
            format!("install the package {debian} (Debian, Ubuntu), {} (Fedora) or {} (Arch)", need.fedora, need.arch)
        }),
        ("$pacman=", |need| format!("sudo pacman -S {}", need.arch)),
        ("$dnf=", |need| format!("sudo dnf install {}", need.fedora)),
        ("$apt-get=", |need| format!("sudo apt-get install {}", need.debian)),
    ];
    // In each round every row lacks another one of the things that it names.
    for round in 0..3 {
        let mut missed = needs();
        missed.retain(|need| need.checks.len() > round && !["shell", "test", "check"].contains(&need.stage.as_str()));
        let machine = good();
        for path in missed.iter().map(|need| path_of(&need.checks[round])).collect::<BTreeSet<_>>() {
            let path = if path.contains("rdmav") { path.rsplit_once('/').unwrap().0 } else { &path };
            for path in [path, &format!("{path}.script")].map(Path::new) {
                let unpacked = machine.path("a checkout/target/tools").join(path);
                fs::create_dir_all(unpacked.parent().unwrap()).unwrap();
                let _ = fs::rename(machine.path("").join(path), unpacked);
            }
        }
        for (edit, cure) in cures {
            let diagnosis = diagnose(machine.edit(&[edit]));
            for need in &missed {
                let status = match need.stage.as_str() {
                    "own" | "build" => "FAIL lab vms nic",
                    "lab" => "FAIL lab",
                    "device" => "FAIL vms nic",
                    _ => "note",
                };
                if edit == "$apt-get=" && !is_own(need) {
                    diagnosis.says("note", &need.what, "make gets it", "");
                } else {
                    diagnosis.says(status, &need.what, &need.checks[round], &cure(need));
                }
            }
        }
        let env = "a checkout/target/tools/env=PATH=\"$PATH:$TOOLS/usr/bin\"";
        let diagnosis = diagnose(machine.edit(&[env, "a checkout/target/tools/kernel/linux-image.deb="]));
        for need in missed.iter().filter(|need| !is_own(need)) {
            diagnosis.says("OK", &need.what, "unpacked below target/", "");
        }
    }
}

#[test]
fn what_is_there_has_to_be_of_use() {
    let old = good();
    old.edit(&["$cargo=echo 'cargo 1.63.0 (fd9c4297c 2022-07-01)'", "-usr/bin/busybox", NO_MODULE, "$pacman="]);
    symlink(lab::program("sh").unwrap(), old.path("usr/bin/busybox")).unwrap();
    let diagnosis = diagnose(&old);
    diagnosis.says("FAIL lab vms nic", "cargo and rustc", "not found: cargo", "sudo pacman -S rust");
    diagnosis.says("FAIL lab", "a static busybox", "not found: static:busybox", "sudo pacman -S busybox");
    diagnosis.says("FAIL lab", "a kernel to boot", "not found: kernel", "sudo pacman -S linux");
    let stored = [NO_MODULE, "a checkout/target/lab/kernel/6.1.0/vmlinuz="];
    assert!(diagnose(good().edit(&stored)).is_ready("lab"));
    let copied = ["$cargo=echo 'rustup could not choose a version'", "a checkout/target/debug/lesson-01="];
    assert!(!diagnose(good().edit(&copied)).is_ready("lab") && diagnose(good().edit(&copied)).is_ready("vms"));
}

const NO_MODULE: &str = "lib/modules/6.1.0-40-amd64/modules.dep=kernel/net/other.ko:";
const USER: &str = "$id=case $1 in -un) echo you ;; *) echo 1000 ;; esac";
const LIMIT: &str = "proc/self/limits=Max locked memory 65536 65536 bytes";
const NFT: &str =
    "$nft=echo 'table inet filter {'; echo 'chain input {'; echo 'type filter hook input priority 0; policy drop;'";
const FIREWALLD: &str = "$firewall-cmd=case $1 in --state) echo running ;; *) exit 1 ;; esac";

/// What is changed on the good machine, DEV being the folder of its devices; and of each check the status, its name, a part of
/// its text, its cure.
type Case = (&'static [&'static str], &'static [(&'static str, &'static str, &'static str, &'static str)]);

#[rustfmt::skip] // A table.
const CASES: &[Case] = &[
    (&["a checkout/target/lab/kvm=true qemu an-earlier-boot", NO_MODULE, "$apt-get=", "-DEV/rxe0", "-DEV/mlx5_0", LIMIT], &[
        ("note", "KVM", "not tried yet", "make lesson-01 tries it"),
        ("FAIL vms", "SoftRoCE module", "(6.1.0-40-amd64) has no rdma_rxe", "sudo apt-get install linux-image-amd64, then boot it"),
        ("FAIL vms", "SoftRoCE device", "there is none", "sudo lab/softroce.sh up"),
        ("FAIL nic", "RDMA NIC", "none", "with such a card in the machine: sudo modprobe DRIVER (lspci -k names it)"),
        ("OK", "locked memory", "65536", ""), // Root may lock as much as there is.
    ]),
    (&["a checkout/target/lab/kvm=false qemu this-boot", NO_MODULE, "etc/os-release=ID=pop\nID_LIKE=\"ubuntu debian\"",
        "DEV/rxe0/ports/1/state=1: DOWN", "-DEV/mlx5_0/ports/1/gid_attrs/ndevs/0", USER, LIMIT], &[
        ("note", "KVM", "no machine runs on it", ""),
        ("FAIL vms", "SoftRoCE module", "has no rdma_rxe", "sudo apt-get install linux-modules-extra-6.1.0-40-amd64"),
        ("FAIL vms", "rxe0 link", "DOWN", "sudo ip link set dev eth0 up (and is its cable in?)"),
        ("FAIL nic", "mlx5_0 interface", "no network interface", "sudo rdma link show"),
        ("FAIL vms nic", "locked memory", "only 65536 bytes",
            "echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/rdma.conf, then log in again"),
        ("note", "firewall", "only root can see", "sudo lab/doctor.sh"),
    ]),
    (&["-dev/kvm", NO_MODULE, "$dnf=", "DEV/siw0/node_type=4: RNIC", "DEV/rxe0/parent=ib0", "-dev/infiniband/rdma_cm", FIREWALLD], &[
        ("note", "KVM", "no /dev/kvm", "if /proc/cpuinfo says vmx: sudo modprobe kvm_intel; if svm: sudo modprobe kvm_amd"),
        ("FAIL vms", "SoftRoCE module", "has no rdma_rxe",
            "sudo dnf install kernel-modules-6.1.0-40-amd64 kernel-modules-extra-6.1.0-40-amd64"),
        ("note", "iWARP device", "siw0: the lessons run on it", ""),
        // SoftRoCE on top of a NIC: it is not the NIC that goes.
        ("FAIL vms", "rxe0 interface", "ib0 carries mlx5_0, too", "sudo rdma link delete rxe0"),
        ("FAIL nic", "mlx5_0 interface", "ib0 carries rxe0, too", "sudo rdma link delete rxe0"),
        ("FAIL vms nic", "permissions", "/dev/infiniband/rdma_cm is missing", "sudo modprobe rdma_ucm"),
        ("FAIL vms", "firewall", "firewalld drops",
            "sudo firewall-cmd --permanent --add-port=4791/udp && sudo firewall-cmd --reload"),
    ]),
    (&[NO_MODULE, "DEV/rxe0/ports/1/gids/1=0000:0000:0000:0000:0000:0000:0000:0000", "sys/class/net/eth0/mtu=1000",
        "sys/class/net/ib0/mtu=9000", "etc/ufw/ufw.conf=ENABLED=yes", "-home/you/.config/wireshark/profiles/rdma"], &[
        ("FAIL vms", "SoftRoCE module", "has no rdma_rxe", "use a kernel that is built with CONFIG_RDMA_RXE"),
        ("FAIL vms", "rxe0 GIDs", "eth0 has no IP address", "sudo ip address add ADDRESS/24 dev eth0"),
        ("note", "rxe0 MTU", "1000 bytes: packets differ", "sudo ip link set dev eth0 mtu 1500"),
        ("note", "mlx5_0 MTU", "9000 bytes: packets differ", "sudo ip link set dev ib0 mtu 1500"),
        ("FAIL vms", "firewall", "ufw drops UDP port 4791", "sudo ufw allow 4791/udp"),
        ("note", "Wireshark profile", "not installed", "make wireshark-profile"),
    ]),
    (&[NO_MODULE, "lib/modules/6.1.0-40-amd64/modules.builtin=kernel/rdma_rxe.ko", "DEV/rxe0/ports/1/gid_attrs/types/0=IB/RoCE v1",
        "sys/class/net/ib0/mtu=1460", NFT, "-usr/bin/dumpcap", "$tcpdump="], &[
        ("OK", "SoftRoCE module", "has rdma_rxe", ""),
        ("FAIL vms", "rxe0 GIDs", "only RoCE v1", "with SoftRoCE instead: sudo lab/softroce.sh up INTERFACE"),
        ("OK", "mlx5_0 MTU", "up to 1024", ""),
        ("FAIL vms", "firewall", "nftables drops", "sudo nft insert rule inet filter input udp dport 4791 accept"),
        ("OK", "a capture tool", "dumpcap/tcpdump", ""),
    ]),
    (&["sys/module/rdma_rxe/version=", "etc/ufw/ufw.conf=ENABLED=yes", "etc/ufw/user.rules=--dport 4791 -j ACCEPT"], &[
        ("OK", "SoftRoCE module", "is loaded", ""),
        ("OK", "firewall", "ufw lets", ""),
    ]),
];

#[test]
fn each_other_check_names_cause_and_cure() {
    for (edits, checks) in CASES {
        let edits: Vec<String> = edits.iter().map(|edit| edit.replace("DEV/", "sys/class/infiniband/")).collect();
        let machine = good();
        let diagnosis = diagnose(machine.edit(&edits.iter().map(String::as_str).collect::<Vec<_>>()));
        for (status, name, text, cure) in *checks {
            diagnosis.says(status, name, text, cure);
        }
    }
}

#[test]
fn devices_have_to_be_open_to_the_user() {
    let machine = good();
    for (file, mode) in [("infiniband/uverbs0", 0o400), ("kvm", 0o400), ("infiniband/rdma_cm", 0o666)] {
        fs::set_permissions(machine.path("dev").join(file), Permissions::from_mode(mode)).unwrap();
    }
    // Root may open everything, so this has to be looked at by somebody else.
    let mut doctor = machine.script("doctor.sh");
    if rustix::process::getuid().is_root() {
        doctor.uid(65534).gid(65534);
    }
    let diagnosis = Diagnosis::of(&mut doctor);
    let cure = "sudo chmod a+rw /dev/infiniband/uverbs0";
    diagnosis.says("FAIL vms nic", "permissions", "you may not open /dev/infiniband/uverbs0", cure);
    diagnosis.says("note", "KVM", "you may not use /dev/kvm", "sudo usermod -aG kvm you, then log in again");
}

#[test]
fn a_machine_with_nothing_is_ready_for_nothing() {
    let diagnosis = diagnose(good().edit(&["-sys/class/infiniband", "-usr/bin/ip", NO_MODULE]));
    assert!(!diagnosis.ready && !WAYS.iter().any(|way| diagnosis.is_ready(way)), "{}", diagnosis.text);
    assert!(diagnosis.text.contains("see: SoftRoCE module, SoftRoCE device\n"), "{}", diagnosis.text);
}

//! `tools/lab/doctor.sh` on invented machines: each check is seen to pass on a good one, and to name cause and fix on one that
//! lacks what it looks for.

use crate::support::invented::{needs, path_of, Machine};
use crate::support::program;
use std::fs::{self, Permissions};
use std::os::unix::fs::{symlink, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Everything is fine on it: it has all of tools/lab/needs.txt, KVM, SoftRoCE on eth0 and a NIC on ib0.
fn good() -> Machine {
    let machine = Machine::new(&[
        "$id=case $1 in -un) echo you ;; *) echo 1000 ;; esac",
        "dev/kvm=",
        "proc/sys/kernel/random/boot_id=this-boot",
        "a checkout/target/lab/kvm=true /usr/bin/qemu-system-x86_64 this-boot",
        "proc/self/limits=Max locked memory         8388608              8388608              bytes",
        "dev/infiniband/rdma_cm=",
        "dev/infiniband/uverbs0=",
        "sys/class/infiniband/rxe0/parent=eth0",
        "sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0=ib0",
    ]);
    for device in ["rxe0", "mlx5_0"] {
        let port = format!("sys/class/infiniband/{device}/ports/1");
        machine.edit(&[&format!("{port}/state=4: ACTIVE"), &format!("{port}/gid_attrs/types/0=RoCE v2")]);
        machine.edit(&[&format!("{port}/gids/0=fe80:0000::2"), &format!("{port}/gids/1=0000:0000::ffff:0a2f:5b02")]);
    }
    for file in ["kvm", "infiniband/rdma_cm", "infiniband/uverbs0"] {
        fs::set_permissions(machine.path("dev").join(file), Permissions::from_mode(0o666)).unwrap();
    }
    machine
}

/// What the doctor says about a machine.
struct Diagnosis(String);

fn diagnose(machine: &Machine) -> Diagnosis {
    diagnosis_of(machine.script("doctor.sh", ""))
}

fn diagnosis_of(mut doctor: Command) -> Diagnosis {
    // Root may open everything, so somebody else must look.
    if rustix::process::getuid().is_root() {
        doctor.uid(65534).gid(65534);
    }
    let output = doctor.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "the doctor has nothing to complain about");
    let diagnosis = Diagnosis(String::from_utf8(output.stdout).unwrap());
    assert_eq!(output.status.success(), diagnosis.0.contains("  yes "), "{}", diagnosis.0);
    diagnosis
}

impl Diagnosis {
    /// A check says this: `OK`, `note`, or `FAIL` and the ways it stops, with exactly this fix.
    fn says(&self, status: &str, name: &str, text: &str, fix: &str) {
        let mut lines = self.0.lines();
        let line = lines.find(|line| line.len() > 31 && line[8..31].trim() == name);
        let line = line.unwrap_or_else(|| panic!("no check {name}:\n{}", self.0));
        let found_fix = lines.next().and_then(|line| line.trim().strip_prefix("fix: ")).unwrap_or_default();
        let (kind, ways) = status.split_once(' ').unwrap_or((status, ""));
        assert_eq!((line[..8].trim(), found_fix), (kind, fix), "{line}");
        assert!(line[31..].contains(text), "no {text:?} in: {line}");
        assert!(ways.is_empty() || line.ends_with(&format!(" (stops: {ways})")), "not {ways:?}: {line}");
        assert!(ways.split_whitespace().all(|way| self.0.contains(&format!("  no  {way},"))), "{ways}:\n{}", self.0);
    }
}

#[test]
fn a_good_machine_passes_every_check_and_is_ready_in_all_four_ways() {
    let text = diagnose(&good()).0;
    let parts = ["yes lab", "yes device", "yes vms", "yes nic", "ACTIVE on ib0"];
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    assert!(!["FAIL", "note", "fix"].iter().any(|word| text.contains(word)), "{text}");
    assert!(text.lines().filter(|line| line.starts_with("  OK")).all(|line| !line[8..31].trim().is_empty()), "{text}");
}

/// Whatever of tools/lab/needs.txt is missing: make gets it where there is apt. What must be the machine's own, and everything
/// elsewhere, is named with the distribution's packages.
#[test]
fn each_row_of_the_table_is_missed_and_cured() {
    // In each round every row lacks another one of the things that it names.
    for round in 0..3 {
        let lacks = |need: &[String; 6]| need[2].split(' ').nth(round).map(str::to_owned);
        let mut missed = needs();
        missed.retain(|need| {
            !["nvme", "shell", "python", "test", "check", "grade", "wasm", "site", "browser"]
                .contains(&need[0].as_str())
                && lacks(need).is_some()
        });
        let machine = good();
        for check in missed.iter().filter_map(lacks) {
            // Any provider will do, so that all must go. Some files are in two rows.
            let path = machine.path(&path_of(check.strip_suffix("/*-rdmav*.so").unwrap_or(&check)));
            let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
        }
        for (edit, start, column) in [("$dnf=", "sudo dnf install ", 4), ("$apt-get=", "sudo apt-get install ", 3)] {
            let diagnosis = diagnose(machine.edit(&[edit]));
            for need in &missed {
                let (text, fix) = (format!("not found: {}", need[2]), format!("{start}{}", need[column]));
                match need[0].as_str() {
                    "cargo" | "build" | "lab" if column == 3 => diagnosis.says("note", &need[1], "make gets it", ""),
                    "lab" => diagnosis.says("FAIL lab", &need[1], &text, &fix),
                    "device" => diagnosis.says("FAIL vms nic", &need[1], &text, &fix),
                    _ => diagnosis.says("FAIL lab device vms nic", &need[1], &text, &fix),
                }
            }
        }
    }
}

const NO_MODULE: &str = "lib/modules/6.1.0-40-amd64/modules.dep=kernel/net/other.ko:";
const PORT: &str =
    "proc/net/udp=   18: 00000000:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 0 2";
const LIMIT: &str = "proc/self/limits=Max locked memory 65536 65536 bytes";
/// What is changed on the good machine, DEV being the folder of its devices; and of each check the status, its name, a part of
/// its text, its fix.
type Case = (&'static [&'static str], &'static [(&'static str, &'static str, &'static str, &'static str)]);

#[rustfmt::skip] // A table.
const CASES: &[Case] = &[
    (&["$cargo=echo 'cargo 1.63.0 (fd9c4297c 2022-07-01)'", NO_MODULE, "$pacman=", "$firewall-cmd=echo running",
        "a checkout/target/lab/kvm=true qemu an-earlier-boot", "-DEV", "$id=echo 0", LIMIT, PORT], &[
        ("FAIL lab device vms nic", "a recent cargo", "not found: cargo", "sudo pacman -S rust"),
        ("FAIL lab", "a kernel to boot", "not found: kernel", "sudo pacman -S linux"),
        ("note", "KVM", "has not been tried yet", "make lesson-04 tries it"),
        ("FAIL vms", "SoftRoCE module", "(6.1.0-40-amd64) has no rdma_rxe", "sudo pacman -S linux"),
        ("FAIL vms", "SoftRoCE device", "this machine has none", "sudo tools/lab/softroce.sh up"),
        ("FAIL device", "UDP port 4791", "on all addresses",
            "sudo rmmod rdma_rxe, or before make: unshare -rn sh -c 'ip link set lo up; exec sh'"),
        ("FAIL nic", "RDMA NIC", "none", "if the machine has such a card: sudo modprobe DRIVER (lspci -k names it)"),
        ("OK", "locked memory", "65536", ""), // Root may lock as much as there is.
        ("note", "firewall", "firewalld is on", "sudo firewall-cmd --add-port=4791/udp"),
    ]),
    (&["$cargo=echo 'rustup could not choose a version'", "a checkout/target/debug/lesson-01=", NO_MODULE, "$dnf=", LIMIT,
        "-usr/include/rdma/rdma_cma.h", "a checkout/target/tools/usr/include/rdma/rdma_cma.h=", "a checkout/target/tools/env=",
        "a checkout/target/lab/kvm=false qemu this-boot", "a checkout/target/lab/kernel/6.1.0/vmlinuz=", "etc/ufw/ufw.conf=ENABLED=yes"], &[
        ("FAIL lab device", "a recent cargo", "not found: cargo", "sudo dnf install cargo rust"),
        ("OK", "rdma-core's headers", "in target/", ""),
        ("OK", "a kernel to boot", "in target/", ""),
        ("note", "KVM", "no machine could run on it", ""),
        ("FAIL vms", "SoftRoCE module", "has no rdma_rxe", "sudo dnf install kernel-modules-extra-6.1.0-40-amd64"),
        ("FAIL vms nic", "locked memory", "only 65536 bytes",
            "echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/rdma.conf, then log in again"),
        ("note", "firewall", "ufw is on", "sudo ufw allow 4791/udp"),
    ]),
    (&["proc/sys/kernel/yama/ptrace_scope=2", "$uname=case $1 in -r) echo 5.4.0-150-generic ;; *) echo x86_64 ;; esac"], &[
        ("FAIL device", "system calls", "5.4.0-150-generic cannot hand them on", "boot Linux 5.9 or later"),
        ("FAIL device", "programs' memory", "ptrace_scope is 2", "sudo sysctl kernel.yama.ptrace_scope=1"),
    ]),
    (&["-dev/kvm", NO_MODULE, "etc/os-release=ID=pop\nID_LIKE=\"ubuntu debian\"", "$apt-get=", "-dev/infiniband/rdma_cm",
        "DEV/rxe0/ports/1/gids/1=0000:0000:0000:0000:0000:0000:0000:0000", "DEV/mlx5_0/ports/1/state=1: DOWN"], &[
        ("note", "KVM", "no /dev/kvm", "sudo modprobe kvm_intel (or kvm_amd)"),
        ("FAIL vms", "SoftRoCE module", "has no rdma_rxe", "sudo apt-get install linux-modules-extra-6.1.0-40-amd64"),
        ("FAIL vms", "rxe0 address", "eth0 has no IP address", "sudo ip address add ADDRESS/24 dev eth0"),
        ("FAIL nic", "mlx5_0 link", "DOWN", "sudo ip link set dev ib0 up; and check its cable"),
        ("FAIL vms nic", "permissions", "you have no right to open /dev/infiniband/rdma_cm", "sudo modprobe rdma_ucm"),
    ]),
    (&[NO_MODULE, "lib/modules/6.1.0-40-amd64/modules.builtin=kernel/rdma_rxe.ko", "DEV/mlx5_0/ports/1/gid_attrs/types/0=IB/RoCE v1"], &[
        ("OK", "SoftRoCE module", "has rdma_rxe", ""),
        ("FAIL nic", "mlx5_0 address", "for RoCE v2", "sudo ip address add ADDRESS/24 dev ib0"),
    ]),
];

#[test]
fn each_other_check_names_cause_and_fix() {
    for (edits, checks) in CASES {
        let edits: Vec<String> = edits.iter().map(|edit| edit.replace("DEV", "sys/class/infiniband")).collect();
        let diagnosis = diagnose(good().edit(&edits.iter().map(String::as_str).collect::<Vec<_>>()));
        for (status, name, text, fix) in *checks {
            diagnosis.says(status, name, text, fix);
        }
    }
}

#[test]
fn what_is_there_has_to_be_of_use() {
    let machine = good();
    for file in ["infiniband/uverbs0", "kvm"] {
        fs::set_permissions(machine.path("dev").join(file), Permissions::from_mode(0o400)).unwrap();
    }
    machine.edit(&["-usr/bin/busybox"]);
    symlink(program("sh"), machine.path("usr/bin/busybox")).unwrap();
    let diagnosis = diagnose(&machine);
    let fix = "sudo chmod a+rw /dev/infiniband/uverbs0";
    diagnosis.says("FAIL vms nic", "permissions", "you have no right to open /dev/infiniband/uverbs0", fix);
    diagnosis.says("note", "KVM", "you have no right to open /dev/kvm", "sudo usermod -aG kvm you, then log in again");
    let fix = "install busybox-static (as Debian calls it), busybox (Fedora) or busybox (Arch)";
    diagnosis.says("FAIL lab", "a static busybox", "not found: static:busybox", fix);
}

/// As under make, whose shells read the env of this checkout, or after that of another one.
#[test]
fn what_an_env_brings_is_not_installed() {
    let machine = good();
    for checkout in ["a checkout", "another"] {
        let tools = machine.path(checkout).join("target/tools");
        machine.edit(&[&format!("{checkout}/target/tools/usr/bin/x=")]);
        symlink(machine.path("command"), tools.join("usr/bin/depmod")).unwrap();
        fs::write(tools.join("env"), format!("PATH=$PATH:'{}'\n", tools.join("usr/bin").display())).unwrap();
    }
    machine.edit(&["-usr/bin/depmod"]);
    for (checkout, unpacked, said) in [
        ("a checkout", true, ("OK", "in target/", "")),
        ("another", true, ("OK", "in target/", "")),
        ("another", false, ("FAIL lab", "not found: depmod xz zstd", "sudo pacman -S kmod xz zstd")),
    ] {
        if !unpacked {
            machine.edit(&["-a checkout/target/tools"]);
        }
        let mut doctor = machine.edit(&["$pacman="]).script("doctor.sh", "");
        let (tools, own) = (machine.path(checkout).join("target/tools"), machine.path("usr/bin"));
        doctor.env("PATH", format!("{}:{}", tools.join("usr/bin").display(), own.display())).env("RDMA_TOOLS", &tools);
        let (status, text, fix) = said;
        diagnosis_of(doctor).says(status, "depmod, xz and zstd", text, fix);
    }
}

//! `lab/doctor.sh` on invented machines: a folder for the root, and a folder of small scripts for the commands.
//!
//! Each check is seen to pass on a good machine, and to name cause and cure on one that lacks what it looks for.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

mod support;

use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

const LAB: &str = env!("CARGO_MANIFEST_DIR");
const SCRIPTS: [&str; 5] = ["doctor.sh", "needs.sh", "needs.txt", "doctor/rdma.sh", "doctor/packets.sh"];
/// What every machine has, and the doctor itself uses.
const BASICS: [&str; 9] = ["sh", "dirname", "head", "grep", "sed", "cat", "awk", "tr", "cut"];
const ALL: [&str; 3] = ["lab", "vms", "nic"];

/// A machine on which everything is fine: Debian with all of lab/needs.txt, KVM, SoftRoCE on eth0 and a NIC on ib0.
struct Machine {
    folder: TempDir,
}

impl Machine {
    fn good() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let machine = Self { folder };
        fs::create_dir_all(machine.path("usr/bin")).unwrap();
        for name in BASICS {
            symlink(lab::files::program(name).unwrap(), machine.path("usr/bin").join(name)).unwrap();
        }
        for script in SCRIPTS {
            machine.file(&format!("repo/lab/{script}"), &support::read_lab(script));
        }
        support::write_script(&machine.path("program"), "");
        for need in support::needs() {
            for file in need.checks.iter().map(|check| support::path_of(check)) {
                if file.starts_with("usr/bin/") {
                    let _ = fs::hard_link(machine.path("program"), machine.path(&file));
                } else {
                    machine.file(&file, "");
                }
            }
        }
        machine.edit(&[
            "$uname=case $1 in -m) echo x86_64 ;; *) echo 6.1.0-40-amd64 ;; esac",
            "$id=case $1 in -un) echo you ;; *) echo 0 ;; esac",
            "$cargo=echo 'cargo 1.75.0 (1d8b05cdd 2023-11-20)'",
            "$rustc=",
            "$qemu-system-x86_64=echo 'QEMU emulator version 7.2.9'",
            "$tshark=echo 'TShark (Wireshark) 4.0.17'",
            "$iptables=echo '-P INPUT ACCEPT'",
            "$dumpcap=",
            "$nft=",
            "repo/Cargo.toml=rust-version = \"1.75\"",
            "etc/os-release=ID=debian",
            "lib/modules/6.1.0-40-amd64/modules.dep=kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko:",
            "dev/kvm=",
            "proc/sys/kernel/random/boot_id=this-boot",
            "repo/target/lab/kvm=true /usr/bin/qemu-system-x86_64 this-boot",
            "proc/self/limits=Max locked memory         8388608              8388608              bytes",
            "dev/infiniband/rdma_cm=",
            "dev/infiniband/uverbs0=",
            "home/you/.config/wireshark/profiles/rdma/colorfilters=",
            "sys/class/infiniband/rxe0/parent=eth0",
        ]);
        machine.device("rxe0", "eth0").device("mlx5_0", "ib0");
        machine
    }

    fn device(&self, name: &str, netdev: &str) -> &Self {
        let folder = format!("sys/class/infiniband/{name}");
        self.file(&format!("{folder}/node_type"), "1: CA\n");
        self.file(&format!("{folder}/ports/1/state"), "4: ACTIVE\n");
        self.file(&format!("{folder}/ports/1/gid_attrs/ndevs/0"), &format!("{netdev}\n"));
        self.file(&format!("{folder}/ports/1/gid_attrs/types/0"), "RoCE v2\n");
        self.file(&format!("{folder}/ports/1/gids/0"), "fe80:0000:0000:0000:0000:00ff:fe00:0002\n");
        self.file(&format!("{folder}/ports/1/gids/1"), "0000:0000:0000:0000:0000:ffff:0a2f:5b02\n");
        self.file(&format!("sys/class/net/{netdev}/mtu"), "1500\n")
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn file(&self, path: &str, content: &str) -> &Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// `-PATH` is no longer there, `PATH=CONTENT` is a file, `$NAME=SCRIPT` a command.
    fn edit(&self, edits: &[&str]) -> &Self {
        for edit in edits {
            match (edit.strip_prefix('-'), edit.strip_prefix('$')) {
                (Some(path), _) if self.path(path).is_dir() => fs::remove_dir_all(self.path(path)).unwrap(),
                (Some(path), _) => fs::remove_file(self.path(path)).unwrap(),
                (_, Some(command)) => {
                    let (name, script) = command.split_once('=').unwrap();
                    support::write_script(&self.path("usr/bin").join(name), script);
                }
                _ => {
                    let (path, content) = edit.split_once('=').unwrap();
                    self.file(path, &format!("{content}\n"));
                }
            }
        }
        self
    }

    fn doctor(&self) -> Command {
        let mut command = Command::new("/bin/sh");
        command.arg(self.path("repo/lab/doctor.sh")).current_dir("/").env_clear();
        command.env("PATH", self.path("usr/bin")).env("DOCTOR_ROOT", self.folder.path()).env("HOME", "/home/you");
        command
    }

    fn diagnosis(&self) -> Diagnosis {
        diagnose(&mut self.doctor())
    }
}

/// What the doctor says about a machine.
struct Diagnosis {
    text: String,
    ready: bool,
}

fn diagnose(command: &mut Command) -> Diagnosis {
    let output = command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "the doctor has nothing to complain about");
    Diagnosis { text: String::from_utf8(output.stdout).unwrap(), ready: output.status.success() }
}

impl Diagnosis {
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
        let stopped: Vec<_> = ALL.into_iter().filter(|way| !self.is_ready(way)).collect();
        assert!(ways.split_whitespace().all(|way| stopped.contains(&way)), "{ways}:\n{}", self.text);
    }

    fn is_ready(&self, way: &str) -> bool {
        self.text.contains(&format!("  yes {way},"))
    }
}

#[test]
fn a_good_machine_passes_every_check_and_is_ready_in_all_three_ways() {
    let diagnosis = Machine::good().diagnosis();
    assert!(diagnosis.ready && ALL.iter().all(|way| diagnosis.is_ready(way)), "{}", diagnosis.text);
    let bad = diagnosis.text.lines().find(|line| ["FAIL", "note", "cure"].iter().any(|word| line.contains(word)));
    assert_eq!(bad, None);
    for (name, text) in [
        ("cargo and rustc", "cargo 1.75.0"),
        ("QEMU", "version 7.2.9"),
        ("the SoftRoCE provider", "/usr/lib/x86_64-linux-gnu/librdmacm.so.1"),
        ("KVM", "really runs"),
        ("rxe0 interface", "eth0"),
        ("mlx5_0 interface", "ib0"),
    ] {
        diagnosis.says("OK", name, text, "");
    }
}

/// Whatever of lab/needs.txt is missing: make gets it where there is apt, if it is not unpacked already. What has to be
/// installed, and everything elsewhere, is named with the distribution's own packages.
#[test]
fn each_row_of_the_table_is_missed_and_cured() {
    for need in support::needs() {
        let ways = match need.stage.as_str() {
            "own" | "build" => "lab vms nic",
            "lab" => "lab",
            "device" => "vms nic",
            _ => continue,
        };
        for check in &need.checks {
            let machine = Machine::good();
            let file = support::path_of(check);
            let path = if check.contains('*') { file.rsplit_once('/').unwrap().0 } else { &file };
            let check = check.as_str();
            let content = fs::read_to_string(machine.path(&file)).unwrap();
            machine.edit(&[&format!("-{path}")]);
            let fails = |id: &str, cure: &str| {
                machine.file("etc/os-release", &format!("ID={id}\n"));
                machine.diagnosis().says(&format!("FAIL {ways}"), &need.what, check, cure);
            };
            fails("fedora", &format!("sudo dnf install {}", need.fedora));
            fails("arch", &format!("sudo pacman -S {}", need.arch));
            fails("slackware", &support::in_each_distribution(&need));
            machine.edit(&["etc/os-release=ID=debian", "$apt-get="]);
            if ["own", "device"].contains(&need.stage.as_str()) {
                fails("debian", &format!("sudo apt-get install {}", need.debian));
                continue;
            }
            machine.diagnosis().says("note", &need.what, "make gets it", "");
            let unpacked = if check == "kernel" { "kernel/linux-image.deb" } else { &file };
            let unpacked = format!("repo/target/tools/{unpacked}");
            machine.file(&unpacked, &content);
            fs::set_permissions(machine.path(&unpacked), fs::Permissions::from_mode(0o755)).unwrap();
            let folder = machine.path("repo/target/tools/usr/bin");
            machine.file("repo/target/tools/env", &format!("PATH=\"{}:$PATH\"\n", folder.display()));
            machine.diagnosis().says("OK", &need.what, "unpacked below target/", "");
        }
    }
}

#[test]
fn what_is_there_has_to_be_of_use() {
    for (edit, ways, name) in [
        ("$cargo=echo 'cargo 1.63.0 (fd9c4297c 2022-07-01)'", "lab vms nic", "cargo and rustc"),
        ("$cargo=echo 'rustup could not choose a version'", "lab vms nic", "cargo and rustc"),
        ("$busybox=# /lib64/ld-linux-x86-64.so.2", "lab", "a static busybox"),
        (NO_MODULE, "lab", "a kernel to boot"),
    ] {
        let machine = Machine::good();
        machine.edit(&[edit, "etc/os-release=ID=slackware"]);
        let need = support::needs().into_iter().find(|need| need.what == name).unwrap();
        let cure = support::in_each_distribution(&need);
        machine.diagnosis().says(&format!("FAIL {ways}"), name, "not found", &cure);
    }
    let machine = Machine::good();
    machine.edit(&[NO_MODULE, "repo/target/lab/kernel/6.1.0/vmlinuz="]);
    assert!(machine.diagnosis().is_ready("lab"));
}

#[test]
fn lessons_that_were_copied_built_need_no_cargo_but_for_the_lab() {
    let machine = Machine::good();
    machine.edit(&["-usr/bin/cargo", "etc/os-release=ID=arch", "repo/target/debug/lesson-01="]);
    let diagnosis = machine.diagnosis();
    diagnosis.says("FAIL lab", "cargo and rustc", "not found: cargo", "sudo pacman -S rust");
    assert!(diagnosis.is_ready("vms") && diagnosis.is_ready("nic"));
}

/// What is changed on the good machine; the status of the check, its name, a part of its text, its cure.
type Case = (&'static [&'static str], &'static str, &'static str, &'static str, &'static str);

const NO_MODULE: &str = "lib/modules/6.1.0-40-amd64/modules.dep=kernel/net/other.ko:";
const USER: &str = "$id=case $1 in -un) echo you ;; *) echo 1000 ;; esac";
const CHAIN: &str = "table inet filter {\n chain input {\n  type filter hook input priority 0; policy drop;";

#[rustfmt::skip] // A table.
const CASES: &[Case] = &[
    // KVM is believed only if a machine ran on it.
    (&["repo/target/lab/kvm=true qemu an-earlier-boot"], "note", "KVM", "not tried yet", "make lesson-01 tries it"),
    (&["repo/target/lab/kvm=false qemu this-boot"], "note", "KVM", "no machine runs on it", ""),
    (&["-dev/kvm", "proc/cpuinfo=flags : fpu vmx lm"], "note", "KVM", "no /dev/kvm", "sudo modprobe kvm_intel"),
    (&["-dev/kvm", "proc/cpuinfo=flags : fpu svm lm"], "note", "KVM", "no /dev/kvm", "sudo modprobe kvm_amd"),
    (&["-dev/kvm", "proc/cpuinfo=flags : fpu sse lm"], "note", "KVM", "no virtualization", ""),
    // Each distribution has the module in another package.
    (&[NO_MODULE], "FAIL vms", "SoftRoCE module", "(6.1.0-40-amd64) has no rdma_rxe", "sudo apt-get install linux-image-amd64, then boot it"),
    (&[NO_MODULE, "etc/os-release=ID=pop\nID_LIKE=\"ubuntu debian\""], "FAIL vms", "SoftRoCE module", "has no rdma_rxe", "sudo apt-get install linux-modules-extra-6.1.0-40-amd64"),
    (&[NO_MODULE, "etc/os-release=ID=fedora"], "FAIL vms", "SoftRoCE module", "has no rdma_rxe", "sudo dnf install kernel-modules-6.1.0-40-amd64 kernel-modules-extra-6.1.0-40-amd64"),
    (&[NO_MODULE, "etc/os-release=ID=slackware"], "FAIL vms", "SoftRoCE module", "has no rdma_rxe", "use a kernel that is built with CONFIG_RDMA_RXE"),
    (&[NO_MODULE, "lib/modules/6.1.0-40-amd64/modules.builtin=kernel/rdma_rxe.ko"], "OK", "SoftRoCE module", "has rdma_rxe", ""),
    (&[NO_MODULE, "sys/module/rdma_rxe/version="], "OK", "SoftRoCE module", "is loaded", ""),
    // Devices, and what connects them.
    (&["-sys/class/infiniband/rxe0"], "FAIL vms", "SoftRoCE device", "there is none", "sudo lab/softroce.sh up"),
    (&["-sys/class/infiniband/mlx5_0"], "FAIL nic", "RDMA NIC", "there is none", "with such a card in the machine: sudo modprobe DRIVER (lspci -k names it)"),
    (&["sys/class/infiniband/siw0/node_type=4: RNIC"], "note", "iWARP device", "siw0: the lessons run on it", ""),
    (&["sys/class/infiniband/rxe0/ports/1/state=1: DOWN"], "FAIL vms", "rxe0 link", "DOWN", "sudo ip link set dev eth0 up (and is its cable in?)"),
    (&["-sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0"], "FAIL nic", "mlx5_0 interface", "no network interface", "sudo rdma link show"),
    (&["sys/class/infiniband/siw0/node_type=4: RNIC", "sys/class/infiniband/siw0/parent=eth0"], "FAIL vms", "rxe0 interface", "eth0 carries siw0, too", "sudo rdma link delete siw0"),
    // SoftRoCE on top of a NIC: it is not the NIC that goes.
    (&["sys/class/infiniband/rxe0/parent=ib0"], "FAIL vms", "rxe0 interface", "ib0 carries mlx5_0, too", "sudo rdma link delete rxe0"),
    (&["sys/class/infiniband/rxe0/parent=ib0"], "FAIL nic", "mlx5_0 interface", "ib0 carries rxe0, too", "sudo rdma link delete rxe0"),
    (&["sys/class/infiniband/rxe0/ports/1/gid_attrs/types/0=IB/RoCE v1"], "FAIL vms", "rxe0 GIDs", "only RoCE v1", "with SoftRoCE instead: sudo lab/softroce.sh up INTERFACE"),
    (&["sys/class/infiniband/rxe0/ports/1/gids/1=0000:0000:0000:0000:0000:0000:0000:0000"], "FAIL vms", "rxe0 GIDs", "eth0 has no IP address", "sudo ip address add ADDRESS/24 dev eth0"),
    (&["sys/class/net/eth0/mtu=300"], "FAIL vms", "rxe0 MTU", "300 bytes is too small", "sudo ip link set dev eth0 mtu 1500"),
    (&["sys/class/net/eth0/mtu=1000"], "note", "rxe0 MTU", "carry only 512", "sudo ip link set dev eth0 mtu 1500"),
    (&["sys/class/net/eth0/mtu=1460"], "OK", "rxe0 MTU", "up to 1024", ""),
    (&["sys/class/net/eth0/mtu=9000"], "note", "rxe0 MTU", "the other machine", "sudo ip link set dev eth0 mtu 1500"),
    // Rights. Root may lock as much as there is.
    (&["proc/self/limits=Max locked memory 65536 65536 bytes"], "OK", "locked memory", "65536", ""),
    (&[USER, "proc/self/limits=Max locked memory unlimited unlimited bytes"], "OK", "locked memory", "unlimited", ""),
    (&[USER, "proc/self/limits=Max locked memory 65536 65536 bytes"], "FAIL vms nic", "locked memory", "only 65536 bytes", "echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/rdma.conf, then log in again"),
    (&["-dev/infiniband/rdma_cm"], "FAIL vms nic", "permissions", "/dev/infiniband/rdma_cm is missing", "sudo modprobe rdma_ucm"),
    // Firewalls.
    (&["etc/ufw/ufw.conf=ENABLED=yes"], "FAIL vms", "firewall", "ufw drops UDP port 4791", "sudo ufw allow 4791/udp"),
    (&["etc/ufw/ufw.conf=ENABLED=yes", "etc/ufw/user.rules=-p udp --dport 4791 -j ACCEPT"], "OK", "firewall", "ufw lets", ""),
    (&["$firewall-cmd=case $1 in --state) echo running ;; *) exit 1 ;; esac"], "FAIL vms", "firewall", "firewalld drops", "sudo firewall-cmd --permanent --add-port=4791/udp && sudo firewall-cmd --reload"),
    (&["$firewall-cmd=case $1 in --state) echo running ;; esac"], "OK", "firewall", "firewalld lets", ""),
    (&["$nft=cat \"$DOCTOR_ROOT\"/rules", "rules=CHAIN\n }\n}"], "FAIL vms", "firewall", "nftables drops", "sudo nft insert rule inet filter input udp dport 4791 accept"),
    (&["$nft=cat \"$DOCTOR_ROOT\"/rules", "rules=CHAIN\n  udp dport 4791 accept\n }\n}"], "OK", "firewall", "nftables lets", ""),
    (&["$iptables=echo '-P INPUT DROP'"], "FAIL vms", "firewall", "iptables drops", "sudo iptables -I INPUT -p udp --dport 4791 -j ACCEPT"),
    (&["$iptables=echo '-P INPUT DROP'; echo '-A INPUT -p udp --dport 4791 -j ACCEPT'"], "OK", "firewall", "iptables lets", ""),
    (&[USER], "note", "firewall", "only root can see", "sudo lab/doctor.sh"),
    // Tools for looking at packets are missed, and stop nothing.
    (&["-home/you/.config/wireshark/profiles/rdma"], "note", "Wireshark profile", "not installed", "make wireshark-profile"),
    (&["-usr/bin/tshark"], "note", "Wireshark", "not installed", "sudo apt-get install wireshark"),
    (&["-usr/bin/dumpcap"], "note", "capture tool", "neither", "sudo apt-get install tcpdump"),
    (&["-usr/bin/dumpcap", "$tcpdump="], "OK", "capture tool", "tcpdump", ""),
];

#[test]
fn each_other_check_names_cause_and_cure() {
    for (edits, status, name, text, cure) in CASES {
        let edits: Vec<String> = edits.iter().map(|edit| edit.replace("CHAIN", CHAIN)).collect();
        let machine = Machine::good();
        machine.edit(&edits.iter().map(String::as_str).collect::<Vec<_>>());
        let diagnosis = machine.diagnosis();
        diagnosis.says(status, name, text, cure);
        assert!(status.contains("FAIL") || diagnosis.ready, "{name}: {}", diagnosis.text);
    }
}

#[test]
fn devices_have_to_be_open_to_the_user() {
    let machine = Machine::good();
    for (file, mode) in [("infiniband/uverbs0", 0o400), ("kvm", 0o400), ("infiniband/rdma_cm", 0o666)] {
        fs::set_permissions(machine.path("dev").join(file), fs::Permissions::from_mode(mode)).unwrap();
    }
    // Root may open everything, so this has to be looked at by somebody else.
    let mut doctor = machine.doctor();
    if rustix::process::getuid().is_root() {
        doctor.uid(65534).gid(65534);
    }
    let diagnosis = diagnose(&mut doctor);
    let cure = "sudo chmod a+rw /dev/infiniband/uverbs0";
    diagnosis.says("FAIL vms nic", "permissions", "you may not open /dev/infiniband/uverbs0", cure);
    diagnosis.says("note", "KVM", "you may not use /dev/kvm", "sudo usermod -aG kvm you, then log in again");
}

#[test]
fn a_machine_with_nothing_is_ready_for_nothing() {
    let machine = Machine::good();
    let diagnosis = machine.edit(&["-sys/class/infiniband", "-usr/bin/ip", "etc/os-release=ID=arch"]).diagnosis();
    assert!(!diagnosis.ready && !ALL.iter().any(|way| diagnosis.is_ready(way)), "{}", diagnosis.text);
    assert!(diagnosis.text.contains("see: SoftRoCE device\n"), "{}", diagnosis.text);
}

/// Every cure that is part of this repository exists. The others are commands of the system, and package names.
#[test]
fn cures_name_targets_and_scripts_that_exist() {
    let text: String = SCRIPTS.map(support::read_lab).concat();
    let makefile = support::read_lab("../Makefile");
    let named = |mark| {
        let is_end = |c: char| !c.is_ascii_alphanumeric() && !"-_./".contains(c);
        text.split(mark).skip(1).map(move |rest| rest.split(is_end).next().unwrap_or_default())
    };
    let targets: Vec<_> = named("make ").filter(|name| name.contains('-')).collect();
    assert!(targets.len() >= 4, "{targets:?}");
    for target in targets {
        let target = target.trim_end_matches("NN").trim_end_matches("01");
        assert!(makefile.contains(&format!("\n{target}:")) || makefile.contains(&format!(": {target}%:")), "{target}");
    }
    assert!(named("sudo lab/").all(|script| PathBuf::from(LAB).join(script).exists()));
}

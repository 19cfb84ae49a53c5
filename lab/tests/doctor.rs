//! `lab/doctor.sh` on invented machines: a folder for the root, and a folder of small scripts for the commands.
//!
//! Each check is seen to pass on a good machine, and to name cause and cure on one that lacks what it looks for.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

mod support;

use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// What every machine has, and the doctor itself uses.
const BASICS: [&str; 7] = ["sh", "dirname", "head", "grep", "sed", "cat", "awk"];
const PORT: &str = "sys/class/infiniband/rxe0/ports/1";

/// A machine on which everything is fine: Debian 12 with QEMU, KVM, SoftRoCE on eth0 and a NIC on ib0.
struct Machine {
    folder: TempDir,
}

/// What the doctor says about a machine.
struct Diagnosis {
    text: String,
    ready: bool,
}

impl Machine {
    fn good() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let machine = Self { folder };
        machine.commands();
        machine.files();
        machine
    }

    fn commands(&self) {
        let commands = self.path("usr/bin");
        fs::create_dir_all(&commands).unwrap();
        for name in BASICS {
            symlink(lab::files::program(name).unwrap(), commands.join(name)).unwrap();
        }
        self.command("uname", "case $1 in -m) echo x86_64 ;; *) echo 6.1.0-40-amd64 ;; esac");
        self.command("id", "case $1 in -un) echo you ;; *) echo 0 ;; esac");
        self.command("cargo", "echo 'cargo 1.75.0 (1d8b05cdd 2023-11-20)'");
        self.command("qemu-system-x86_64", "echo 'QEMU emulator version 7.2.9'");
        self.command("tshark", "echo 'TShark (Wireshark) 4.0.17'");
        self.command("iptables", "echo '-P INPUT ACCEPT'");
        for name in ["cc", "pkg-config", "busybox", "ip", "tc", "rdma", "depmod", "xz", "zstd", "dumpcap", "nft"] {
            self.command(name, "");
        }
    }

    fn files(&self) {
        for script in ["doctor.sh", "doctor/build.sh", "doctor/lab.sh", "doctor/rdma.sh", "doctor/packets.sh"] {
            self.file(&format!("repo/lab/{script}"), &read(&Path::new(REPOSITORY).join("lab").join(script)));
        }
        self.file("repo/Cargo.toml", "rust-version = \"1.75\"\n");
        self.file("repo/.cargo/config.toml", "LIBCLANG_PATH = { value = \"/usr/lib/libclang-14.so\", force = true }\n");
        self.file("usr/lib/libclang-14.so", "");
        self.file("usr/include/infiniband/verbs.h", "");
        self.file("usr/include/rdma/rdma_cma.h", "");
        self.file("usr/lib/x86_64-linux-gnu/librdmacm.so.1", "");
        self.file("usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so", "");
        self.file("etc/os-release", "ID=debian\n");
        self.file("lib/modules/6.1.0-40-amd64/modules.dep", "kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko:\n");
        self.file("boot/vmlinuz-6.1.0-40-amd64", "");
        self.file("dev/kvm", "");
        self.file("proc/sys/kernel/random/boot_id", "this-boot\n");
        self.file("repo/target/lab/kvm", "true /usr/bin/qemu-system-x86_64 this-boot");
        self.file("proc/self/limits", "Max locked memory         8388608              8388608              bytes\n");
        self.file("dev/infiniband/rdma_cm", "");
        self.file("dev/infiniband/uverbs0", "");
        self.file("home/you/.config/wireshark/profiles/rdma/colorfilters", "");
        self.device("rxe0", "eth0");
        self.file("sys/class/infiniband/rxe0/parent", "eth0\n");
        self.device("mlx5_0", "ib0");
    }

    fn device(&self, name: &str, netdev: &str) {
        let folder = format!("sys/class/infiniband/{name}");
        self.file(&format!("{folder}/node_type"), "1: CA\n");
        self.file(&format!("{folder}/ports/1/state"), "4: ACTIVE\n");
        self.file(&format!("{folder}/ports/1/gid_attrs/ndevs/0"), &format!("{netdev}\n"));
        self.file(&format!("{folder}/ports/1/gid_attrs/types/0"), "RoCE v2\n");
        self.file(&format!("{folder}/ports/1/gids/0"), "fe80:0000:0000:0000:0000:00ff:fe00:0002\n");
        self.file(&format!("{folder}/ports/1/gids/1"), "0000:0000:0000:0000:0000:ffff:0a2f:5b02\n");
        self.file(&format!("sys/class/net/{netdev}/mtu"), "1500\n");
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

    fn command(&self, name: &str, script: &str) -> &Self {
        let folder = self.path("usr/bin");
        fs::create_dir_all(&folder).unwrap();
        support::write_script(&folder.join(name), script);
        self
    }

    fn without(&self, path: &str) -> &Self {
        let path = self.path(path);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
        self
    }

    fn ordinary_user(&self) -> &Self {
        self.command("id", "case $1 in -un) echo you ;; *) echo 1000 ;; esac")
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

fn diagnose(command: &mut Command) -> Diagnosis {
    let output = command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "the doctor has nothing to complain about");
    let text = String::from_utf8(output.stdout).unwrap();
    Diagnosis { text, ready: output.status.success() }
}

impl Diagnosis {
    /// The table's line for a check: its status and its text, and the cure below it.
    fn check(&self, name: &str) -> (String, String, String) {
        let mut lines = self.text.lines();
        let line = lines.find(|line| line.len() > 27 && line[8..27].trim() == name);
        let line = line.unwrap_or_else(|| panic!("no check {name}:\n{}", self.text));
        let cure = lines.next().and_then(|line| line.trim().strip_prefix("cure: ")).unwrap_or_default();
        (line[..8].trim().to_owned(), line[27..].to_owned(), cure.to_owned())
    }

    /// The check fails with a cause that holds this text, stops these ways, and is cured by this very command.
    fn fails(&self, name: &str, ways: &str, cause: &str, cure: &str) -> &Self {
        let (status, text, found) = self.check(name);
        assert_eq!(status, "FAIL", "{name}: {text}");
        assert!(text.contains(cause) && text.ends_with(&format!("(stops: {ways})")), "{name}: {text}");
        assert_eq!(found, cure, "{name}");
        for way in ["lab", "vms", "nic"] {
            assert_eq!(self.is_ready(way), !ways.contains(way), "{way}:\n{}", self.text);
        }
        self
    }

    /// The check says something that stops nothing.
    fn notes(&self, name: &str, text: &str, cure: &str) -> &Self {
        let (status, found, found_cure) = self.check(name);
        assert_eq!((status.as_str(), found_cure.as_str()), ("note", cure), "{name}: {found}");
        assert!(found.contains(text), "{name}: {found}");
        assert!(self.ready);
        self
    }

    fn passes(&self, name: &str, text: &str) -> &Self {
        let (status, found, _) = self.check(name);
        assert!(status == "OK" && found.contains(text), "{name}: {status} {found}");
        self
    }

    fn is_ready(&self, way: &str) -> bool {
        self.text.contains(&format!("  yes {way},"))
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn a_good_machine_passes_every_check_and_is_ready_in_all_three_ways() {
    let diagnosis = Machine::good().diagnosis();
    assert!(diagnosis.ready && ["lab", "vms", "nic"].iter().all(|way| diagnosis.is_ready(way)), "{}", diagnosis.text);
    let bad = diagnosis.text.lines().find(|line| ["FAIL", "note", "cure"].iter().any(|word| line.contains(word)));
    assert_eq!(bad, None);
    diagnosis.passes("KVM", "really runs").passes("rxe0 interface", "eth0").passes("mlx5_0 interface", "ib0");
}

#[test]
fn what_the_lessons_are_built_with() {
    let all = "lab vms nic";
    let without = |path| Machine::good().without(path).diagnosis();
    without("usr/bin/cargo").fails("cargo", all, "not installed", "make setup");
    without("usr/bin/cc").fails("C compiler", all, "missing: cc", "make setup");
    without("usr/bin/pkg-config").fails("C compiler", all, "missing: pkg-config", "make setup");
    without("repo/.cargo/config.toml").fails("libclang", all, "no libclang 14 or 15", "make setup");
    without("usr/lib/libclang-14.so").fails("libclang", all, "/usr/lib/libclang-14.so is gone", "make setup");
    let headers = "sudo apt-get install libibverbs-dev librdmacm-dev";
    without("usr/include/rdma/rdma_cma.h").fails("rdma-core headers", all, "rdma_cma.h is missing", headers);
    let library = "sudo apt-get install librdmacm1";
    without("usr/lib/x86_64-linux-gnu/librdmacm.so.1").fails("rdma-core library", all, "librdmacm.so.1", library);
    let provider = "sudo apt-get install ibverbs-providers";
    without("usr/lib/x86_64-linux-gnu/libibverbs").fails("SoftRoCE provider", "lab vms", "librxe", provider);

    let old = Machine::good().command("cargo", "echo 'cargo 1.63.0 (fd9c4297c 2022-07-01)'").diagnosis();
    old.fails("cargo", all, "cargo 1.63.0 (fd9c4297c 2022-07-01) is too old; 1.75 or newer", "make setup");
    let odd = Machine::good().command("cargo", "echo 'rustup could not choose a version'").diagnosis();
    odd.fails("cargo", all, "does not say its version", "make setup");
}

#[test]
fn lessons_that_were_copied_built_need_no_cargo_but_for_the_lab() {
    let machine = Machine::good();
    machine.without("usr/bin/cargo").file("repo/target/debug/lesson-01", "");
    machine.diagnosis().fails("cargo", "lab", "not installed", "make setup");
}

#[test]
fn what_the_lab_needs() {
    let without = |path| Machine::good().without(path).diagnosis();
    let qemu = "sudo apt-get install qemu-system-x86";
    without("usr/bin/qemu-system-x86_64").fails("QEMU", "lab", "qemu-system-x86_64 is not installed", qemu);
    without("usr/bin/zstd").fails("lab tools", "lab", "missing: zstd", "make setup");
    let dynamic = Machine::good().command("busybox", "# /lib64/ld-linux-x86-64.so.2").diagnosis();
    dynamic.fails("lab tools", "lab", "not a static program", "make setup");

    let machine = Machine::good();
    machine.command("uname", "case $1 in -m) echo riscv64 ;; *) echo 6.1.0-40-amd64 ;; esac");
    machine.diagnosis().fails(
        "QEMU",
        "lab",
        "not riscv64",
        "run the lessons on two real machines: docs/two_machines.md",
    );
}

#[test]
fn the_lab_finds_a_kernel_in_three_places() {
    let machine = Machine::good();
    machine.without("boot/vmlinuz-6.1.0-40-amd64");
    let readable = "sudo apt-get install linux-image-amd64, then boot it; sudo chmod a+r /boot/vmlinuz-6.1.0-40-amd64";
    machine.diagnosis().fails("kernel to boot", "lab", "no apt-get to download one", readable);
    machine.command("apt-get", "");
    machine.diagnosis().fails("kernel to boot", "lab", "no package lists", "sudo apt-get update");
    machine.file("var/lib/apt/lists/debian_Packages", "").diagnosis().passes("kernel to boot", "will download one");
    machine.file("repo/target/lab/kernel/6.1.0/vmlinuz", "").diagnosis().passes("kernel to boot", "downloaded before");
}

#[test]
fn kvm_is_believed_only_if_a_machine_ran_on_it() {
    let machine = Machine::good();
    machine.file("repo/target/lab/kvm", "true /usr/bin/qemu-system-x86_64 an-earlier-boot");
    machine.diagnosis().notes("KVM", "not tried yet", "make lesson-01 tries it");
    machine.file("repo/target/lab/kvm", "false /usr/bin/qemu-system-x86_64 this-boot");
    machine.diagnosis().notes("KVM", "no machine runs on it", "");
    for (flag, cure) in [("vmx", "sudo modprobe kvm_intel"), ("svm", "sudo modprobe kvm_amd"), ("sse", "")] {
        let machine = Machine::good();
        machine.without("dev/kvm").file("proc/cpuinfo", &format!("flags : fpu {flag} lm\n"));
        machine.diagnosis().notes("KVM", if cure.is_empty() { "no virtualization" } else { "no /dev/kvm" }, cure);
    }
}

#[test]
fn each_distribution_has_its_own_package_with_the_softroce_module() {
    let expect = |os_release: &str, cure: &str| {
        let machine = Machine::good();
        machine
            .file("lib/modules/6.1.0-40-amd64/modules.dep", "kernel/net/other.ko:\n")
            .file("etc/os-release", os_release);
        machine.file("repo/target/lab/kernel/6.1.0/vmlinuz", "");
        machine.diagnosis().fails("SoftRoCE module", "vms", "(6.1.0-40-amd64) has no rdma_rxe", cure);
    };
    expect("ID=debian\n", "sudo apt-get install linux-image-amd64, then boot it");
    expect("ID=ubuntu\nID_LIKE=debian\n", "sudo apt-get install linux-modules-extra-6.1.0-40-amd64");
    expect("ID=pop\nID_LIKE=\"ubuntu debian\"\n", "sudo apt-get install linux-modules-extra-6.1.0-40-amd64");
    let fedora = "sudo dnf install kernel-modules-6.1.0-40-amd64 kernel-modules-extra-6.1.0-40-amd64";
    expect("ID=fedora\n", fedora);
    expect("ID=slackware\n", "use a kernel that is built with CONFIG_RDMA_RXE");
}

#[test]
fn devices_and_their_links() {
    let machine = Machine::good();
    machine.without("sys/class/infiniband/rxe0");
    machine.diagnosis().fails("SoftRoCE device", "vms", "there is none", "sudo lab/softroce.sh up");

    let machine = Machine::good();
    machine.without("sys/class/infiniband/mlx5_0");
    let cure = "with such a card in the machine: sudo modprobe DRIVER (lspci -k names it)";
    machine.diagnosis().fails("RDMA NIC", "nic", "there is none", cure);

    let machine = Machine::good();
    machine.file("sys/class/infiniband/siw0/node_type", "4: RNIC\n");
    machine.diagnosis().notes("iWARP device", "siw0: the lessons run on it", "");

    let machine = Machine::good();
    machine.file(&format!("{PORT}/state"), "1: DOWN\n");
    let cure = "sudo ip link set dev eth0 up (and is its cable in?)";
    machine.diagnosis().fails("rxe0 link", "vms", "DOWN", cure);

    let machine = Machine::good();
    machine.without("sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0");
    machine.diagnosis().fails("mlx5_0 interface", "nic", "no network interface", "sudo rdma link show");
}

#[test]
fn a_second_device_on_the_same_interface_is_found() {
    let machine = Machine::good();
    machine.device("siw0", "eth0");
    machine.file("sys/class/infiniband/siw0/node_type", "4: RNIC\n");
    machine.diagnosis().fails("rxe0 interface", "vms", "eth0 carries siw0, too", "sudo rdma link delete siw0");

    // SoftRoCE on top of a NIC: it is not the NIC that goes.
    let machine = Machine::good();
    machine.device("rxe0", "ib0");
    machine.file("sys/class/infiniband/rxe0/parent", "ib0\n");
    let diagnosis = machine.diagnosis();
    for (name, other, way) in [("rxe0", "mlx5_0", "vms"), ("mlx5_0", "rxe0", "nic")] {
        let (status, cause, cure) = diagnosis.check(&format!("{name} interface"));
        assert_eq!((status.as_str(), cure.as_str()), ("FAIL", "sudo rdma link delete rxe0"));
        assert!(cause.contains(&format!("carries {other}")) && cause.contains(way), "{cause}");
    }
}

#[test]
fn gids_have_to_be_of_version_2_and_of_an_address() {
    let machine = Machine::good();
    machine.file(&format!("{PORT}/gid_attrs/types/0"), "IB/RoCE v1\n");
    let cure = "with SoftRoCE instead: sudo lab/softroce.sh up INTERFACE";
    machine.diagnosis().fails("rxe0 GIDs", "vms", "only RoCE v1", cure);

    let machine = Machine::good();
    machine.file(&format!("{PORT}/gids/1"), "0000:0000:0000:0000:0000:0000:0000:0000\n");
    let cure = "sudo ip address add ADDRESS/24 dev eth0";
    machine.diagnosis().fails("rxe0 GIDs", "vms", "eth0 has no IP address", cure);
}

#[test]
fn the_mtu_decides_what_a_packet_carries() {
    let with = |mtu: &str| {
        let machine = Machine::good();
        machine.file("sys/class/net/eth0/mtu", mtu);
        machine.diagnosis()
    };
    let cure = "sudo ip link set dev eth0 mtu 1500";
    with("300\n").fails("rxe0 MTU", "vms", "300 bytes is too small", cure);
    with("1000\n").notes("rxe0 MTU", "carry only 512", cure);
    with("1460\n").passes("rxe0 MTU", "up to 1024");
    with("9000\n").notes("rxe0 MTU", "the other machine", cure);
}

#[test]
fn locked_memory_is_limited_for_an_ordinary_user_only() {
    let machine = Machine::good();
    machine.file("proc/self/limits", "Max locked memory         65536                65536                bytes\n");
    machine.diagnosis().passes("locked memory", "65536");
    let cure = "echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/rdma.conf, then log in again";
    machine.ordinary_user().diagnosis().fails("locked memory", "vms nic", "only 65536 bytes", cure);
    machine.file("proc/self/limits", "Max locked memory         unlimited            unlimited            bytes\n");
    machine.diagnosis().passes("locked memory", "unlimited");
}

#[test]
fn devices_have_to_be_there_and_open_to_the_user() {
    let machine = Machine::good();
    machine.without("dev/infiniband/rdma_cm");
    let diagnosis = machine.diagnosis();
    diagnosis.fails("permissions", "vms nic", "/dev/infiniband/rdma_cm is missing", "sudo modprobe rdma_ucm");

    // Root may open everything, so this has to be looked at by somebody else.
    let machine = Machine::good();
    for file in ["dev/infiniband/uverbs0", "dev/kvm"] {
        fs::set_permissions(machine.path(file), fs::Permissions::from_mode(0o400)).unwrap();
    }
    let others = machine.path("dev/infiniband/rdma_cm");
    fs::set_permissions(others, fs::Permissions::from_mode(0o666)).unwrap();
    let mut doctor = machine.doctor();
    if rustix::process::getuid().is_root() {
        doctor.uid(65534).gid(65534);
    }
    let diagnosis = diagnose(&mut doctor);
    let cure = "sudo chmod a+rw /dev/infiniband/uverbs0";
    diagnosis.fails("permissions", "vms nic", "you may not open /dev/infiniband/uverbs0", cure);
    diagnosis.notes("KVM", "you may not use /dev/kvm", "sudo usermod -aG kvm you, then log in again");
}

#[test]
fn firewalls_that_drop_roce_are_named() {
    let ufw = Machine::good();
    ufw.file("etc/ufw/ufw.conf", "ENABLED=yes\n");
    ufw.diagnosis().fails("firewall", "vms", "ufw drops UDP port 4791", "sudo ufw allow 4791/udp");
    ufw.file("etc/ufw/user.rules", "-A ufw-user-input -p udp --dport 4791 -j ACCEPT\n");
    ufw.diagnosis().passes("firewall", "ufw lets");

    let firewalld = Machine::good();
    firewalld.command("firewall-cmd", "case $1 in --state) echo running ;; *) exit 1 ;; esac");
    let cure = "sudo firewall-cmd --permanent --add-port=4791/udp && sudo firewall-cmd --reload";
    firewalld.diagnosis().fails("firewall", "vms", "firewalld drops", cure);
    firewalld.command("firewall-cmd", "case $1 in --state) echo running ;; esac");
    firewalld.diagnosis().passes("firewall", "firewalld lets");

    let nftables = Machine::good();
    let chain = "echo 'table inet filter {\n chain input {\n  type filter hook input priority 0; policy drop;";
    nftables.command("nft", &format!("{chain}\n }}\n}}'"));
    let cure = "sudo nft insert rule inet filter input udp dport 4791 accept";
    nftables.diagnosis().fails("firewall", "vms", "nftables drops", cure);
    nftables.command("nft", &format!("{chain}\n  udp dport 4791 accept\n }}\n}}'"));
    nftables.diagnosis().passes("firewall", "nftables lets");

    let iptables = Machine::good();
    iptables.command("iptables", "echo '-P INPUT DROP'");
    let cure = "sudo iptables -I INPUT -p udp --dport 4791 -j ACCEPT";
    iptables.diagnosis().fails("firewall", "vms", "iptables drops", cure);
    iptables.command("iptables", "echo '-P INPUT DROP'; echo '-A INPUT -p udp --dport 4791 -j ACCEPT'");
    iptables.diagnosis().passes("firewall", "iptables lets");

    let hidden = Machine::good();
    hidden.ordinary_user().diagnosis().notes("firewall", "only root can see", "sudo lab/doctor.sh");
}

#[test]
fn tools_for_looking_at_packets_are_missed_but_stop_nothing() {
    let machine = Machine::good();
    machine.without("home/you/.config/wireshark/profiles/rdma");
    machine.diagnosis().notes("Wireshark profile", "not installed", "make wireshark-profile");
    machine.without("usr/bin/tshark");
    machine.diagnosis().notes("Wireshark", "not installed", "sudo apt-get install wireshark");
    machine.without("usr/bin/dumpcap");
    machine.diagnosis().notes("capture tool", "neither", "sudo apt-get install tcpdump");
    machine.command("tcpdump", "").diagnosis().passes("capture tool", "tcpdump");
}

#[test]
fn package_names_are_those_of_the_distribution() {
    for (id, cure) in [
        ("fedora", "sudo dnf install qemu-system-x86-core"),
        ("arch", "sudo pacman -S qemu-system-x86"),
        ("slackware", "install the package qemu-system-x86 (Debian, Ubuntu), qemu-system-x86-core (Fedora) or qemu-system-x86 (Arch)"),
    ] {
        let machine = Machine::good();
        machine.without("usr/bin/qemu-system-x86_64").file("etc/os-release", &format!("ID={id}\n"));
        machine.diagnosis().fails("QEMU", "lab", "not installed", cure);
    }
}

#[test]
fn a_machine_with_nothing_is_ready_for_nothing() {
    let machine = Machine::good();
    machine.without("sys/class/infiniband").without("usr/bin/qemu-system-x86_64");
    let diagnosis = machine.diagnosis();
    assert!(!diagnosis.ready, "{}", diagnosis.text);
    assert!(!["lab", "vms", "nic"].iter().any(|way| diagnosis.is_ready(way)), "{}", diagnosis.text);
    assert!(diagnosis.text.contains("see: SoftRoCE device\n"), "{}", diagnosis.text);
}

/// Every cure that is part of this repository exists. The others are commands of the system, and package names.
#[test]
fn cures_name_targets_and_scripts_that_exist() {
    let makefile = read(&Path::new(REPOSITORY).join("Makefile"));
    let scripts = ["doctor.sh", "doctor/build.sh", "doctor/lab.sh", "doctor/rdma.sh", "doctor/packets.sh"];
    let text: String = scripts.iter().map(|script| read(&Path::new(REPOSITORY).join("lab").join(script))).collect();
    let named = |mark: &str| -> Vec<String> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        let after = text.split(mark).skip(1).map(|rest| rest.split(|c| !is_part(c)).next().unwrap_or_default());
        after.filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    let targets = named("make ");
    assert!(targets.len() > 5, "{targets:?}");
    for target in targets {
        let pattern = target.trim_end_matches("NN").trim_end_matches("01").to_owned();
        let known = makefile.lines().any(|line| {
            line.starts_with(&format!("{pattern}:"))
                || (pattern.ends_with('-') && line.contains(&format!(": {pattern}%:")))
        });
        assert!(known, "`make {target}` is no target of the Makefile");
    }
    for script in named("sudo lab/") {
        assert!(Path::new(REPOSITORY).join("lab").join(&script).exists(), "lab/{script}");
    }
    assert!(Path::new(REPOSITORY).join("docs/two_machines.md").exists());
}

//! `tools/lab/setup.sh` on invented machines: what it asks of apt, what it leaves, and what it says when it cannot go on.

use crate::support::invented::{ends, Machine};
use crate::support::{interrupt, program, wait_for};
use std::fs;
use std::path::PathBuf;
use std::process::Child;

/// An apt that offers every package in version 1, each as a file of its own name; files `apt-…` hinder it.
const APT_GET: &str = r#"$apt-get=
echo "$*" >>"$DOCTOR_ROOT/called"
if [ -e "$DOCTOR_ROOT/apt-offline" ]; then echo 'no network' >&2; exit 100; fi
lists=${2%conf}lists; shift 2
case $* in
update) : >"$lists/debian_Packages" ;;
--simulate*) shift 2
    for name in "$@"; do
        # A kernel's name leads to its latest version.
        case $name in linux-image-*) name=linux-image-6.1.0-50-amd64 ;; esac
        echo "Inst $name (1 Debian [amd64])"
    done ;;
*--print-uris*) shift 3; for word in "$@"; do file=${word%=*}_1_all.deb; [ -e "$file" ] || echo "'http://debian/$file' $file 1000000 SHA256:0"; done ;;
download*) shift
    for word in "$@"; do
        if [ -e "$DOCTOR_ROOT/apt-refused" ]; then exit 100; fi
        echo "${word%=*}" >"${word%=*}_1_all.deb"
        if [ -e "$DOCTOR_ROOT/apt-slow" ]; then : >"$DOCTOR_ROOT/downloading"; sleep 30; exit 100; fi
    done ;;
esac"#;
/// A package holds the program of its name, and what links a program to a library that another package holds.
const DPKG_DEB: &str = r#"$dpkg-deb=
[ ! -e "$DOCTOR_ROOT/disk-full" ] || exit 2
name=$(cat "$2"); rm -rf "$DOCTOR_ROOT/package"; mkdir -p "$DOCTOR_ROOT/package/usr/bin"
printf '#!/bin/sh\necho cargo 1.85.0\n' >"$DOCTOR_ROOT/package/usr/bin/$name"; chmod 755 "$DOCTOR_ROOT/package/usr/bin/$name"
mkdir -p "$DOCTOR_ROOT/package/usr/lib/x86_64-linux-gnu"
ln -s libibverbs.so.1 "$DOCTOR_ROOT/package/usr/lib/x86_64-linux-gnu/libibverbs.so"
exec tar -c -C "$DOCTOR_ROOT/package" ."#;
const LACKS_NOTHING: &str = "$pkg-config=";

/// A Debian machine that has all but pkg-config.
fn debian() -> Machine {
    let others = ["$id=echo you", "$cc=echo /usr/lib/gcc/include", "$apt-cache=echo '  Candidate: 1.80'", "$dpkg="];
    let machine = Machine::new(&others);
    machine.edit(&["$dpkg-query=echo installed=libc6", APT_GET, DPKG_DEB, "-usr/bin/pkg-config"]);
    machine
}

fn start(machine: &Machine, stages: &str) -> Child {
    machine.script("setup.sh", stages).spawn().unwrap()
}

/// It ends with this status, and what it prints holds these parts.
fn run(machine: &Machine, stages: &str, status: i32, parts: &[&str]) -> String {
    let text = ends(start(machine, stages), status);
    parts.iter().for_each(|part| assert!(text.contains(part), "no {part:?} in:\n{text}"));
    text
}

fn tools(machine: &Machine, path: &str) -> PathBuf {
    machine.path("a checkout/target/tools").join(path)
}

fn unpacked(machine: &Machine) -> String {
    fs::read_to_string(tools(machine, "packages")).unwrap_or_default()
}

#[test]
fn with_nothing_missing_it_prints_nothing_and_asks_nobody() {
    let machine = debian();
    machine.edit(&[LACKS_NOTHING]);
    assert_eq!(run(&machine, "build lab shell test check device", 0, &[]), "");
    assert!(tools(&machine, "env").exists() && !machine.path("called").exists());
    for wrong in ["", "biuld", "build --help"] {
        run(&machine, wrong, 2, &["usage: tools/lab/setup.sh cargo|build|lab"]);
    }
}

#[test]
fn what_has_to_be_installed_is_named_at_once_before_any_download() {
    const LIBRARY: &str = "usr/lib/x86_64-linux-gnu/librdmacm.so.1";
    #[rustfmt::skip] // A table.
    let cases = [
        ("-usr/bin/cc", "-etc/ssl/certs/ca-certificates.crt", "build lab",
            ["  a C compiler\n  certificates\nGet it", "sudo apt-get install ca-certificates gcc libc6-dev\n"]),
        ("-usr/bin/apt-get", "$dnf=", "build lab", ["  pkg-config\n", "sudo dnf install pkgconf-pkg-config\n"]),
        // For the lab it would do that this is unpacked.
        (&format!("-{LIBRARY}"), &format!("a checkout/target/tools/{LIBRARY}="), "device",
            ["  rdma-core's libraries\n", "ibverbs-providers libibverbs1 librdmacm1\n"]),
    ];
    for (edit, another, stages, parts) in cases {
        let machine = debian();
        run(machine.edit(&[edit, another]), stages, 1, &parts);
        assert!(!machine.path("called").exists(), "{stages}");
    }
}

#[test]
fn an_old_cargo_goes_behind_the_releases_recent_one() {
    let machine = debian();
    let old = DPKG_DEB.replace("1.85", "1.63");
    machine.edit(&[LACKS_NOTHING, "$cargo=echo 'cargo 1.63.0'", &old]);
    run(&machine, "build", 1, &["lacks:\n  a recent cargo\n", "or rustup (https://rustup.rs)"]);
    fs::remove_file(tools(&machine, "packages")).unwrap();
    run(machine.edit(&[DPKG_DEB]), "build", 0, &[]);
    assert!(tools(&machine, "first/cargo").exists());
    // Its own library did not come along, and is what the linker finds.
    assert!(tools(&machine, "usr/lib/x86_64-linux-gnu/libibverbs.so").exists());
}

/// The lab keeps only the modules that it wanted when it unpacked the kernel, and the packages are gone then.
#[test]
fn a_kernel_without_the_modules_of_a_stage_is_downloaded_once_more() {
    let machine = debian();
    machine.edit(&[LACKS_NOTHING]);
    assert_eq!(run(&machine, "lab nvme", 0, &[]), "");
    machine.edit(&["-a checkout/target/lab/kernel/6.1.0/modules/nvme-rdma.ko"]);
    machine.edit(&["a checkout/target/lab/kernel/6.1.0/vmlinuz="]);
    assert_eq!(run(&machine, "lab", 0, &[]), "");
    run(&machine, "lab nvme", 0, &["downloading 1 packages"]);
    let kernels = fs::read_dir(tools(&machine, "kernel")).unwrap();
    let kernels: Vec<_> = kernels.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(kernels, ["linux-image-6.1.0-50-amd64_1_all.deb"]);
    assert_eq!(run(&machine, "lab nvme", 0, &[]), "");
}

#[test]
fn what_fails_is_heard_and_the_next_call_goes_on() {
    let downloads = "downloading 1 packages, 1 MB; nothing is installed";
    for (hindrance, parts) in [
        ("apt-offline", ["asking apt for its package lists", "Check that this machine reaches the network"]),
        ("apt-refused", [downloads, "run the same command again. It goes on where it stopped"]),
        ("disk-full", [downloads, "cannot unpack pkg-config=1"]),
    ] {
        let machine = debian();
        run(machine.edit(&[&format!("{hindrance}=")]), "build", 1, &parts);
        assert_eq!(unpacked(&machine), "");
        run(machine.edit(&[&format!("-{hindrance}")]), "build", 0, &[]);
        assert_eq!((unpacked(&machine).as_str(), run(&machine, "build", 0, &[]).as_str()), ("pkg-config=1\n", ""));
        assert!(tools(&machine, "usr/bin/pkg-config").exists());
    }
}

/// What a terminal does: the signal goes to set-up and to apt.
#[test]
fn ctrl_c_ends_a_download_with_words_and_a_second_call_waits_for_the_first() {
    let machine = debian();
    let appears = |file: &str| wait_for(&machine.path(file));
    let flock = program("flock");
    let flock = format!("$flock=[ $1 = -n ] || : >\"$DOCTOR_ROOT/waiting\"; exec {flock} \"$@\"");
    let first = start(machine.edit(&["apt-slow=", "-usr/bin/flock", &flock]), "build");
    appears("downloading");
    let second = start(machine.edit(&["-apt-slow"]), "build");
    appears("waiting");
    assert_eq!(unpacked(&machine), "", "the second does not wait");
    interrupt(&first);
    assert!(ends(first, 130).contains("interrupted. Run the same command again, and it goes on from here"));
    assert!(ends(second, 0).contains("another set-up is running in this folder; waiting for it to end"));
    assert_eq!(unpacked(&machine), "pkg-config=1\n");
}

/// The headers of the kernel that the lab boots, and a compiler that makes what it's told to.
const BUILDS_SIW: [&str; 2] = [
    r#"$make=for word in "$@"; do case $word in M=*) mkdir -p "${word#M=}"; echo module >"${word#M=}/siw.ko" ;; esac; done"#,
    r#"$strip=shift; cat "$3" >"$2""#,
];
const SIW: &str = "a checkout/target/lab/siw/6.1.0-40-amd64/siw.ko";

fn debian_with_make() -> Machine {
    let machine = debian();
    for name in ["mktemp", "cp"] {
        std::os::unix::fs::symlink(program(name), machine.path("usr/bin").join(name)).unwrap();
    }
    machine.edit(&[LACKS_NOTHING]);
    machine.edit(&BUILDS_SIW);
    machine
}

#[test]
fn softiwarps_module_is_built_once_for_the_kernel_that_the_lab_boots() {
    // Debian 13 has a plus in its kernels' names.
    for (release, source) in [("6.1.0-40-amd64", "6.1"), ("6.12.94+deb13-amd64", "6.12")] {
        let machine = debian_with_make();
        machine.edit(&[
            &format!("$uname=case $1 in -m) echo x86_64 ;; *) echo {release} ;; esac"),
            &format!("boot/vmlinuz-{release}="),
            &format!("lib/modules/{release}/modules.dep=kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko:"),
        ]);
        run(&machine, "lab siw", 0, &[&format!("building the module siw for Linux {release}, once")]);
        let module = format!("a checkout/target/lab/siw/{release}/siw.ko");
        assert_eq!(fs::read_to_string(machine.path(&module)).unwrap(), "module\n");
        let called = fs::read_to_string(machine.path("called")).unwrap();
        for package in [format!("linux-headers-{release}=1"), format!("linux-source-{source}=1")] {
            assert!(called.contains(&package), "{called}");
        }
        assert_eq!(run(&machine, "lab siw", 0, &[]), "", "it's there");
    }
}

/// What it had downloaded goes with it, and the next call builds the module.
#[test]
fn ctrl_c_ends_the_build_of_softiwarps_module_with_words_and_leaves_nothing() {
    let machine = debian_with_make();
    let scratch = machine.path("scratch");
    fs::create_dir(&scratch).unwrap();
    let mut script = machine.edit(&["$make=: >\"$DOCTOR_ROOT/making\"; sleep 60"]).script("setup.sh", "lab siw");
    let first = script.env("TMPDIR", &scratch).spawn().unwrap();
    wait_for(&machine.path("making"));
    interrupt(&first);
    let said = ends(first, 130);
    assert!(said.contains("interrupted. Run the same command again; it downloads headers and source"), "{said}");
    assert!(!machine.path(SIW).exists() && fs::read_dir(&scratch).unwrap().next().is_none());
    run(machine.edit(&BUILDS_SIW), "lab siw", 0, &["building the module siw"]);
    assert!(machine.path(SIW).exists());
}

#[test]
fn where_softiwarps_module_cannot_be_had_the_reason_is_said() {
    // Ubuntu's kernel brings it.
    let machine = debian_with_make();
    machine.edit(&[
        "lib/modules/6.1.0-40-amd64/modules.dep=kernel/rdma_rxe.ko:\nkernel/drivers/infiniband/sw/siw/siw.ko.zst:",
    ]);
    assert_eq!(run(&machine, "lab siw", 0, &[]), "");
    assert!(!machine.path("called").exists() && !machine.path(SIW).exists());

    let without = |edit: &str, parts: &[&str]| {
        let machine = debian_with_make();
        run(machine.edit(&[edit]), "lab siw", 1, parts);
        assert!(!machine.path(SIW).exists(), "{edit}");
    };
    without("-usr/bin/apt-get", &["6.1.0-40-amd64 has no module siw", "only build it from Debian's packages"]);
    without("-usr/bin/make", &["takes make", "sudo apt-get install make"]);
    without(
        "$make=echo the compiler complains; exit 1",
        &["the compiler complains", "could not be built for Linux 6.1.0-40"],
    );
    let other = APT_GET.replace("Inst $name (1 ", "Inst other-$name (1 ");
    without(
        &other,
        &["no linux-headers-6.1.0-40-amd64", "the distribution has replaced that kernel", "Update this machine"],
    );
}

//! `lab/setup.sh` on invented machines: what it asks of apt, what it leaves, and what it says when it cannot go on.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

mod support;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use support::invented::{needs, Machine};

/// An apt that offers every package in version 1, each as a file of its own name; `apt-offline` and `apt-slow` hinder it.
const APT_GET: &str = r#"$apt-get=
echo "$*" >>"$DOCTOR_ROOT/called"
if [ -e "$DOCTOR_ROOT/apt-offline" ]; then echo 'no network' >&2; exit 100; fi
lists=$(sed -n 's/^Dir::State::lists "\(.*\)";/\1/p' "${APT_CONFIG%/*}/main.conf")
case $* in
update) : >"$lists/debian_Packages" ;;
*--simulate*) while [ "$1" != install ]; do shift; done; shift; for name in "$@"; do echo "Inst $name (1 Debian [amd64])"; done ;;
*--print-uris*) shift 3; for word in "$@"; do file=${word%=*}_1_all.deb; [ -e "$file" ] || echo "'http://debian/$file' $file 1000000 SHA256:0"; done ;;
download*) shift
    for word in "$@"; do
        echo "${word%=*}" >"${word%=*}_1_all.deb"
        if [ -e "$DOCTOR_ROOT/apt-slow" ]; then : >"$DOCTOR_ROOT/downloading"; sleep 30; exit 100; fi
    done ;;
esac"#;
/// A package holds the program of its name.
const DPKG_DEB: &str = r#"$dpkg-deb=
[ ! -e "$DOCTOR_ROOT/disk-full" ] || exit 2
name=$(cat "$2"); rm -rf "$DOCTOR_ROOT/package"; mkdir -p "$DOCTOR_ROOT/package/usr/bin"
printf '#!/bin/sh\necho cargo 1.85.0\n' >"$DOCTOR_ROOT/package/usr/bin/$name"; chmod 755 "$DOCTOR_ROOT/package/usr/bin/$name"
exec tar -c -C "$DOCTOR_ROOT/package" ."#;
const LACKS_NOTHING: &str = "$pkg-config=";

/// A Debian machine that has all but pkg-config.
fn debian() -> Machine {
    let cc = "$cc=echo /usr/lib/gcc/include";
    let cache = "$apt-cache=echo '  Candidate: 1.80'";
    Machine::new(&["$id=echo you", cc, "$dpkg=", "$dpkg-query=", cache, APT_GET, DPKG_DEB, "-usr/bin/pkg-config"])
}

fn start(machine: &Machine, stages: &[&str]) -> Child {
    let mut command = machine.script("setup.sh");
    command.args(stages).process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// It ends with this status, and what it prints on both streams holds these parts.
fn ends(child: Child, status: i32, parts: &[&str]) -> String {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned();
    assert_eq!(output.status.code(), Some(status), "{text}");
    for part in parts {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
    text
}

fn run(machine: &Machine, stages: &[&str], status: i32, parts: &[&str]) -> String {
    ends(start(machine, stages), status, parts)
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
    assert_eq!(run(&machine, &["build", "lab", "shell", "test", "check", "device"], 0, &[]), "");
    assert!(tools(&machine, "env").exists() && !machine.path("called").exists());
}

#[test]
fn what_is_missing_is_unpacked_once() {
    let machine = debian();
    let parts = ["asking apt for its package lists", "downloading 1 packages, 1 MB; nothing is installed"];
    run(&machine, &["build"], 0, &parts);
    assert_eq!(unpacked(&machine), "pkg-config=1\n");
    assert!(tools(&machine, "usr/bin/pkg-config").exists() && !tools(&machine, "unpacking").exists());
    assert_eq!(run(&machine, &["build"], 0, &[]), "");
}

#[test]
fn what_cannot_be_unpacked_is_named_at_once_before_any_download() {
    let machine = debian();
    machine.edit(&["-usr/bin/cc", "-etc/ssl/certs/ca-certificates.crt"]);
    let command = "apt-get install --no-install-recommends ca-certificates gcc libc6-dev   (as root)";
    let parts = ["  a C compiler\n  certificates\n", command, "run the same command again"];
    let text = run(&machine, &["build", "lab"], 1, &parts);
    assert!(!machine.path("called").exists() && !text.contains("pkg-config"), "{text}");
}

#[test]
fn a_device_is_served_by_installed_libraries_only() {
    let machine = debian();
    fs::create_dir_all(tools(&machine, "usr/lib")).unwrap();
    fs::rename(machine.path("usr/lib/x86_64-linux-gnu"), tools(&machine, "usr/lib/x86_64-linux-gnu")).unwrap();
    machine.edit(&[LACKS_NOTHING]);
    assert_eq!(run(&machine, &["build", "lab"], 0, &[]), "");
    run(&machine, &["device"], 1, &["ibverbs-providers libibverbs1 librdmacm1   (as root)"]);
}

#[test]
fn without_apt_all_is_named() {
    let machine = debian();
    machine.edit(&["-usr/bin/apt-get", "-usr/bin/cc", "-usr/bin/qemu-system-x86_64"]);
    let fedora = "dnf install gcc glibc-devel pkgconf-pkg-config qemu-system-x86-core\n";
    run(&machine, &["build", "lab"], 1, &["  QEMU\n", fedora, "pacman -S gcc pkgconf qemu-system-x86\n"]);
}

#[test]
fn an_old_cargo_goes_behind_the_releases_recent_one() {
    let machine = debian();
    let old = DPKG_DEB.replace("1.85", "1.63");
    machine.edit(&[LACKS_NOTHING, "$cargo=echo 'cargo 1.63.0'", &old]);
    run(&machine, &["build"], 1, &["lacks:\n  cargo and rustc\n", "or rustup (https://rustup.rs)"]);
    assert_eq!(unpacked(&machine), "cargo=1\n");
    fs::remove_file(tools(&machine, "packages")).unwrap();
    run(machine.edit(&[DPKG_DEB]), &["build"], 0, &[]);
    assert!(tools(&machine, "first/cargo").exists());
}

#[test]
fn an_apt_that_fails_is_heard_and_the_next_call_goes_on() {
    let machine = debian();
    machine.edit(&["apt-offline="]);
    run(&machine, &["build"], 1, &["no network", "apt got no package lists", "Is there a network?"]);
    let refuses = "$apt-get=case $* in download*) case $* in *uris*) ;; *) exit 100 ;; esac ;; esac";
    machine.edit(&["-apt-offline", &APT_GET.replacen("$apt-get=", refuses, 1)]);
    run(&machine, &["build"], 1, &["apt could not bring all of it", "run the same command again"]);
    assert_eq!(unpacked(&machine), "");
    run(machine.edit(&[APT_GET]), &["build"], 0, &[]);
}

#[test]
fn a_full_disk_leaves_a_note_of_what_is_not_unpacked() {
    let machine = debian();
    machine.edit(&["disk-full="]);
    run(&machine, &["build"], 1, &["cannot unpack pkg-config=1", "Run the same command again"]);
    assert_eq!(unpacked(&machine), "");
    // As if the file was there, but only in part.
    run(machine.edit(&["-disk-full", LACKS_NOTHING]), &["build"], 0, &[]);
    assert_eq!(unpacked(&machine), "pkg-config=1\n");
}

/// What a terminal does: the signal goes to set-up and to apt.
#[test]
fn ctrl_c_ends_a_download_with_words_and_a_second_call_waits_for_the_first() {
    let machine = debian();
    machine.edit(&["apt-slow="]);
    let first = start(&machine, &["build"]);
    let limit = Instant::now() + Duration::from_secs(30);
    while !machine.path("downloading").exists() {
        assert!(Instant::now() < limit, "the download does not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    machine.edit(&["-apt-slow"]);
    let second = start(&machine, &["build"]);
    let group = rustix::process::Pid::from_raw(i32::try_from(first.id()).unwrap()).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(unpacked(&machine), "", "the second does not wait");
    rustix::process::kill_process_group(group, rustix::process::Signal::INT).unwrap();
    ends(first, 130, &["interrupted; the same command goes on from here"]);
    ends(second, 0, &["another set-up is at work; waiting for it"]);
    assert_eq!(unpacked(&machine), "pkg-config=1\n");
}

#[test]
fn wrong_usage_is_told() {
    for stages in [&[][..], &["biuld"], &["build", "--help"]] {
        run(&debian(), stages, 2, &["usage: lab/setup.sh build|lab"]);
    }
}

#[test]
fn every_row_of_the_table_is_whole() {
    let needs = needs();
    assert!(needs.len() > 15);
    for need in needs {
        let stages = ["own", "build", "lab", "shell", "test", "check", "device", "look"];
        assert!(stages.contains(&need.stage.as_str()), "{}", need.stage);
        assert!(need.what.len() <= 23, "the doctor has no room for {:?}", need.what);
        for column in [need.what, need.debian, need.fedora, need.arch] {
            assert!(!column.is_empty() && !column.contains('$'), "{column:?}");
        }
    }
}

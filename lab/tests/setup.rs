//! `lab/setup.sh` on invented machines: what it asks of apt, what it leaves, and what it says when it cannot go on.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What every Debian machine has, and set-up itself uses.
const BASICS: &str =
    "sh dirname head grep sed cat awk tr cut sort paste mkdir mv rm ln touch flock find cmp readlink du sleep tar gzip";
/// An apt that offers every package in version 1, each as a file of its own name; `apt-offline` and `apt-slow` hinder it.
const APT_GET: &str = r#"
echo "$*" >>"$DOCTOR_ROOT/called"
if [ -e "$DOCTOR_ROOT/apt-offline" ]; then echo 'no network' >&2; exit 100; fi
lists=$(sed -n 's/^Dir::State::lists "\(.*\)";/\1/p' "${APT_CONFIG%/*}/main.conf")
case $* in
update) : >"$lists/debian_Packages" ;;
*--simulate*) for word in "$@"; do case $word in [a-z]*-* | [a-z]*) [ "$word" = install ] || echo "Inst $word (1 Debian [amd64])" ;; esac; done ;;
*--print-uris*) shift 3; for word in "$@"; do file=${word%=*}_1_all.deb; [ -e "$file" ] || echo "'http://debian/$file' $file 1000000 SHA256:0"; done ;;
download*) shift
    for word in "$@"; do
        echo "${word%=*}" >"${word%=*}_1_all.deb"
        if [ -e "$DOCTOR_ROOT/apt-slow" ]; then : >"$DOCTOR_ROOT/downloading"; sleep 30; exit 100; fi
    done ;;
esac"#;
/// A package holds the program of its name, and pkg-config is what this machine lacks.
const DPKG_DEB: &str = r#"
[ ! -e "$DOCTOR_ROOT/disk-full" ] || exit 2
name=$(cat "$2"); rm -rf "$DOCTOR_ROOT/package"; mkdir -p "$DOCTOR_ROOT/package/usr/bin"
printf '#!/bin/sh\n' >"$DOCTOR_ROOT/package/usr/bin/$name"; chmod 755 "$DOCTOR_ROOT/package/usr/bin/$name"
exec tar -c -C "$DOCTOR_ROOT/package" ."#;

/// A Debian machine that has all but pkg-config.
struct Machine {
    folder: TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(machine.path("bin")).unwrap();
        for name in BASICS.split_whitespace().chain(["chmod"]) {
            symlink(lab::files::program(name).unwrap(), machine.path("bin").join(name)).unwrap();
        }
        for need in support::needs() {
            for file in need.checks.iter().map(|check| support::path_of(check)) {
                match file.strip_prefix("usr/bin/") {
                    Some(program) if !machine.path("bin").join(program).exists() => drop(machine.command(program, "")),
                    Some(_) => {}
                    None => drop(machine.file(&file, "")),
                }
            }
        }
        for script in ["setup.sh", "needs.sh", "needs.txt"] {
            machine.file(&format!("a checkout/lab/{script}"), &support::read_lab(script));
        }
        machine.file("a checkout/Cargo.toml", "rust-version = \"1.75\"\n");
        machine.file("lib/modules/6.1.0-40-amd64/modules.dep", "kernel/rdma_rxe.ko:\n");
        machine.command("uname", "case $1 in -m) echo x86_64 ;; *) echo 6.1.0-40-amd64 ;; esac");
        machine.command("cargo", "echo 'cargo 1.75.0'").command("rustc", "").command("id", "echo you");
        machine.command("cc", "echo /usr/lib/gcc/include").command("dpkg", "exit 0").command("dpkg-query", "");
        machine.command("apt-cache", "echo '  Candidate: 1.80'").command("apt-get", APT_GET);
        machine.command("dpkg-deb", DPKG_DEB).without("bin/pkg-config");
        machine
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
        support::write_script(&self.path("bin").join(name), script);
        self
    }

    fn without(&self, path: &str) -> &Self {
        fs::remove_file(self.path(path)).unwrap();
        self
    }

    fn start(&self, stages: &[&str]) -> Child {
        // In a background job SIGINT is ignored, and a shell cannot undo that for itself, but `env` can.
        let mut command = Command::new("/usr/bin/env");
        command
            .args(["--default-signal=INT", "/bin/sh"])
            .arg(self.path("a checkout/lab/setup.sh"))
            .args(stages)
            .env_clear()
            .env("PATH", self.path("bin"));
        command.env("DOCTOR_ROOT", self.folder.path()).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs it to its end and gives what it printed on both streams.
    fn run(&self, stages: &[&str], status: i32) -> String {
        printed(self.start(stages), status)
    }

    fn tools(&self, path: &str) -> PathBuf {
        self.path("a checkout/target/tools").join(path)
    }

    fn unpacked(&self) -> String {
        fs::read_to_string(self.tools("packages")).unwrap_or_default()
    }

    fn apt_was_called(&self) -> bool {
        self.path("called").exists()
    }
}

fn printed(child: Child, status: i32) -> String {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned();
    assert_eq!(output.status.code(), Some(status), "{text}");
    text
}

fn assert_holds(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}

fn wait_for(path: &Path) {
    let limit = Instant::now() + Duration::from_secs(30);
    while !path.exists() {
        assert!(Instant::now() < limit, "{} does not appear", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn with_nothing_missing_it_prints_nothing_and_asks_nobody() {
    let machine = Machine::new();
    machine.command("pkg-config", "");
    assert_eq!(machine.run(&["build", "lab", "shell", "test", "check", "device"], 0), "");
    assert!(machine.tools("env").exists() && !machine.apt_was_called());
}

#[test]
fn what_is_missing_is_unpacked_once() {
    let machine = Machine::new();
    let text = machine.run(&["build"], 0);
    assert_holds(&text, &["asking apt for its package lists", "downloading 1 packages, 1 MB; nothing is installed"]);
    assert_eq!(machine.unpacked(), "pkg-config=1\n");
    assert!(machine.tools("usr/bin/pkg-config").exists() && !machine.tools("unpacking").exists());
    assert_eq!(machine.run(&["build"], 0), "");
}

#[test]
fn what_cannot_be_unpacked_is_named_at_once_before_any_download() {
    let machine = Machine::new();
    machine.without("bin/cc").without("etc/ssl/certs/ca-certificates.crt");
    let text = machine.run(&["build", "lab"], 1);
    let command = "apt-get install --no-install-recommends ca-certificates gcc libc6-dev   (as root)";
    assert_holds(&text, &["  a C compiler\n  certificates\n", command, "run the same command again"]);
    assert!(!machine.apt_was_called() && !text.contains("pkg-config"), "{text}");
}

#[test]
fn a_device_is_served_by_installed_libraries_only() {
    let machine = Machine::new();
    fs::create_dir_all(machine.tools("usr/lib")).unwrap();
    fs::rename(machine.path("usr/lib/x86_64-linux-gnu"), machine.tools("usr/lib/x86_64-linux-gnu")).unwrap();
    machine.command("pkg-config", "");
    assert_eq!(machine.run(&["build", "lab"], 0), "");
    assert_holds(&machine.run(&["device"], 1), &["ibverbs-providers libibverbs1 librdmacm1   (as root)"]);
}

#[test]
fn without_apt_all_is_named() {
    let machine = Machine::new();
    machine.without("bin/apt-get").without("bin/cc").without("bin/qemu-system-x86_64");
    let text = machine.run(&["build", "lab"], 1);
    assert_holds(&text, &["  QEMU\n", "dnf install gcc glibc-devel pkgconf-pkg-config qemu-system-x86-core\n"]);
    assert_holds(&text, &["pacman -S gcc pkgconf qemu-system-x86\n"]);
}

#[test]
fn an_old_cargo_goes_behind_the_releases_recent_one() {
    let machine = Machine::new();
    machine.command("pkg-config", "").command("cargo", "echo 'cargo 1.63.0'");
    let text = machine.run(&["build"], 1);
    assert_holds(&text, &["lacks:\n  cargo and rustc\n", "or rustup (https://rustup.rs)"]);
    assert_eq!(machine.unpacked(), "cargo=1\n");
    let deb = DPKG_DEB.replace("'#!/bin/sh\\n'", "'#!/bin/sh\\necho cargo 1.85.0\\n'");
    fs::remove_file(machine.tools("packages")).unwrap();
    machine.command("dpkg-deb", &deb).run(&["build"], 0);
    assert!(machine.tools("first/cargo").exists());
}

#[test]
fn an_apt_that_fails_is_heard_and_the_next_call_goes_on() {
    let machine = Machine::new();
    machine.file("apt-offline", "");
    assert_holds(&machine.run(&["build"], 1), &["no network", "apt got no package lists", "Is there a network?"]);
    machine.without("apt-offline");
    let refuses = format!("case $* in download*) case $* in *uris*) ;; *) exit 100 ;; esac ;; esac\n{APT_GET}");
    machine.command("apt-get", &refuses);
    assert_holds(&machine.run(&["build"], 1), &["apt could not bring all of it", "run the same command again"]);
    assert_eq!(machine.unpacked(), "");
    machine.command("apt-get", APT_GET).run(&["build"], 0);
}

#[test]
fn a_full_disk_leaves_a_note_of_what_is_not_unpacked() {
    let machine = Machine::new();
    machine.file("disk-full", "");
    assert_holds(&machine.run(&["build"], 1), &["cannot unpack pkg-config=1", "Run the same command again"]);
    assert_eq!(machine.unpacked(), "");
    // As if the file was there, but only in part.
    machine.without("disk-full").command("pkg-config", "").run(&["build"], 0);
    assert_eq!(machine.unpacked(), "pkg-config=1\n");
}

/// What a terminal does: the signal goes to set-up and to apt.
#[test]
fn ctrl_c_ends_a_download_with_words_and_a_second_call_waits_for_the_first() {
    let machine = Machine::new();
    machine.file("apt-slow", "");
    let first = machine.start(&["build"]);
    wait_for(&machine.path("downloading"));
    machine.without("apt-slow");
    let second = machine.start(&["build"]);
    let group = rustix::process::Pid::from_raw(i32::try_from(first.id()).unwrap()).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(machine.unpacked(), "", "the second does not wait");
    rustix::process::kill_process_group(group, rustix::process::Signal::INT).unwrap();
    assert_holds(&printed(first, 130), &["interrupted; the same command goes on from here"]);
    assert_holds(&printed(second, 0), &["another set-up is at work; waiting for it"]);
    assert_eq!(machine.unpacked(), "pkg-config=1\n");
}

#[test]
fn wrong_usage_is_told() {
    for stages in [&[][..], &["biuld"], &["build", "--help"]] {
        assert_holds(&Machine::new().run(stages, 2), &["usage: lab/setup.sh build|lab"]);
    }
}

#[test]
fn every_row_of_the_table_is_whole() {
    let needs = support::needs();
    assert!(needs.len() > 15);
    for need in needs {
        let stages = ["own", "build", "lab", "shell", "test", "check", "device"];
        assert!(stages.contains(&need.stage.as_str()), "{}", need.stage);
        assert!(need.what.len() <= 23, "the doctor has no room for {:?}", need.what);
        for column in [need.what, need.debian, need.fedora, need.arch] {
            assert!(!column.is_empty() && !column.contains('$'), "{column:?}");
        }
    }
}

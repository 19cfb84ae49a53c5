//! The commands for two real machines, typed in the two machines of the lab.
//!
//! A machine of the lab is a machine with SoftRoCE like any other, but small: it has no cargo, and no room for one. So it
//! gets what docs/two_machines.md gives to such a machine: the repository with the lessons already built.

use lab::{Brought, Lab, Options, Outcome, Run, CLIENT, SERVER};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// What is copied of the repository, besides the lesson that was built.
const COPIED: [&str; 4] = ["Makefile", "Cargo.toml", "tools/lab", "lessons"];

/// The repository as one file, and the scripts with what is typed.
struct Copies {
    folder: TempDir,
}

impl Copies {
    fn new() -> Self {
        let copies = Self { folder: tempfile::tempdir().unwrap() };
        let status = Command::new("tar")
            .args(["-C", REPOSITORY, "-cf"])
            .arg(copies.path("copy.tar"))
            .args(COPIED)
            .arg("-C")
            .arg(built_lessons().parent().unwrap().parent().unwrap())
            .args(["--transform", "s,^debug,target/debug,", "debug/lesson-04"])
            .status();
        assert!(status.unwrap().success());
        copies
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What the machines need for it: make itself, and the shell that the recipes are written for.
    fn options(&self) -> Options {
        let host = |name| lab::program(name).unwrap().display().to_string();
        let bring = [self.path("copy.tar").display().to_string(), host("make"), host("bash") + ":/bin/bash"];
        Options { bring: bring.iter().map(|text| Brought::parse(text).unwrap()).collect(), ..Options::default() }
    }

    /// A script that unpacks the copy, gives the machine a default route as real ones have, and then types.
    fn typed(&self, name: &str, commands: &str) -> String {
        let script = format!(
            "#!/bin/sh\n\
             ip route add default dev eth0\n\
             mkdir -p /root/rdma && cd /root/rdma && tar -xf {} || exit 1\n\
             {commands}\n",
            self.path("copy.tar").display()
        );
        fs::write(self.path(name), script).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
        self.path(name).display().to_string()
    }
}

/// The lesson next to the lab's own program.
fn built_lessons() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_lab")).with_file_name("lesson-04");
    assert!(path.exists(), "{} is missing: cargo build --workspace", path.display());
    path
}

fn run(run: Run) -> Outcome {
    Lab::open().unwrap().run(&run).unwrap_or_else(|error| panic!("{error:#}"))
}

fn assert_in_order(outcome: &Outcome, side: &str, texts: &[&str]) {
    let log = &outcome.node(side).log;
    let mut lines = log.iter();
    for text in texts {
        assert!(lines.any(|line| line.contains(text)), "no {text:?} there:\n{}", log.join("\n"));
    }
}

#[test]
fn make_server_and_make_client_as_typed_on_two_machines() {
    let copies = Copies::new();
    let server = copies.typed("server", "tools/lab/softroce.sh down\ntools/lab/softroce.sh up\nmake server-04");
    let client =
        copies.typed("client", "tools/lab/softroce.sh down\ntools/lab/softroce.sh up\nmake client-04 HOST=10.47.91.1");
    let outcome = run(Run::programs().server(&server).client(&client).options(copies.options()));
    let exits = [outcome.node("server").exit, outcome.node("client").exit];
    assert_eq!(exits, [Some(0), Some(0)], "{:#?}\n{:#?}", outcome.node("server").log, outcome.node("client").log);

    for side in [SERVER, CLIENT] {
        let name = side;
        assert_in_order(
            &outcome,
            side,
            &[
                "+ rdma link delete rxe0",
                "+ rdma link add rxe0 type rxe netdev eth0",
                "link rxe0/1 state ACTIVE physical_state LINK_UP netdev eth0",
                "no cargo here: running target/debug/lesson-04",
                if name == "server" { "rdma_listen" } else { "rdma_connect" },
                "rdma_destroy_event_channel",
            ],
        );
    }
    let mut names = Vec::new();
    outcome.each_packet(|_, packet| names.push(packet.name())).unwrap();
    assert_eq!(names[..3], ["ConnectRequest", "ConnectReply", "ReadyToUse"]);
    assert!(names.contains(&"RC RDMA Write Only"), "{names:?}");
}

#[test]
#[ignore = "takes long: make test-long"]
fn softroce_up_down_and_status_may_be_repeated() {
    let copies = Copies::new();
    let commands = "\
        say() { echo \"== $*\"; rdma link; }
        tools/lab/softroce.sh up; say up again $?
        tools/lab/softroce.sh status; say status $?
        tools/lab/softroce.sh down; say down $?
        tools/lab/softroce.sh down; say down again $?
        tools/lab/softroce.sh status; say status without $?
        tools/lab/softroce.sh up; say up $?
        tools/lab/softroce.sh up eth0; say up eth0 $?
        tools/lab/softroce.sh up eth9; say up eth9 $?";
    let outcome = run(Run::programs().client(&copies.typed("client", commands)).options(copies.options()));
    let there = "link rxe0/1 state ACTIVE physical_state LINK_UP netdev eth0";
    let log = &outcome.node("client").log;
    let after = |mark: &str| {
        let at = log.iter().position(|line| line == mark).unwrap_or_else(|| panic!("no {mark}:\n{}", log.join("\n")));
        log.get(at + 1).is_some_and(|line| line.trim_end() == there)
    };
    for mark in ["== up again 0", "== status 0", "== up 0", "== up eth0 0", "== up eth9 1"] {
        assert!(after(mark), "{mark}:\n{}", log.join("\n"));
    }
    for mark in ["== down 0", "== down again 0", "== status without 1"] {
        assert!(!after(mark), "{mark}:\n{}", log.join("\n"));
    }
    assert_in_order(
        &outcome,
        CLIENT,
        &[
            "rxe0 is on eth0 already",
            "== up again 0",
            "+ rdma link delete rxe0",
            "no RDMA device on eth0",
            "== down again 0",
            "softroce: no RDMA device on eth0; create one: sudo tools/lab/softroce.sh up eth0",
            "+ modprobe rdma_rxe",
            "+ rdma link add rxe0 type rxe netdev eth0",
            "softroce: there is no network interface eth9; there are: eth0",
        ],
    );
}

#[test]
#[ignore = "takes long: make test-long"]
fn the_doctor_finds_a_lesson_machine_ready() {
    let copies = Copies::new();
    let typed =
        copies.typed("client", "tools/lab/doctor.sh; tools/lab/softroce.sh down >/dev/null; tools/lab/doctor.sh");
    let outcome = run(Run::programs().client(&typed).options(copies.options()));
    assert_in_order(
        &outcome,
        CLIENT,
        &[
            "OK    rdma-core's libraries   installed",
            "OK    SoftRoCE module         rdma_rxe is loaded",
            "OK    SoftRoCE device         rxe0",
            "OK    rxe0 link               ACTIVE on eth0",
            "OK    rxe0 address            0000:0000:0000:0000:0000:ffff:0a2f:5b02",
            "OK    locked memory           limit: unlimited",
            "OK    permissions",
            "yes vms,",
            "FAIL  SoftRoCE device         there is none",
            "no  vms,",
        ],
    );
}

//! The commands for two real machines, typed in the two machines of the lab.
//!
//! A machine of the lab is a machine with SoftRoCE like any other, but small: it has no cargo, and no room for one. So it
//! gets what docs/two_machines.md gives to such a machine: the repository with the lessons already built.

use crate::support::{program, shared, write_script, Check, Run, CLIENT, SERVER};
use std::path::PathBuf;
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
        let mut tar = Command::new("tar");
        tar.args(["-C", REPOSITORY, "-cf"]).arg(copies.path("copy.tar")).args(COPIED);
        // The lesson next to the lab's own program.
        tar.arg("-C").arg(shared());
        tar.args(["--transform", "s,^debug,target/debug,", "debug/lesson-04"]);
        assert!(tar.status().unwrap().success());
        copies
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A script that unpacks the copy, gives the machine a default route as real ones have, and then types.
    fn typed(&self, name: &str, commands: &str) -> String {
        let unpack = "mkdir -p /root/rdma && cd /root/rdma && tar -xf";
        let copy = self.path("copy.tar").display().to_string();
        let script = format!("ip route add default dev eth0\n{unpack} {copy} || exit 1\n{commands}");
        write_script(&self.path(name), &script);
        self.path(name).display().to_string()
    }

    /// A run with what the machines need for it: make itself, and the shell that the recipes are written for.
    fn run(&self) -> Run {
        let run = Run::programs().with("bring", &self.path("copy.tar").display().to_string());
        run.with("bring", &program("make")).with("bring", &format!("{}:/bin/bash", program("bash")))
    }

    /// What comes of commands on one machine.
    fn on_client(&self, commands: &str) -> Check {
        self.run().client(&self.typed("client", commands)).check()
    }
}

#[test]
fn make_server_and_make_client_as_typed_on_two_machines() {
    let copies = Copies::new();
    let again = "tools/lab/softroce.sh down\ntools/lab/softroce.sh up\nmake";
    let server = copies.typed("server", &format!("{again} server-04"));
    let client = copies.typed("client", &format!("{again} client-04 HOST=10.47.91.1"));
    let check = copies.run().server(&server).client(&client).check().exits(0, 0);
    for (node, call) in [(SERVER, "rdma_listen"), (CLIENT, "rdma_connect")] {
        let lines = [
            "+ rdma link delete rxe0",
            "+ rdma link add rxe0 type rxe netdev eth0",
            "link rxe0/1 state ACTIVE physical_state LINK_UP netdev eth0",
            "there is no cargo here, so this runs target/debug/lesson-04",
            call,
            "rdma_destroy_event_channel",
        ];
        check.logs_in_order(node, &lines);
    }
    assert_eq!(check.packets_named("RC RDMA Write Only"), 1);
}

#[test]
#[ignore = "takes long: make test-long"]
fn softroce_up_down_and_status_may_be_repeated() {
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
    let check = Copies::new().on_client(commands);
    let there = "link rxe0/1 state ACTIVE physical_state LINK_UP netdev eth0";
    let log = &check.node(CLIENT).log;
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
    check.logs_in_order(
        CLIENT,
        &[
            "rxe0 is on eth0 already",
            "== up again 0",
            "+ rdma link delete rxe0",
            "no RDMA device on eth0",
            "== down again 0",
            "softroce: there is no RDMA device on eth0. Create one: sudo tools/lab/softroce.sh up eth0",
            "+ modprobe rdma_rxe",
            "+ rdma link add rxe0 type rxe netdev eth0",
            "softroce: there is no network interface eth9. This machine has: eth0",
        ],
    );
}

#[test]
#[ignore = "takes long: make test-long"]
fn the_doctor_finds_a_lesson_machine_ready() {
    let doctor = "tools/lab/doctor.sh; tools/lab/softroce.sh down >/dev/null; tools/lab/doctor.sh";
    Copies::new().on_client(doctor).logs_in_order(
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
            "FAIL  SoftRoCE device         this machine has none",
            "no  vms,",
        ],
    );
}

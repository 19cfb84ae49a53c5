//! The Makefile with invented programs, which say how they were called: all that is given arrives as it was typed.

use crate::support::write_script;
use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// Quotes, spaces, and what make and the shell would take for themselves.
const ODD: &str = r#"it's "a  b" $x $(touch y) `touch z`; # \ *"#;
/// Says its name and its arguments.
const SAY: &str = r#"printf '[%s]' "${0##*/}" "$@"; echo"#;

/// A checkout, and a target folder that is somewhere else.
struct Checkout {
    folder: TempDir,
    target: PathBuf,
}

impl Checkout {
    fn new(target: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let checkout = Self { target: folder.path().join(target), folder };
        for folder in [
            "lessons/04_rdma_write",
            "lessons/05_rdma_read",
            "lessons/09_parameter_server",
            "lessons/13_ring_all_reduce",
            "tools/wire",
            "captures/over_tcp",
        ] {
            fs::create_dir_all(checkout.path(folder)).unwrap();
        }
        for lesson in ["04_rdma_write", "05_rdma_read", "09_parameter_server", "13_ring_all_reduce"] {
            fs::write(checkout.path(&format!("lessons/{lesson}/Cargo.toml")), "").unwrap();
        }
        symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Makefile"), checkout.path("Makefile")).unwrap();
        for (file, text) in [
            ("tools/lab/setup.sh", ""),
            ("tools/book/tools.sh", ""),
            ("tools/book/program.sh", ""),
            ("tools/lab/capture.sh", SAY),
            ("bin/node", SAY),
            ("bin/cargo-fuzz", SAY),
            // Says nothing where make builds: what it has built is said after that.
            ("bin/cargo", &format!("[ $1 = build ] || {{ {SAY}; }}")),
        ] {
            write_script(&checkout.path(file), text);
        }
        for program in ["lab", "device", "device-mine-nic", "course", "wire", "lesson-04"] {
            write_script(&checkout.target.join("debug").join(program), SAY);
        }
        // What it is given is in its environment.
        write_script(&checkout.target.join("debug/xtask"), r#"printf '[%s]' "$1" "$REPOSITORY"; echo"#);
        checkout
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn make(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut make = Command::new("make");
        // What is set by the make that runs the tests is none of this one's.
        for (name, _) in env::vars().filter(|(name, _)| name.starts_with("MAKE") || name == "MFLAGS") {
            make.env_remove(name);
        }
        let path = format!("{}:{}", self.path("bin").display(), env::var("PATH").unwrap());
        make.args(arguments).current_dir(self.folder.path()).env("PATH", path).env("HOME", self.folder.path());
        make.env("CARGO_TARGET_DIR", &self.target);
        make
    }

    /// The last line that is said.
    fn says(&self, arguments: &[&str]) -> String {
        let output = self.make(arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        text.lines().last().unwrap_or_default().to_owned()
    }
}

#[test]
fn whoever_waits_for_the_compiler_the_first_time_knows_for_what() {
    let checkout = Checkout::new("my target");
    let said = || String::from_utf8(checkout.make(&["lesson-04"]).stderr).unwrap();
    assert_eq!(said(), "", "everything is there");
    fs::remove_file(checkout.target.join("debug/course")).unwrap();
    let said = said();
    assert!(said.starts_with("compiling the course's programs") && said.lines().count() == 1, "{said}");
}

#[test]
fn what_is_given_to_make_arrives_as_it_was_typed() {
    let checkout = Checkout::new("my target");
    let given = |name: &str| format!("{name}={ODD}");
    let said = |target: &str, name: &str| checkout.says(&[target, &given(name)]);
    assert_eq!(said("break-04", "CHANGE"), format!("[course][break][04][{ODD}][--on=lab]"));
    assert_eq!(said("client-04", "HOST"), format!("[lesson-04][client][-a][{ODD}]"));
    assert_eq!(said("capture-04", "NETDEV"), format!("[capture.sh][04][{ODD}]"));
    let lesson = |server: &str, client: &str, more: &str| {
        format!("[lab][run][lesson-04][--clients=1][--server-args={server}][--client-args={client}]{more}")
    };
    assert_eq!(said("lesson-04", "server"), lesson(ODD, "", ""));
    assert_eq!(said("lesson-04", "client"), lesson("", ODD, ""));
    assert_eq!(said("lesson-04", "wire"), lesson("", "", &format!("[--wire={ODD}]")));
    assert_eq!(said("lesson-04", "workers"), lesson("", "", "").replace("=1", &format!("={ODD}")));
    assert_eq!(said("shell", "server"), format!("[lab][shell][--server={ODD}][--wire=]"));
    assert!(checkout.says(&["lesson-09"]).contains("[--clients=3]"), "it is about several");
    fs::write(checkout.path(ODD), "").unwrap();
    for (target, act) in [("compare-04", "compare"), ("explain-04", "explain"), ("play-04", "play")] {
        let said = said(target, "PCAP");
        assert!(said.starts_with(&format!("[wire][{act}][{ODD}]")), "{said}");
    }
    let compared = checkout.says(&["compare-04", &given("PCAP"), &given("VARIANT")]);
    assert!(compared.ends_with(&format!("[captures/04_rdma_write-{ODD}.pcapng]")));
    assert!(checkout.says(&["compare-04", &given("PCAP")]).ends_with("[captures/04_rdma_write.pcapng][--variant]"));
    assert_eq!(said("record", "lesson"), format!("[course][prove][--keep][{ODD}]"));
    let recorded = checkout.make(&["record", &given("lesson")]).stdout;
    assert!(String::from_utf8_lossy(&recorded).contains(&format!("[xtask][--][record][{ODD}]")));
    assert_eq!(said("site", "REPOSITORY"), format!("[site][{ODD}]"));
    let site = format!("[node][tools/book/serve.mjs][{}]", checkout.target.join("site").display());
    assert_eq!(said("serve", "PORT"), format!("{site}[{ODD}]"));
    assert!(said("fuzz", "RUNS").ends_with(&format!("[-runs={ODD}]")), "in the folder of wire");
    assert!(checkout.says(&["lesson-04", "on=device", "log=1 all"]).ends_with("[--all][--log]"));
    for wrong in [&["log=2", "on=device"], &["log=1", "on=lab"]] {
        let output = checkout.make(&[&["lesson-04"][..], wrong].concat());
        assert!(!output.status.success() && output.stdout.is_empty(), "{wrong:?}");
    }
    for wrong in ["on=lab device", "on=lab mine", "on=", "on=x"] {
        assert!(!checkout.make(&["lesson-04", wrong]).status.success(), "{wrong}");
    }
    assert!(!checkout.path("y").exists() && !checkout.path("z").exists(), "nothing of it is carried out");
}

/// The learner's NIC is built before anything runs on it, and its runs are where no other device's are.
#[test]
fn lessons_run_on_the_learners_own_nic() {
    let checkout = Checkout::new("target");
    let lines = |arguments: &[&str]| String::from_utf8(checkout.make(arguments).stdout).unwrap();
    let run = "[run][lesson-04][--clients=1][--server-args=][--client-args=][--grace=5]";
    assert_eq!(lines(&["lesson-04", "on=mine"]), format!("[course][nic][--device]\n[device-mine-nic]{run}\n"));
    assert_eq!(lines(&["shell", "on=mine"]), "[course][nic][--device]\n[device-mine-nic][shell]\n");
    let file = checkout.target.join("device/mine-nic/runs/04/wire.pcapng");
    write_script(&file, "");
    for target in ["compare-04", "explain-04", "play-04"] {
        assert!(checkout.says(&[target, "on=mine"]).contains(file.to_str().unwrap()), "{target}");
        assert!(!checkout.make(&[target, "on=device"]).status.success(), "{target}: nothing ran there");
    }
    // In the lab it takes the driver's place on one machine.
    let own = |address: &str| format!("NIC_NAME=rxe0 device-mine-nic run --address {address} -- ");
    let met = lines(&["meet-04", "mine=server"]);
    assert!(met.starts_with("[course][nic][--device]\n[lab][exec][--name=meet-04]"), "{met}");
    assert!(met.contains(&(own("10.47.91.1") + "lesson-04 server")) && !met.contains("10.47.91.2"), "{met}");
    let met = lines(&["meet-13"]);
    let of_ring = [own("10.47.91.2") + "lesson-13 client", "-n 3][".to_owned(), "client-3=".to_owned()];
    assert!(of_ring.iter().all(|part| met.contains(part)), "{met}");
    assert!(lines(&["meet", "server=a b", "client=c"]).contains(&(own("10.47.91.2") + "c]")));
    assert!(!checkout.make(&["meet-04", "mine=both"]).status.success());
    for other in ["break-04", "step", "try-04", "nic"] {
        let output = checkout.make(&[other, "on=mine"]);
        assert!(!output.status.success() && output.stdout.is_empty(), "{other}");
    }
    write_script(&checkout.target.join("debug/course"), "exit 3");
    let output = checkout.make(&["lesson-04", "on=mine"]);
    assert!(!output.status.success() && output.stdout.is_empty(), "what is not built does not run");
}

/// The machines have another driver, which set-up builds first, and the runs have names of their own.
#[test]
fn lessons_run_over_tcp() {
    let checkout = Checkout::new("target");
    let said = checkout.says(&["lesson-05", "on=siw"]);
    let run = "[lab][run][lesson-05][--clients=1][--server-args=][--client-args=][--driver=siw][--name=05-siw]";
    assert_eq!(said, run);
    let file = checkout.target.join("lab/runs/05-siw/wire.pcapng");
    write_script(&file, "");
    write_script(&checkout.path("captures/over_tcp/05_rdma_read.pcapng"), "");
    for target in ["compare-05", "play-05"] {
        assert!(checkout.says(&[target, "on=siw"]).contains(file.to_str().unwrap()), "{target}");
        assert!(!checkout.make(&[target, "on=lab"]).status.success(), "{target}: nothing ran there");
    }
    // No run of lesson 04 over TCP is bundled, and explain only knows RoCE.
    for wrong in [
        &["break-04", "on=siw"][..],
        &["step", "on=siw"],
        &["shell", "on=siw"],
        &["lesson-04", "on=siw", "log=1"],
        &["compare-04", "on=siw"],
        &["explain-05", "on=siw"],
    ] {
        let output = checkout.make(wrong);
        assert!(!output.status.success() && output.stdout.is_empty(), "{wrong:?}");
    }
}

/// Who types `make step && git commit` keeps only what is done. To lay something out, or to ask what went wrong, is no judgement.
#[test]
fn what_the_judge_does_not_pass_is_an_error_of_makes_too() {
    let checkout = Checkout::new("target");
    for program in ["course", "wire"] {
        write_script(&checkout.target.join("debug").join(program), "exit 1");
    }
    let ends_well = |arguments: &[&str]| checkout.make(arguments).status.success();
    for judged in ["step", "nic", "try-04-whose", "break-04"] {
        assert!(!ends_well(&[judged]), "{judged}");
    }
    assert!(ends_well(&["begin", "device"]) && ends_well(&["explain-04", "PCAP=Makefile"]));
}

#[test]
fn what_set_up_has_unpacked_is_found_in_a_folder_with_spaces() {
    let checkout = Checkout::new("my $target");
    fs::create_dir(checkout.target.join("tools")).unwrap();
    fs::write(checkout.target.join("tools/env"), "echo from env").unwrap();
    assert!(String::from_utf8(checkout.make(&["lesson-04"]).stdout).unwrap().starts_with("from env\n"));
}

#[test]
fn what_another_checkout_has_unpacked_is_not_looked_at() {
    let checkout = Checkout::new("target");
    fs::create_dir(checkout.target.join("tools")).unwrap();
    fs::write(checkout.target.join("tools/env"), r#"echo "$PATH:${RDMA_TOOLS-}:$LIBRARY_PATH|$LD_LIBRARY_PATH""#)
        .unwrap();
    let (mut make, path) = (checkout.command(&["lesson-04"]), env::var("PATH").unwrap());
    make.env("PATH", format!("/another/tools/first:{}:{path}:/another/tools/usr/bin", checkout.path("bin").display()));
    make.env("RDMA_TOOLS", "/another/tools").env("LIBRARY_PATH", "/another/tools/lib");
    let output = make.env("LD_LIBRARY_PATH", "/another/tools/lib:/mine").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().next().unwrap();
    assert!(!line.contains("/another") && line.ends_with("|/mine"), "{text}");
    assert!(line.contains(checkout.path("bin").to_str().unwrap()), "{text}");
}

#[test]
fn clean_takes_what_is_ours_and_nothing_else() {
    let checkout = Checkout::new("my target");
    fs::create_dir(checkout.path("my")).unwrap();
    fs::create_dir_all(checkout.target.join("lab/state")).unwrap();
    let said = checkout.says(&["clean"]);
    assert!(!said.contains("No such file"), "{said}");
    assert!(checkout.path("my").exists(), "half a name is none");
    assert!(checkout.target.join("debug").exists(), "other projects may build there; cargo removes what is ours");
    assert!(!checkout.target.join("lab").exists());
}

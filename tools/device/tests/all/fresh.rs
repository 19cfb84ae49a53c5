//! The workflow that docs/ci.md gives to other people: its steps as they stand, in fresh minimal roots of Debian, as an ordinary
//! user. Needs root, debootstrap, and what `make device-bundle` needs; by hand: make test-long group=fresh

use crate::programs::support::target;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian 12, Debian 13 and what comes next.
const SUITES: [&str; 3] = ["bookworm", "trixie", "testing"];

/// What a workflow's machine has: a user who may become root, and what a step is told. $1 is the root, $2 the steps' script.
const ENTER: &str = r#"
# A mirror may be behind.
echo 'Acquire::Check-Valid-Until "false";' >"$1/etc/apt/apt.conf.d/99late"
install -m 755 -D "$2" "$1/home/you/steps.sh"
chroot "$1" sh -ec 'id you 2>/dev/null || useradd --create-home you; echo "you ALL=(ALL) NOPASSWD: ALL" >/etc/sudoers.d/you; chown -R you /home/you'
exec unshare --mount --pid --fork --kill-child sh -ec '
    mount -t proc proc "$0/proc"
    mount --rbind /dev "$0/dev"
    exec chroot "$0" su - you -s /bin/bash -c "bash --noprofile --norc -e steps.sh"' "$1"
"#;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The commands of a workflow's or an action's steps, one line or the lines below `run: |`.
fn steps(file: &str) -> Vec<String> {
    let text = fs::read_to_string(repository().join(file)).unwrap();
    let mut lines = text.lines().peekable();
    let mut steps = Vec::new();
    while let Some(line) = lines.next() {
        let Some((before, run)) = line.split_once("run: ") else { continue };
        let is_within = |line: &&str| line.len() - line.trim_start().len() > before.len();
        match run {
            "|" => steps.push(
                std::iter::from_fn(|| lines.next_if(is_within))
                    .map(|line| format!("{}\n", line.trim_start()))
                    .collect(),
            ),
            _ if before.trim_start_matches(['-', ' ']).is_empty() => steps.push(run.to_owned()),
            _ => {}
        }
    }
    steps
}

#[test]
#[ignore = "needs root and debootstrap, and downloads three systems: make test-long group=fresh"]
fn the_workflow_runs_in_fresh_systems() {
    let folder = target().join("device/fresh");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let made = Command::new("tools/device/bundle.sh").current_dir(repository()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let bundle = String::from_utf8(made.stdout).unwrap().lines().last().unwrap().to_owned();
    let [action, workflow] = ["tools/device/action.yml", "docs/ci_workflow.yml"].map(steps);
    assert!(action.len() == 2 && workflow.len() >= 3, "{action:?} {workflow:?}");
    // What the forge tells steps, and does between them.
    let told = "export BUNDLE=/bundle.tar.gz RUNNER_TEMP=$HOME/temp GITHUB_PATH=$HOME/path\n".to_owned();
    let path = "PATH=$PATH:$(cat $GITHUB_PATH)\n".to_owned();
    let script = [vec![told], action, vec![path], workflow].concat().join("\n");
    let steps = folder.join("steps.sh");
    fs::write(&steps, script).unwrap();
    for suite in SUITES {
        let root = folder.join(suite);
        let debootstrap = Command::new("debootstrap")
            .args(["--variant=minbase", "--include=ca-certificates,sudo", suite])
            .arg(&root)
            .status();
        assert!(debootstrap.unwrap().success(), "not run: debootstrap of {suite}");
        fs::copy(repository().join(&bundle), root.join("bundle.tar.gz")).unwrap();
        let output = Command::new("sh").args(["-euc", ENTER, "sh"]).args([&root, &steps]).output().unwrap();
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{suite}: {text}");
        assert!(text.contains(r#""succeeded":true"#) && text.contains("rxe0"), "{suite}: {text}");
        assert!(root.join("home/you/rdma-device/runs/ci/wire.pcapng").exists(), "{suite}");
        println!("{suite}: as told");
        fs::remove_dir_all(&root).unwrap();
    }
}

#[test]
#[ignore = "emulates an arm64 machine: make test-long group=fresh"]
fn everything_runs_on_aarch64() {
    let folder = target().join("device/aarch64");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let script = repository().join("tools/device/tests/aarch64.sh");
    let output = Command::new(script).arg(&folder).output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let ended: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("exit ")).collect();
    assert!(text.contains("the end") && ended.len() == 13, "{text}");
    assert!(ended.iter().all(|ended| ended.starts_with("0 of ")), "{text}");
    fs::remove_dir_all(&folder).unwrap();
}

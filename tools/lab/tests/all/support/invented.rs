//! Machines that a test invents for a script of `tools/lab/`: a folder for the root, a checkout in it, and commands of its own.

use super::{program, write_script};
use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// What every machine has, and the scripts themselves use.
const BASICS: &str =
    "sh dirname find head grep sed cat awk tr cut sort paste mkdir mv rm ln readlink basename touch flock sleep tar chmod";

/// It ends with this status; gives what it printed on both streams.
pub fn ends(script: Child, status: i32) -> String {
    let output = script.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert_eq!(output.status.code(), Some(status), "{text}");
    text
}

/// A file of tools/lab/.
fn read(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// The table's rows: stage, what, checks, and the packages of Debian, Fedora and Arch.
pub fn needs() -> Vec<[String; 6]> {
    let text = read("needs.txt").replace("$machine", "x86_64").replace("$qemu", "x86").replace("$deb_arch", "amd64");
    let columns = |line: &str| line.split('|').map(|column| column.trim().to_owned()).collect::<Vec<_>>();
    text.lines().filter(|line| !line.starts_with('#')).map(|line| columns(line).try_into().unwrap()).collect()
}

/// The file that meets a check of tools/lab/needs.txt.
pub fn path_of(check: &str) -> String {
    match check.split_once(':').unwrap_or((check, "")) {
        ("header", file) => format!("usr/include/{file}"),
        ("lib", file) => {
            format!("usr/lib/x86_64-linux-gnu/{}", file.replace('*', "rdmav34").replace("[-.][0-9s]", "-14"))
        }
        ("static", program) => format!("usr/bin/{program}"),
        ("certificates", _) => "etc/ssl/certs/ca-certificates.crt".to_owned(),
        ("kernel", _) => "boot/vmlinuz-6.1.0-40-amd64".to_owned(),
        ("module", name) => format!("a checkout/target/lab/kernel/6.1.0/modules/{name}.ko"),
        (program, _) => format!("usr/bin/{program}"),
    }
}

pub struct Machine {
    folder: TempDir,
}

impl Machine {
    /// One with these commands of this host, and nothing else.
    pub fn with(commands: &str) -> Self {
        let machine = Self { folder: tempfile::tempdir().unwrap() };
        fs::set_permissions(machine.path(""), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir_all(machine.path("usr/bin")).unwrap();
        // Each invented command is this program, which then does what its own script says.
        write_script(&machine.path("command"), "[ ! -e \"$0.script\" ] || . \"$0.script\"");
        for name in commands.split_whitespace() {
            symlink(program(name), machine.path("usr/bin").join(name)).unwrap();
        }
        for script in ["setup.sh", "doctor.sh", "capture.sh", "needs.sh", "needs.txt", "siw.sh"] {
            machine.edit(&[&format!("a checkout/tools/lab/{script}={}", read(script))]);
        }
        machine
    }

    /// One that has all of tools/lab/needs.txt, and then is edited.
    pub fn new(edits: &[&str]) -> Self {
        let machine = Self::with(BASICS);
        for file in needs().iter().flat_map(|need| need[2].split_whitespace()).map(path_of) {
            let command = file.strip_prefix("usr/bin/").map(|name| format!("${name}="));
            machine.edit(&[&command.unwrap_or(format!("{file}="))]);
        }
        machine.edit(&[
            "$uname=case $1 in -m) echo x86_64 ;; *) echo 6.1.0-40-amd64 ;; esac",
            "$cargo=echo 'cargo 1.75.0 (1d8b05cdd 2023-11-20)'",
            "$rustc=",
            "a checkout/Cargo.toml=rust-version = \"1.75\"",
            "lib/modules/6.1.0-40-amd64/modules.dep=kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko:",
        ]);
        machine.edit(edits);
        machine
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// `-PATH` is no longer there, `PATH=CONTENT` is a file, `$NAME=SCRIPT` a command.
    pub fn edit(&self, edits: &[&str]) -> &Self {
        for edit in edits {
            if let Some(path) = edit.strip_prefix('-').map(|path| self.path(path)) {
                if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
                continue;
            }
            let (name, content) = edit.split_once('=').unwrap();
            let path = name.strip_prefix('$').map_or(name.to_owned(), |name| format!("usr/bin/{name}.script"));
            fs::create_dir_all(self.path(&path).parent().unwrap()).unwrap();
            fs::write(self.path(&path), format!("{content}\n")).unwrap();
            if let Some(program) = path.strip_suffix(".script") {
                let _ = symlink(self.path("command"), self.path(program));
            }
        }
        self
    }

    /// One of the checkout's scripts, to be run on this machine with these words. In a background job SIGINT is ignored, and a shell
    /// cannot undo that for itself, but `env` can.
    pub fn script(&self, name: &str, words: &str) -> Command {
        let mut command = Command::new("/usr/bin/env");
        command.args(["--default-signal=INT", "/bin/sh"]).arg(self.path("a checkout/tools/lab").join(name)).env_clear();
        command.env("PATH", self.path("usr/bin")).env("DOCTOR_ROOT", self.folder.path()).env("HOME", "/home/you");
        command.args(words.split_whitespace()).current_dir(self.folder.path()).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

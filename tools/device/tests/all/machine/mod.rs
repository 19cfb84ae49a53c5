//! Programs on a machine that is answered by a supervisor: what they see, what comes of their calls, and when their files end.
//! The programs are the shell's, or this test itself, started once more.

mod files;
mod odd;
mod seen;

use device::machine::{Asked, Asker, Call, FileId, Kind, Machine, Process};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::collections::BTreeMap;
use std::env;
use std::fs::{File, OpenOptions};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The variable that makes a test the program which it watches.
pub const ACTS: &str = "MACHINE_TEST_ACTS";
const PATIENCE: Duration = Duration::from_secs(60);
const UVERBS: &str = "/dev/infiniband/uverbs0";
const RDMA_CM: &str = "/dev/infiniband/rdma_cm";

/// Whether this is the program on the machine.
pub fn acts() -> bool {
    env::var_os(ACTS).is_some()
}

/// This test of a module below, once more, as a program.
fn again(test: &str) -> Command {
    again_as(&format!("machine::{test}"))
}

pub fn again_as(test: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--quiet"]).env(ACTS, "1");
    command
}

fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]);
    command
}

/// The folder for what stands for sysfs, which stays.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("machines")
}

/// A write that waits for its answer.
struct Wrote {
    call: Call,
    bytes: Vec<u8>,
    file: FileId,
    process: Process,
}

pub struct Node {
    pub machine: Machine,
    child: Child,
    /// What the device was asked, but for writes, in words.
    heard: Vec<String>,
    kinds: BTreeMap<FileId, Kind>,
}

impl Node {
    pub fn start(mut command: Command, address: &str) -> Node {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let address: IpAddr = address.parse().unwrap();
        let (child, machine) = Machine::start(&mut command, address, &folder(), false).unwrap();
        Node { machine, child, heard: Vec::new(), kinds: BTreeMap::new() }
    }

    /// What comes next.
    fn next(&mut self) -> Asked {
        let begun = Instant::now();
        loop {
            if let Some(asked) = self.machine.asked() {
                return asked;
            }
            assert!(begun.elapsed() < PATIENCE, "nothing comes; heard {:?}", self.heard);
            let wait = Timespec { tv_sec: 1, tv_nsec: 0 };
            let _ = poll(&mut [PollFd::new(&self.machine, PollFlags::IN)], Some(&wait));
        }
    }

    /// Serves until nobody is left. What is written, `write` answers.
    fn serve(&mut self, mut write: impl FnMut(&mut Machine, Wrote)) {
        loop {
            match self.next() {
                Asked::Opened { file, kind, process } => {
                    assert!(process.number() > 0);
                    self.kinds.insert(file, kind);
                    self.heard.push(format!("opened {kind:?}"));
                }
                Asked::Written { call, asker: Asker { file, process, address, length }, .. } => {
                    let mut bytes = vec![0; length.min(4096)];
                    match process.read(address, &mut bytes) {
                        Ok(()) => write(&mut self.machine, Wrote { call, bytes, file, process }),
                        Err(errno) => assert!(call.answer(Err(errno))),
                    }
                }
                Asked::Closed { file, .. } => self.heard.push(format!("closed {:?}", self.kinds[&file])),
                Asked::Maps { call, .. } => call.pass(),
                Asked::Closes { .. } | Asked::ClosesOther { .. } | Asked::WrittenNowhere => {}
                Asked::Sleeps { call, .. } => panic!("time is not ours: {call:?}"),
                Asked::Deserted => return,
            }
        }
    }

    /// What it printed, if it ended well.
    pub fn end(self) -> String {
        let Output { status, stdout, stderr } = self.child.wait_with_output().unwrap();
        let [said, errors] = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(status.success(), "{status}: {said}{errors}");
        said
    }
}

/// Runs a program whose writes are all taken.
fn run(command: Command, address: &str) -> (Vec<String>, String) {
    let mut node = Node::start(command, address);
    node.serve(|_, wrote| assert!(wrote.call.answer(Ok(wrote.bytes.len() as i64))));
    let heard = std::mem::take(&mut node.heard);
    (heard, node.end())
}

fn open(path: &str) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

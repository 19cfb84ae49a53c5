//! The processes of a run: its programs, and all that they have started. None of them outlives it, however it ends.
//!
//! A shell may have started one, and one that daemonises is nobody's child any more: that it is ours its environment says. So
//! whoever knows the run's name finds it. That is the guardian, a process of its own: it ends them all when its standard input
//! ends, and that does when the runner has done its work, or was killed.

use anyhow::{ensure, Context, Result};
use device::machine::ended_child;
use device::node::tap::Tap;
use run::exit::Exit;
use rustix::param::page_size;
use rustix::process::{kill_process, waitpid, Pid, Signal, WaitOptions, WaitStatus};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::iter;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The variable by which we know a process of a run: its value is the run's name.
pub const RUN: &str = "NIC_RUN";

/// What a program reads and writes whose input nobody gives and whose output nobody wants.
const NOTHING: &str = "/dev/null";

/// How long a process may take to end when it is killed.
const PATIENCE: Duration = Duration::from_secs(10);

/// Programs that run, by their numbers, and where their ends are told.
type Programs = HashMap<u32, Tap>;

pub struct Processes {
    /// The run's name.
    pub run: String,
    /// Where to note a program that is started.
    pub programs: Arc<Mutex<Programs>>,
    guardian: Child,
    /// Somebody has ended the guardian: its work is ours.
    is_unguarded: bool,
}

impl Processes {
    /// Those of a run with this name, of which there is none yet.
    pub fn new(run: &str) -> Result<Processes> {
        ensure!(
            Path::new(NOTHING).exists(),
            "there is no {NOTHING} here, and programs need it: `mknod -m 666 {NOTHING} c 1 3` makes one, or mount the host's into the \
             container or chroot"
        );
        let mut guardian = Command::new("/proc/self/exe");
        // A group of its own: no signal of the terminal comes there.
        guardian
            .args(["guard", run])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let guardian = guardian.spawn().context("cannot start a second copy of this program")?;
        let programs = Arc::default();
        let buried = Arc::clone(&programs);
        thread::spawn(move || bury(&buried));
        Ok(Processes { run: run.to_owned(), programs, guardian, is_unguarded: false })
    }

    /// The guardian's number: it is none of them.
    pub fn guardian(&self) -> u32 {
        self.guardian.id()
    }

    /// Whether one of them listens on a TCP port, as those do that have no connection manager.
    pub fn listens_on_tcp(&self) -> bool {
        of(&self.run).any(|process| listens(&process))
    }

    /// Whether one of them is at work.
    pub fn work(&self) -> bool {
        of(&self.run).any(|process| works(&process))
    }

    /// Begins to end all that are left.
    pub fn dismiss(&mut self) {
        let guardian = format!("/proc/{}", self.guardian.id());
        self.is_unguarded = matches!(state(Path::new(&guardian)), None | Some('Z' | 'X'));
        drop(self.guardian.stdin.take());
    }

    /// All have ended.
    pub fn end(mut self) {
        // Who waits for all our children may have heard of its end already.
        let _ = self.guardian.wait();
        if self.is_unguarded {
            end_all(&self.run);
        }
    }
}

/// What the guardian of a run does.
pub fn guard(run: &str) {
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    end_all(run);
}

fn end_all(run: &str) {
    // While we look, one may start another. Nobody waits for ever for one that cannot be ended.
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE && of(run).filter(|process| kill(process)).count() > 0 {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Waits for all our children, and tells the ends of programs. The others were left by their parents.
fn bury(programs: &Mutex<Programs>) {
    loop {
        let Ok(child) = ended_child() else {
            // There is none at this moment.
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        let ended = end_of(child, &mut locked(programs));
        if let Some((tap, status)) = ended {
            // This may have to wait, and so must not keep who starts a program: the lock is free again.
            tap.exits(exit(status));
        }
    }
}

/// How a child has ended, if it is a program. Not asked while one is started: whoever starts one that cannot be started waits
/// for it, too.
fn end_of(child: u32, programs: &mut Programs) -> Option<(Tap, WaitStatus)> {
    let number = Pid::from_raw(child as i32)?;
    let (_, status) = waitpid(Some(number), WaitOptions::NOHANG).ok()??;
    Some((programs.remove(&child)?, status))
}

pub fn locked(programs: &Mutex<Programs>) -> MutexGuard<'_, Programs> {
    programs.lock().unwrap_or_else(PoisonError::into_inner)
}

fn exit(status: WaitStatus) -> Exit {
    let killed = status.terminating_signal().map(Exit::Signal);
    killed.unwrap_or(Exit::Status(status.exit_status().unwrap_or(-1)))
}

/// Bytes of memory that these processes have, and all that are descended from them (proc_pid_stat(5)). What several share counts for each.
pub fn memory(roots: &[u32]) -> u64 {
    const PARENT: usize = 1;
    const PAGES: usize = 21;
    let all = entries(Path::new("/proc")).filter_map(|process| {
        let number: u32 = process.file_name()?.to_str()?.parse().ok()?;
        let stat = stat(&process)?;
        let field = |at: usize| stat.get(at)?.parse::<u64>().ok();
        Some((number, (field(PARENT)? as u32, field(PAGES)?)))
    });
    let all: HashMap<u32, (u32, u64)> = all.collect();
    let is_ours = |number: &u32| {
        let line = iter::successors(Some(*number), |number| all.get(number).map(|(parent, _)| *parent));
        // Numbers are given again: what was read one after the other may lead round and round.
        line.take(all.len()).any(|number| roots.contains(&number))
    };
    let pages = all.iter().filter(|(number, _)| is_ours(number)).map(|(_, (_, pages))| pages);
    pages.sum::<u64>() * page_size() as u64
}

/// All processes of a run, by their folders below /proc. One that has ended has no environment.
fn of(run: &str) -> impl Iterator<Item = PathBuf> {
    let mark = format!("{RUN}={run}");
    entries(Path::new("/proc")).filter(move |process| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    })
}

/// Whether it was possible.
fn kill(process: &Path) -> bool {
    let number = process.file_name().and_then(|name| name.to_str()?.parse().ok()).and_then(Pid::from_raw);
    number.is_some_and(|number| kill_process(number, Signal::KILL).is_ok())
}

/// What proc_pid_stat(5) says of a process or a thread after its name in brackets, which may itself hold some.
fn stat(process: &Path) -> Option<Vec<String>> {
    let stat = fs::read(process.join("stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    Some(stat.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect())
}

/// The state, as a letter.
fn state(process: &Path) -> Option<char> {
    stat(process)?.first()?.chars().next()
}

/// Whether it's dead, or about to be: then its memory may be gone while it still has a moment to go.
pub fn is_ending(process: &Path) -> bool {
    const FLAGS: usize = 6;
    const PF_EXITING: u64 = 4;
    let flags = |stat: &[String]| stat.get(FLAGS)?.parse::<u64>().ok();
    stat(process).map_or(true, |stat| {
        stat[0].starts_with(['Z', 'X']) || flags(&stat).is_some_and(|flags| flags & PF_EXITING != 0)
    })
}

/// Whether it computes, or waits for a processor or a disk.
pub fn works(process: &Path) -> bool {
    matches!(state(process), Some('R' | 'D'))
}

/// Whether one of a process's sockets is in the kernel's table of TCP sockets as one that listens.
fn listens(process: &Path) -> bool {
    const LISTEN: &str = "0A";
    // What it says goes to sockets of ours.
    let files =
        entries(&process.join("fd")).filter(|file| !["fd/0", "fd/1", "fd/2"].iter().any(|said| file.ends_with(said)));
    let files = files.filter_map(|file| fs::read_link(file).ok());
    let own: Vec<PathBuf> = files.filter(|file| file.to_string_lossy().starts_with("socket:")).collect();
    if own.is_empty() {
        // The kernel takes long to make the tables.
        return false;
    }
    ["net/tcp", "net/tcp6"].into_iter().any(|table| {
        let table = fs::read_to_string(process.join(table)).unwrap_or_default();
        table.lines().any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let socket = words.get(9).map(|inode| PathBuf::from(format!("socket:[{inode}]")));
            words.get(3) == Some(&LISTEN) && socket.is_some_and(|socket| own.contains(&socket))
        })
    })
}

pub fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

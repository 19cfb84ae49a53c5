//! Starting programs, and the socket that brings all they say.

use super::Run;
use anyhow::{Context, Result};
use device::nic::{port, tap};
use rustix::process::{kill_process, Pid, Signal};
use std::env;
use std::fs;
use std::io;
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

/// The variable with the device's name, see `verbs/context.rs`.
const DEVICE_NAME: &str = "NIC_NAME";

/// Something that a program said or did.
pub enum Message {
    /// Bytes on standard output or standard error.
    Said {
        node: usize,
        error: bool,
        bytes: Vec<u8>,
    },
    Tap {
        kind: u8,
        node: usize,
        bytes: Vec<u8>,
    },
    Exit {
        node: usize,
        status: i32,
    },
}

/// Streams of a program, each a socket with a name of its own, by which the receiver knows it.
#[derive(Clone, Copy)]
enum Stream {
    Out,
    Err,
    Exit,
}

pub struct Inbox {
    socket: UnixDatagram,
    name: String,
}

impl Inbox {
    /// A socket with a name that no other run has.
    pub fn open() -> Result<Inbox> {
        let name = format!("rdma-device-{}", std::process::id());
        let socket =
            UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name)?).context("cannot make a socket")?;
        Ok(Inbox { socket, name })
    }

    /// What comes next, if it comes in time.
    pub fn next(&self, wait: Duration) -> Result<Option<Message>> {
        let mut bytes = vec![0; 256 << 10];
        self.socket.set_read_timeout(Some(wait))?;
        let (length, from) = match self.socket.recv_from(&mut bytes) {
            Ok(received) => received,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return Ok(None)
            }
            Err(error) => return Err(error).context("cannot read what the programs say"),
        };
        bytes.truncate(length);
        let name = from.as_abstract_name().map(|name| String::from_utf8_lossy(name).into_owned()).unwrap_or_default();
        let mut parts = name.strip_prefix(&self.name).unwrap_or_default().split('.').skip(1);
        let (stream, node) = (parts.next(), parts.next().and_then(|node| node.parse().ok()).unwrap_or(0));
        Ok(match (stream, bytes.as_slice()) {
            (Some("out"), _) => Some(Message::Said { node, error: false, bytes }),
            (Some("err"), _) => Some(Message::Said { node, error: true, bytes }),
            (Some("exit"), _) => {
                Some(Message::Exit { node, status: String::from_utf8_lossy(&bytes).parse().unwrap_or(-1) })
            }
            (_, [kind, node, rest @ ..]) => {
                Some(Message::Tap { kind: *kind, node: (*node).into(), bytes: rest.to_vec() })
            }
            _ => None,
        })
    }

    fn stream(&self, stream: Stream, node: usize) -> Result<UnixDatagram> {
        let kind = match stream {
            Stream::Out => "out",
            Stream::Err => "err",
            Stream::Exit => "exit",
        };
        let name = format!("{}.{kind}.{node}", self.name);
        let attempt = || -> io::Result<UnixDatagram> {
            let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
            socket.connect_addr(&SocketAddr::from_abstract_name(&self.name)?)?;
            Ok(socket)
        };
        attempt().context("cannot make a socket")
    }
}

pub struct Program {
    pid: Option<Pid>,
    was_asked: bool,
    /// How it ended: its status, or 128 and the signal.
    pub exit: Option<i32>,
}

impl Program {
    /// Whether it listens on a TCP port, as programs do that have no connection manager.
    pub fn listens_on_tcp(&self) -> bool {
        const LISTEN: &str = "0A";
        let Some(pid) = self.pid.map(|pid| pid.as_raw_nonzero().get()) else { return false };
        let descriptors = family(pid).into_iter().flat_map(|pid| entries(&format!("/proc/{pid}/fd")));
        let targets = descriptors.filter_map(|descriptor| fs::read_link(descriptor).ok());
        let own: Vec<String> = targets.map(|target| target.to_string_lossy().into_owned()).collect();
        ["tcp", "tcp6"].into_iter().any(|table| {
            let table = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
            table.lines().any(|line| {
                let mut words = line.split_whitespace().skip(3);
                let (state, inode) = (words.next(), words.nth(5).unwrap_or_default());
                state == Some(LISTEN) && own.contains(&format!("socket:[{inode}]"))
            })
        })
    }

    fn watch(mut child: Child, node: usize, inbox: &Inbox) -> Result<Program> {
        let pid = Pid::from_raw(child.id() as i32);
        let exit = inbox.stream(Stream::Exit, node)?;
        thread::spawn(move || {
            let status = child.wait().map_or(-1, number);
            let _ = exit.send(status.to_string().as_bytes());
        });
        Ok(Program { pid, was_asked: false, exit: None })
    }

    /// Asks it to end, and ends it by force if it is asked again; whether this was the first time.
    pub fn end(&mut self) -> bool {
        let was_asked = std::mem::replace(&mut self.was_asked, true);
        if let Some(pid) = self.pid {
            let _ = kill_process(pid, if was_asked { Signal::KILL } else { Signal::TERM });
        }
        !was_asked
    }
}

fn entries(folder: &str) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// A process, and those that it has started: a program may be run by a shell.
fn family(first: i32) -> Vec<i32> {
    let parent = |process: &PathBuf| {
        let pid: i32 = process.file_name()?.to_str()?.parse().ok()?;
        let stat = fs::read_to_string(process.join("stat")).ok()?;
        // pid (name) state parent …
        Some((pid, stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<i32>().ok()?))
    };
    let all: Vec<(i32, i32)> = entries("/proc").iter().filter_map(parent).collect();
    let mut family = vec![first];
    let mut at = 0;
    while let Some(&elder) = family.get(at) {
        family.extend(all.iter().filter(|(_, parent)| *parent == elder).map(|(pid, _)| *pid));
        at += 1;
    }
    family
}

fn number(status: ExitStatus) -> i32 {
    status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

/// Starts a node's program, with our libraries in front of the system's; its device gets a socket, if we are the wire.
pub fn start(
    run: &Run,
    node: usize,
    inbox: &Inbox,
    library: &Path,
    server: &str,
    socket: Option<UdpSocket>,
) -> Result<Program> {
    let command = &run.nodes[node].command;
    let (out, err) = (inbox.stream(Stream::Out, node)?, inbox.stream(Stream::Err, node)?);
    let mut sh = Command::new("sh");
    // `exec`: the program itself is what is waited for, and killed.
    sh.args(["-c", &format!("exec {command}")]);
    sh.env(port::WIRE, if socket.is_some() { "1" } else { "" });
    sh.stdin(socket.map_or_else(Stdio::null, |socket| OwnedFd::from(socket).into()));
    sh.stdout(OwnedFd::from(out)).stderr(OwnedFd::from(err));
    let child = environment(&mut sh, run, node, inbox, library, server).spawn();
    Program::watch(child.with_context(|| format!("cannot start `{command}`"))?, node, inbox)
}

/// Starts a shell with this terminal.
pub fn shell(run: &Run, inbox: &Inbox, library: &Path, server: &str) -> Result<Program> {
    let node = run.nodes.len();
    let mut shell = Command::new(env::var_os("SHELL").unwrap_or_else(|| "sh".into()));
    let child = environment(&mut shell, run, node, inbox, library, server).spawn();
    Program::watch(child.context("cannot start a shell")?, node, inbox)
}

fn environment<'a>(
    command: &'a mut Command,
    run: &Run,
    node: usize,
    inbox: &Inbox,
    library: &Path,
    server: &str,
) -> &'a mut Command {
    let own = library.parent().unwrap_or(library).display().to_string();
    let path = env::var("PATH").unwrap_or_default();
    let libraries = env::var("LD_LIBRARY_PATH").unwrap_or_default();
    command
        .env("LD_LIBRARY_PATH", format!("{}:{libraries}", library.display()).trim_end_matches(':'))
        .env("PATH", format!("{own}:{path}"))
        .env("SERVER", server)
        // The name of the lab's device: lessons open it, unless they are told another one.
        .env(DEVICE_NAME, env::var(DEVICE_NAME).unwrap_or_else(|_| "rxe0".into()))
        .env(tap::TAP, &inbox.name)
        .env(tap::NODE, node.to_string())
        .env(tap::LOG, if run.log { "1" } else { "" })
}

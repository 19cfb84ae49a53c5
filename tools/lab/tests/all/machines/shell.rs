//! `lab shell` as a person uses it: on a terminal, which must be as it was before, whatever happens.

use crate::support::{lab, machines, recorded};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{kill_process, Pid, Signal};
use rustix::pty::{grantpt, openpt, ptsname, unlockpt, OpenptFlags};
use rustix::termios::{tcgetattr, tcsetwinsize, LocalModes, Winsize};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long one step may take on a loaded machine; the first one may boot the machines.
const LIMIT: Duration = Duration::from_secs(180);
const PROMPT: &str = "client:~# ";

/// A lab on a terminal of its own, and the person in front of it.
struct Person {
    lab: Child,
    /// The person's side of the terminal.
    hands: File,
    /// The programs' side: it stays open, so that the terminal outlives the lab.
    tty: File,
    settings: String,
    seen: String,
}

impl Person {
    fn sits_down(arguments: &[&str]) -> Self {
        let hands = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&hands).unwrap();
        unlockpt(&hands).unwrap();
        let name = ptsname(&hands, Vec::new()).unwrap().into_string().unwrap();
        let tty = File::options().read(true).write(true).open(name).unwrap();
        resize(&tty, 33, 99);
        let settings = settings(&tty);
        let end = || tty.try_clone().unwrap();
        let lab = lab().arg("shell").args(arguments).stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        Self { lab, hands: File::from(hands), tty, settings, seen: String::new() }
    }

    fn types(&mut self, keys: &str) {
        self.hands.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until `text` is on the screen below all that was waited for before, and gives what is above it.
    fn sees(&mut self, text: &str) -> String {
        let limit = Instant::now() + LIMIT;
        loop {
            if let Some(start) = self.seen.find(text) {
                let rest = self.seen.split_off(start + text.len());
                return std::mem::replace(&mut self.seen, rest);
            }
            assert!(Instant::now() < limit, "no {text:?} in {}", self.seen);
            self.looks();
        }
    }

    /// Types a command, and waits for this output and for the next prompt. Returns what was printed before.
    fn asks(&mut self, command: &str, answer: &str) -> String {
        self.types(&format!("{command}\r"));
        let above = self.sees(answer);
        self.sees(PROMPT);
        above
    }

    /// Takes what is on the screen, if there is something within a moment.
    fn looks(&mut self) {
        let mut entry = [PollFd::new(&self.hands, PollFlags::IN)];
        if poll(&mut entry, Some(&Timespec { tv_sec: 0, tv_nsec: 50_000_000 })).unwrap() == 1 {
            let mut bytes = [0; 4096];
            let count = self.hands.read(&mut bytes).unwrap();
            self.seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
            self.seen = without_colors(&self.seen);
        }
    }

    /// Waits for the end of the lab; the terminal is as it was, and no machine is left.
    fn goes(mut self) -> (ExitStatus, String) {
        let limit = Instant::now() + LIMIT;
        let status = loop {
            self.looks();
            if let Some(status) = self.lab.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < limit, "the lab does not end: {}", self.seen);
        };
        self.looks();
        assert_eq!(settings(&self.tty), self.settings);
        (status, std::mem::take(&mut self.seen))
    }

    fn is_raw(&self) -> bool {
        !tcgetattr(&self.tty).unwrap().local_modes.contains(LocalModes::ICANON)
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        // Does nothing to a lab that has ended, as all do unless the test fails.
        let _ = self.lab.kill();
        let _ = self.lab.wait();
    }
}

fn resize(tty: &File, rows: u16, columns: u16) {
    tcsetwinsize(tty, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
}

fn settings(tty: &File) -> String {
    format!("{:?}", tcgetattr(tty).unwrap())
}

/// Some versions of `ip` and `tc` color what they print. A sequence that has not come whole stays.
fn without_colors(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |seen, part| match part.split_once('m') {
        Some((code, rest)) if code.bytes().all(|byte| byte.is_ascii_digit() || byte == b';') => seen + rest,
        _ => seen + "\x1b[" + part,
    })
}

/// What is in a file of the shell with this name.
fn text(name: &str, file: &str) -> String {
    String::from_utf8_lossy(&fs::read(recorded(name, file)).unwrap()).into_owned()
}

#[test]
fn a_person_pings_looks_around_and_leaves() {
    let mut person = Person::sits_down(&["--name=shell-person"]);
    let greeting = person.sees(PROMPT);
    assert!(greeting.contains("rping -s -P -v") && person.is_raw(), "{greeting}");
    person.types("rping -c -a server -C 1 -v\r");
    let exchange = person.sees(PROMPT);
    for wanted in ["client ──▶ server  REQ", "client ◀── server  REP", "RDMA Write Only", "ping data: rdma-ping-0"]
    {
        assert!(exchange.contains(wanted), "no {wanted:?} in {exchange}");
    }
    let look = "stty size; ip -br address show eth0; tc qdisc show dev eth0; rdma link; ibv_devinfo | head -n 1";
    let tools = person.asks(look, "hca_id");
    for wanted in ["33 99", "10.47.91.2/24", "qdisc ", "link rxe0/1 state ACTIVE"] {
        assert!(tools.contains(wanted), "no {wanted:?} in {tools}");
    }
    person.types("on server hostname\r");
    person.sees("server │ server");
    person.asks("tc qdisc add dev eth0 root netem delay 3ms && tc qdisc show dev eth0", "\nqdisc netem");
    resize(&person.tty, 20, 70);
    person.asks("until stty size | grep '^20 70'; do usleep 10000; done", "\n20 70");
    // A paste shorter than what the machine's terminal keeps of a line, longer than what its serial port does.
    person.asks(&format!("printf '%s' {} | wc -c", "0123456789".repeat(100)), "\n1000");
    // The program says it itself: what comes while a shell is still starting a program may reach neither.
    person.types("sh -c 'echo begun; exec sleep 600'\r");
    person.sees("\nbegun");
    person.types("\x03");
    person.sees(PROMPT);
    person.asks("echo status $?", "\nstatus 130");
    person.types("\x04");
    let (status, end) = person.goes();
    assert_eq!(status.code(), Some(0), "{end}");
    // A loaded machine's answer may be late, and its request be sent again.
    assert!(end.contains(" ConnectRequest") && end.contains("client 0"), "{end}");

    assert!(text("shell-person", "wire.pcapng").contains("rdma-ping-0"), "the data is in the capture");
    assert!(text("shell-person", "client.log").contains("ping data: rdma-ping-0"));
    assert!(text("shell-person", "server.log").contains("server ping data"));
}

/// The others that end a lab are sent in faults.rs.
#[test]
#[ignore = "takes long: make test-long"]
fn signals_give_the_terminal_back_and_keep_the_record() {
    for signal in [Signal::HUP, Signal::QUIT] {
        let mut person = Person::sits_down(&["--server=true", "--name=shell-signal"]);
        person.sees(PROMPT);
        person.types("echo bef''ore; sleep 600\r");
        // Only a whole line is recorded.
        person.sees("\nbefore\r\n");
        assert!(person.is_raw());
        kill_process(Pid::from_child(&person.lab), signal).unwrap();
        let (status, end) = person.goes();
        assert_eq!(status.code(), Some(130), "{signal:?}: {end}");
        assert!(end.contains("lab: interrupted"), "{signal:?}: {end}");
        assert!(text("shell-signal", "client.log").lines().any(|line| line == "before"));
    }
}

#[test]
#[ignore = "takes long: make test-long"]
fn a_machine_that_dies_gives_the_terminal_back() {
    for index in 0..2 {
        let mut person = Person::sits_down(&["--server=true"]);
        person.sees(PROMPT);
        let machines = machines(&person.lab);
        assert_eq!(machines.len(), 2);
        assert!(person.is_raw());
        kill_process(machines[index], Signal::KILL).unwrap();
        let (status, end) = person.goes();
        assert_eq!(status.code(), Some(3), "{end}");
        assert!(end.contains("machine ended by itself"), "{end}");
    }
}

#[test]
#[ignore = "takes long: make test-long"]
fn a_shell_that_hangs_can_be_left() {
    let mut person = Person::sits_down(&["--server=true"]);
    person.sees(PROMPT);
    person.types("stty -isig; sleep 600\r");
    person.sees("sleep 600");
    person.types("\x03\x04\x1d");
    let (status, end) = person.goes();
    assert_eq!(status.code(), Some(1), "{end}");
    assert!(end.contains("cut off with Ctrl-]"), "{end}");
}

#[test]
fn without_a_terminal_there_is_no_shell() {
    let output = lab().arg("shell").stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(complaint.contains("a shell needs a terminal"), "{complaint}");
}

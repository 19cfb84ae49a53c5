//! What the tests share that run programs on the device: running them. What to ask about a run is in tools/testkit/src/ran.rs.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
pub use testkit::ran::ruled::Ruled;
pub use testkit::ran::{example, CLIENT, SERVER};

pub const DEVICE: &str = env!("CARGO_BIN_EXE_device");

pub fn target() -> PathBuf {
    Path::new(DEVICE).ancestors().nth(2).unwrap().to_owned()
}

/// A run that has ended; `outcome` is what the runner printed.
pub type Check = testkit::ran::Check<String>;

/// So many runs go side by side: most of them wait for something most of their time.
const SIDE_BY_SIDE: usize = 16;

/// Programs to be run on devices of their own, and the seconds that they have.
#[derive(Clone)]
pub struct Run(Vec<String>, u32);

/// Enough on a machine under load, but for what takes long by itself.
const DEADLINE: u32 = 120;

impl Run {
    /// Both sides of a lesson. Those of lesson 08 meet on a TCP port of this machine, which may run other tests: on a free one.
    pub fn lesson(number: &str, server: &str, client: &str) -> Run {
        let port = if number == "08" { format!("-p {} ", free_port()) } else { String::new() };
        let arguments = [format!("--server-args={port}{server}"), format!("--client-args={port}{client}")];
        Run([&["run".to_owned(), format!("lesson-{number}")], &arguments[..]].concat(), DEADLINE)
    }

    /// Any two programs, each a line for the shell; $SERVER is the server's address.
    pub fn programs(server: &str, client: &str) -> Run {
        Run(vec!["exec".into(), format!("--server={}", line(server)), format!("--client={}", line(client))], DEADLINE)
    }

    /// One more node with its program.
    pub fn node(mut self, name: &str, command: &str) -> Run {
        self.0.push(format!("--node={name}={}", line(command)));
        self
    }

    /// A command of a page, `target/debug/device exec …`, as it is there.
    pub fn typed(command: &str) -> Run {
        Run(shlex::split(command).unwrap().split_off(1), DEADLINE)
    }

    /// So many clients, all at once.
    pub fn clients(mut self, count: usize) -> Run {
        self.0.push(format!("--clients={count}"));
        self
    }

    /// What takes long by itself has this many seconds.
    pub fn deadline(mut self, seconds: u32) -> Run {
        self.1 = seconds;
        self
    }

    /// The addresses of the nodes, the server's first.
    pub fn addresses(mut self, addresses: &[String]) -> Run {
        self.0.extend(addresses.iter().map(|address| format!("--address={address}")));
        self
    }

    /// Acts on packets.
    pub fn wire(mut self, rules: &str) -> Run {
        self.0.push(format!("--wire={rules}"));
        self
    }

    /// With one more option.
    pub fn with(mut self, option: &str) -> Run {
        self.0.push(option.to_owned());
        self
    }

    /// The devices tell their decisions.
    pub fn log(mut self) -> Run {
        self.0.push("--log".into());
        self
    }

    /// Runs them to their end.
    pub fn check(self) -> Check {
        static COUNT: AtomicUsize = AtomicUsize::new(1);
        let name = format!("test-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let output = Command::new(DEVICE)
            .args(&self.0)
            .arg(format!("--name={name}"))
            .arg(format!("--deadline={}", self.1))
            .env("RUST_LOG", "info")
            .output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(matches!(output.status.code(), Some(0 | 1)), "{:?}: {said}", self.0);
        Check::read(&target().join("device/runs").join(name).join("wire.pcapng"), said)
    }
}

fn line(command: &str) -> String {
    format!("sh -c {}", shlex::try_quote(command).unwrap())
}

/// A TCP port that nobody has at this moment.
pub fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// Runs both sides of a lesson.
pub fn lesson(number: &str, server: &str, client: &str) -> Check {
    Run::lesson(number, server, client).check()
}

/// Runs any two programs.
pub fn programs(server: &str, client: &str) -> Check {
    Run::programs(server, client).check()
}

/// Looks at all cases, some of them at a time.
pub fn each<C: Sync>(cases: &[C], look: impl Fn(&C) + Sync) {
    testkit::each::each(SIDE_BY_SIDE, cases, look);
}

//! A program is killed at any of its steps: with it goes its device. The program at the other end fails in time and says why,
//! and does not hang.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// More than any of the lessons' deadlines.
const PATIENCE: Duration = Duration::from_secs(40);

fn start(arguments: &[&str]) -> Child {
    let device = Path::new(env!("CARGO_BIN_EXE_device"));
    let library = Command::new(device).arg("library").output().unwrap();
    let mut lesson = Command::new(device.with_file_name("lesson-06"));
    lesson.args(arguments).env("LD_LIBRARY_PATH", String::from_utf8(library.stdout).unwrap().trim());
    lesson.env("NIC_ADDRESS", if arguments[0] == "server" { "127.0.0.101" } else { "127.0.0.102" });
    lesson.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Runs lesson 06, kills the client when it has logged so many lines, and gives its number of lines and the server's status.
fn kill_client_at(line: usize) -> (usize, Option<i32>, String) {
    let mut server = start(&["server"]);
    // The program logs on standard error, but for what it tells a person.
    let mut log = BufReader::new(server.stderr.take().unwrap()).lines().map_while(Result::ok);
    log.find(|line| line.contains("rdma_get_cm_event")).unwrap();
    let rest = std::thread::spawn(move || log.collect::<Vec<_>>().join("\n"));
    let mut client = start(&["client", "-a", "127.0.0.101"]);
    let lines = BufReader::new(client.stderr.take().unwrap()).lines().map_while(Result::ok);
    let count = lines.take(line).count();
    client.kill().unwrap();
    client.wait().unwrap();
    let since = Instant::now();
    while server.try_wait().unwrap().is_none() {
        if since.elapsed() > PATIENCE {
            server.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let status = server.wait().unwrap().code();
    (count, status, rest.join().unwrap())
}

#[test]
#[ignore = "some minutes, for the server waits in vain each time: cargo test -p device --test gone -- --ignored --nocapture"]
fn a_peer_that_is_killed_at_any_step_is_missed_in_time() {
    for line in (40..).step_by(8) {
        let (count, status, log) = kill_client_at(line);
        let reason = log.lines().rfind(|line| line.contains("ERR ")).unwrap_or("no error").to_owned();
        println!("killed at line {count}: the server's status is {status:?}: {reason}");
        assert!(status.is_some() || !log.contains("CM event: "), "the server hangs:\n{log}");
        assert!(status == Some(0) || reason != "no error", "{log}");
        if count < line {
            return; // It had ended by itself.
        }
    }
}

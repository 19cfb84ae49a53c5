//! A peer is gone: from one packet on nothing of it comes, as when its machine loses its power; and a program is killed at any
//! of its steps, for with it goes its device. Whoever is left fails in time and says what it was waiting for.

use super::support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{each, Run, CLIENT, SERVER};

/// More than any of the lessons' deadlines.
const PATIENCE: Duration = Duration::from_secs(40);

/// Of lesson 06 and one of its sides, killed: how many lines it had logged, and how the other one ended, with its log.
struct Killed {
    lines: usize,
    status: Option<i32>,
    log: String,
}

type Log = Box<dyn Iterator<Item = String> + Send>;

fn start(node: &str, address: &str, arguments: &[&str]) -> (Child, Log) {
    let device = Path::new(env!("CARGO_BIN_EXE_device"));
    let library = Command::new(device).arg("library").output().unwrap();
    let mut lesson = Command::new(device.with_file_name("lesson-06"));
    lesson.arg(node).args(["--timeout", "5"]).args(arguments).env("NIC_ADDRESS", address);
    lesson.env("LD_LIBRARY_PATH", String::from_utf8(library.stdout).unwrap().trim());
    let mut child = lesson.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let log = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    (child, Box::new(log))
}

/// Kills one side when it has logged so many lines since the server listens.
fn kill_at(victim: &str, line: usize) -> Killed {
    let address =
        |role: usize| format!("127.{}.{}.{}", role + usize::from(victim == SERVER) * 2, line / 256, line % 256);
    let (server, mut server_log) = start(SERVER, &address(1), &[]);
    server_log.find(|line| line.contains("rdma_get_cm_event")).unwrap();
    let (client, client_log) = start(CLIENT, &address(2), &["-a", &address(1)]);
    let mut sides = [(server, server_log), (client, client_log)];
    if victim == CLIENT {
        sides.reverse();
    }
    let [(mut killed, its_log), (mut left, log)] = sides;
    let log = std::thread::spawn(move || log.collect::<Vec<_>>().join("\n"));
    let lines = its_log.take(line).count();
    killed.kill().unwrap();
    killed.wait().unwrap();
    let since = Instant::now();
    while left.try_wait().unwrap().is_none() {
        if since.elapsed() > PATIENCE {
            left.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Killed { lines, status: left.wait().unwrap().code(), log: log.join().unwrap() }
}

#[test]
#[ignore = "takes long: make test-long"]
fn a_peer_that_is_killed_at_any_step_is_missed_in_time() {
    for victim in [SERVER, CLIENT] {
        // One that nobody kills logs so many.
        let all = kill_at(victim, 10_000).lines;
        each(&(1..=all).collect::<Vec<_>>(), |line| {
            let Killed { lines, status, log } = kill_at(victim, *line);
            let reason = log.lines().rfind(|line| line.contains("ERR ")).unwrap_or("no error");
            println!("{victim} killed at line {lines} of {all}: the other's status is {status:?}: {reason}");
            assert!(status.is_some(), "{victim} killed at line {lines}: the other one hangs:\n{log}");
            assert!(status == Some(0) || reason != "no error", "{log}");
        });
    }
}

const KNOCK: &str = "waited 5 s for a client's connect request";
const ESTABLISHED: &str = "waited 5 s for RDMA_CM_EVENT_ESTABLISHED";
const DISCONNECTED: &str = "waited 5 s for RDMA_CM_EVENT_DISCONNECTED";
const RECV: &str = "waited 5 s for the completion of work request 1 (a RECV with the peer's metadata)";
/// The device's own verdict on a request that nobody answers: after 7 times 0.54 s, and on a busy machine some more.
const RETRIES: &str = "completed with IBV_WC_RETRY_EXC_ERR";
const STATE: &str = "waited 5 s for a completion in the state SS_";

/// A lesson; the packet with which the cable breaks; and what the server and the client say of it: one of these, or nothing if
/// they have heard all that they wait for. In 06 and 07 both send, and each may wait for the other or find it out by itself.
type Case = (&'static str, &'static str, &'static [&'static str], &'static [&'static str]);

const CASES: [Case; 16] = [
    ("02", "1st REQ", &[KNOCK], &[ESTABLISHED]),
    ("02", "1st REP", &[ESTABLISHED], &[ESTABLISHED]),
    ("02", "1st RTU", &[ESTABLISHED], &[DISCONNECTED]),
    ("02", "1st DREQ", &[DISCONNECTED], &[DISCONNECTED]),
    ("02", "1st DREP", &[], &[DISCONNECTED]),
    ("03", "1st \"RC Send Only\" from client", &[RECV, RETRIES], &[RETRIES]),
    ("03", "1st \"RC Send Only\" from server", &[RETRIES], &[RECV, RETRIES]),
    ("04", "1st \"RC RDMA Write Only\"", &[DISCONNECTED], &[RETRIES]),
    ("04", "2nd \"RC Acknowledge\" from server", &[DISCONNECTED], &[RETRIES]),
    ("05", "1st \"RC RDMA Read Request\"", &[DISCONNECTED], &[RETRIES]),
    ("05", "1st \"RC RDMA Read Response Only\"", &[DISCONNECTED], &[RETRIES]),
    ("06", "1st \"RC Send Only\" from client", &[STATE, RETRIES], &[RETRIES]),
    ("06", "1st \"RC RDMA Write Only\" from server", &[RETRIES], &[STATE, RETRIES]),
    ("06", "2nd \"RC Send Only\" from server", &[RETRIES], &[STATE, RETRIES]),
    ("07", "1st \"RC RDMA Write Only\" from client", &[STATE, RETRIES], &[RETRIES]),
    ("07", "1st DREQ", &[DISCONNECTED], &[DISCONNECTED]),
];

#[test]
fn a_peer_that_falls_silent_is_missed_in_words() {
    each(&CASES, |(lesson, packet, server, client)| {
        let limit = |says: &[&str]| if says == [RETRIES] { "--timeout 30" } else { "--timeout 5" };
        let check = Run::lesson(lesson, limit(server), limit(client)).wire(&format!("cut {packet}")).check();
        for (node, says) in [(SERVER, server), (CLIENT, client)] {
            let what = format!("lesson {lesson}, cut {packet}: {}", check.all());
            assert_eq!(check.node(node).exit, Some(i32::from(!says.is_empty())), "{node}: {what}");
            if !says.is_empty() {
                let error = check.line(node, "] ERR  ");
                assert!(says.iter().any(|text| error.contains(text)), "{node}, none of {says:?}: {what}");
                check.logs(node, "the stages so far: main → ");
            }
        }
    });
}

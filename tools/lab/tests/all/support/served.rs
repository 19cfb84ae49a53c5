//! A server that serves one client after the other, and what it holds before each of them, counted while it runs.

use super::{Check, Run, SERVER};

/// How much memory a server may hold more at the end than when it has warmed up, in KiB. The allocator rounds up.
const SLACK: u64 = 256;

/// Before each client the server is counted. A gate is a word over TCP, with an answer: at the first, the client before has
/// ended; the second lets the next one go. The answer comes after the word is read, as the asking nc ends with it, its word
/// sent or not. Whoever misses the answer asks again, and an old word is answered, too. A server without an end is killed
/// after the last one.
const SCRIPT: &str = r#"SERVE >/run/served 2>&1 & pid=$!
printf '#!/bin/sh\nread word; echo "$word" >/run/word; echo ok\n' >/run/answer; chmod +x /run/answer
gate() { until nc -l -p 9000 -e /run/answer; [ "$(cat /run/word)" = "$1" ]; do :; done; }
waits() { RESTS; }
held() {
    fds=$(ls /proc/$pid/fd | wc -l)
    rss=$(sed -n 's/VmRSS:[^0-9]*\([0-9]*\).*/\1/p' /proc/$pid/status)
    echo "held $rss KiB, $fds files, $(/usr/bin/rdma resource show | head -n 1)"
}
client=0
while [ $client -lt COUNT ]; do
    client=$((client + 1))
    gate "ended $client"
    # Twice, as a client that was killed may be on its way in.
    until waits && usleep 100000 && waits; do
        [ -d /proc/$pid/fd ] || { cat /run/served; wait $pid; exit; }
        usleep 5000
    done
    held
    gate "go $client"
done
case 'SERVE' in *'-n 0') gate last; until waits; do usleep 5000; done; held; kill $pid ;; esac
wait $pid; status=$?
cat /run/served; exit $status"#;

/// The client's side of it.
const GATE: &str = r#"gate() { until echo "$1" | nc 10.47.91.1 9000 2>&1 | grep -qx ok; do usleep 20000; done; }
next() { gate "ended $1"; gate "go $1"; }
"#;

/// Succeeds when a server of one client after the other has none.
pub const WAITS: &str = "tail -n 1 /run/served | grep -q 'waiting for CONNECT_REQUEST'";

/// Runs a server, and these clients against it, one after the other. The command `rests` succeeds when the server has no client.
pub fn run(server: &str, rests: &str, clients: &[&str]) -> Run {
    let endless = server.ends_with("-n 0");
    let script = SCRIPT.replace("RESTS", rests).replace("COUNT", &clients.len().to_string());
    let server = script.replace("SERVE", server);
    // A command line has its limits: what a thousand clients do is there once.
    let mut manners: Vec<&str> = Vec::new();
    let mut calls = String::new();
    for (client, number) in clients.iter().zip(1..) {
        let manner = manners.iter().position(|known| known == client).unwrap_or_else(|| {
            manners.push(client);
            manners.len() - 1
        });
        calls += &format!("next {number}; manner_{manner}\n");
    }
    // It is no program that the lab finds by its name.
    let manners = manners.iter().map(|manner| manner.replace("odd_peer", &super::example("odd_peer")));
    let manners: String = manners.enumerate().map(|(at, manner)| format!("manner_{at}() {{ {manner}; }}\n")).collect();
    let last = if endless { "gate last\n" } else { "" };
    Run::programs().server(&server).client(&format!("{GATE}{manners}{calls}{last}true"))
}

/// Before each client the server was counted. From the second one on (the first one loads libraries) nothing but memory may change,
/// and memory must not grow.
pub fn assert_nothing_grows(check: &Check, clients: usize) {
    let held: Vec<&str> = check.node(SERVER).log.iter().filter_map(|line| line.strip_prefix("held ")).collect();
    assert_eq!(held.len(), clients, "one sample before each client: {held:?}");
    let parts = held.iter().map(|held| held.split_once(" KiB, ").unwrap());
    let (memory, others): (Vec<u64>, Vec<&str>) =
        parts.map(|(rss, others)| (rss.parse::<u64>().unwrap(), others)).unzip();
    let listens = others[1].contains("cm_id") && !others[1].contains("cm_id 0");
    assert!(listens && others[1..].iter().all(|later| *later == others[1]), "{held:?}");
    assert!(memory[clients - 1] <= memory[clients / 3] + SLACK, "memory grows: {held:?}");
    println!("the server held {} at first, and {} at last", held[1], held[clients - 1]);
}

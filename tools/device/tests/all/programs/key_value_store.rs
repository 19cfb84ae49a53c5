//! Lesson 12: clients come, go and are killed, the server is killed and comes back; no PUT that was acknowledged is lost, and no
//! GET returns what nobody has PUT: the histories of all clients are checked.

use super::history::{check_all, parse};
use super::support::{example, programs, target, CLIENT, DEVICE, SERVER};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder for file and histories, gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lesson-12-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// How many operations the histories in a folder have; they must be linearizable.
fn assert_linearizable(folder: &Path) -> usize {
    let mut histories = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("history") {
            parse(&std::fs::read_to_string(path).unwrap(), &mut histories).unwrap();
        }
    }
    check_all(&histories).unwrap()
}

/// A client of the load generator, which is an example of lesson 12.
fn load(operations: usize) -> String {
    format!("{} client -a $SERVER --timeout 60 --operations {operations}", example("store_load"))
}

/// So many clients with this many operations each. Each begins again when it fails, and until there were deaths enough.
fn clients(count: usize, operations: usize, folder: &str) -> String {
    let load = load(operations);
    format!(
        "for n in $(seq {count}); do until {load} --puts 20 \
         --history {folder}/history-$n >>{folder}/said 2>&1 && [ -e {folder}/enough ]; do sleep 0.2; done & \
         all=\"$all $!\"; done; "
    )
}

/// Reads all keys at the end, again if the server dies meanwhile, and tells the server that all are through.
fn at_last(folder: &str) -> String {
    let load = load(1500);
    format!(
        "wait $all; until {load} --puts 0 --skew even --history {folder}/history-last >>{folder}/said 2>&1; do sleep 0.2; done; \
         touch {folder}/through"
    )
}

/// Sleeps a random number of milliseconds.
fn moment(longest: u32) -> String {
    format!("sleep $(shuf -i 1000-{longest} -n 1 | sed 's/...$/.&/')")
}

/// Runs both on the device. There are too many packets to look at.
fn run(folder: &Folder, server: &str, client: &str, seconds: u32) -> usize {
    let name = format!("test-store-{}", folder.0.file_name().unwrap().to_string_lossy());
    let mut command = Command::new(DEVICE);
    command.args(["exec", "--quiet", &format!("--name={name}"), &format!("--deadline={seconds}")]);
    let line = |text: &str| format!("sh -c {}", shlex::try_quote(text).unwrap());
    command.arg(format!("--server={}", line(server))).arg(format!("--client={}", line(client))).env("RUST_LOG", "off");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&[output.stdout, output.stderr].concat()));
    let _ = std::fs::remove_dir_all(target().join("device/runs").join(name));
    assert!(folder.0.join("through").exists());
    assert_linearizable(&folder.0)
}

/// A server that is killed so often, and comes back; and is killed at the end. How many operations there were.
fn server_dies(name: &str, count: usize, operations: usize, kills: usize, longest: u32, seconds: u32) -> usize {
    let folder = Folder::new(name);
    let at = folder.path();
    let server = format!("lesson-12 server -n 0 --file {at}/store >>{at}/server 2>&1 & pid=$!");
    let kill = "kill -9 $pid; wait $pid 2>/dev/null";
    let mortal = format!(
        "for n in $(seq {kills}); do {server}; {}; {kill}; done; touch {at}/enough; \
         {server}; until [ -e {at}/through ]; do sleep 0.1; done; {kill}; true",
        moment(longest)
    );
    run(&folder, &mortal, &(clients(count, operations, at) + &at_last(at)), seconds)
}

/// A client that is killed so often, in the midst of its load. How many operations there were, and the descriptors and kilobytes
/// that the server held before the first death, and when all were through.
fn client_dies(
    name: &str,
    count: usize,
    operations: usize,
    kills: usize,
    longest: u32,
    seconds: u32,
) -> (usize, Vec<[u64; 2]>) {
    let folder = Folder::new(name);
    let at = folder.path();
    let deaths = format!(
        "until [ -s {at}/history-1 ]; do sleep 0.1; done; touch {at}/look; for n in $(seq {kills}); do \
         {} --puts 50 --history {at}/history-victim >/dev/null 2>&1 & victim=$!; {}; \
         kill -9 $victim; wait $victim 2>/dev/null; done; touch {at}/enough; ",
        load(10_000_000),
        moment(longest)
    );
    let look = format!("echo $(ls /proc/$pid/fd | wc -l) $(sed -n 's/VmRSS: *//p' /proc/$pid/status) >>{at}/held");
    let server = format!(
        "lesson-12 server -n 0 --file {at}/store >>{at}/server 2>&1 & pid=$!; until [ -e {at}/look ]; do sleep 0.1; done; \
         sleep 1; {look}; until [ -e {at}/through ]; do sleep 0.1; done; sleep 1; {look}; kill -9 $pid; true"
    );
    let done = run(&folder, &server, &(clients(count, operations, at) + &deaths + &at_last(at)), seconds);
    let held = std::fs::read_to_string(folder.0.join("held")).unwrap();
    let numbers = |line: &str| {
        let mut words = line.split_whitespace().map(|word| word.parse().unwrap_or(0));
        std::array::from_fn(|_| words.next().unwrap_or(0))
    };
    (done, held.lines().map(numbers).collect())
}

#[test]
fn a_killed_server_comes_back_with_all_that_it_has_acknowledged() {
    assert!(server_dies("server", 3, 300, 2, 2500, 240) > 900);
}

#[test]
fn a_killed_client_takes_nothing_with_it() {
    let (operations, held) = client_dies("client", 3, 400, 2, 1500, 240);
    assert!(operations > 1200 && held.len() == 2, "{operations} {held:?}");
}

#[test]
#[ignore = "takes long: make test-long"]
fn eight_clients_and_a_server_that_dies_ten_times() {
    let operations = server_dies("server-long", 8, 100_000, 10, 20_000, 5000);
    println!("{operations} operations are linearizable");
    assert!(operations > 800_000);
}

#[test]
#[ignore = "takes long: make test-long"]
fn eight_clients_of_which_one_dies_ten_times() {
    let (operations, held) = client_dies("client-long", 7, 100_000, 10, 20_000, 5000);
    println!("{operations} operations are linearizable; the server's descriptors and kilobytes: {held:?}");
    assert!(operations > 700_000);
    // The clients that were there at the first look have gone; what grows with them was there then.
    assert!(held[1][0] <= held[0][0] && held[1][1] <= held[0][1] + 512, "{held:?}");
}

#[test]
fn a_torn_copy_is_read_again() {
    let client = |what: &str| format!("RUST_LOG=info lesson-12 client -a $SERVER --do '{what}'");
    let (old, new) = ("old".repeat(20), "new".repeat(20));
    // The reader is there before the writer: the server takes nobody in while it writes.
    let reader = format!("put k {old}, get k{}", ", wait 500, get k".repeat(10));
    let both = format!("{} & {}; wait $!", client(&reader), client(&format!("wait 2500, put k {new}")));
    let check = programs("RUST_LOG=off lesson-12 server -n 2 --slowly 1500", &both).exits(0, 0);
    check.logs(CLIENT, "the copy of k is torn: READ again");
    check.logs(CLIENT, &format!("get k: {new}, version 2"));
}

#[test]
fn a_record_that_has_moved_is_looked_for_anew() {
    let long = "x".repeat(200);
    let client = |what: &str| format!("RUST_LOG=info lesson-12 client -a $SERVER --do '{what}'");
    let both = format!(
        "{} & {}; wait $!",
        client("put k short, get k, put go 1, await moved, get k, get k"),
        client(&format!("await go, put k {long}, put moved 1"))
    );
    let check = programs("RUST_LOG=off lesson-12 server -n 2", &both).exits(0, 0);
    check.logs_in_order(CLIENT, &["get k: short, version 1, 2 READs", "not there any more", "version 3, 3 READs"]);
    check.logs(CLIENT, "version 3, 1 READs");
}

#[test]
fn a_lock_of_a_dead_client_is_free_again() {
    let client = |what: &str| format!("RUST_LOG=off lesson-12 client -a $SERVER --do '{what}'");
    let all = format!(
        "{} & holder=$!; {}; {{ sleep 1; kill -9 $holder; }} & {}",
        client("lock, put held 1, wait 60000"),
        client("await held"),
        client("lock, unlock")
    );
    let check = programs("RUST_LOG=off lesson-12 server -n 3", &all).exits(0, 0);
    check.logs(SERVER, "has gone with the lock: it is free again");
    check.logs_in_order(CLIENT, &["has the lock", "has the lock", "gives the lock back"]);
}

#[test]
fn what_cannot_be_is_refused() {
    for (what, wanted) in [("unlock", "the lock is not ours"), ("put ninebytes x", "is no key"), ("fly", "is unknown")]
    {
        let client = format!("lesson-12 client -a $SERVER --do '{what}'");
        programs("lesson-12 server", &client).exits(0, 1).logs(CLIENT, wanted);
    }
    let long = format!("lesson-12 client -a $SERVER --do 'put k {}'", "x".repeat(1001));
    programs("lesson-12 server", &long).exits(0, 1).logs(CLIENT, "the value is too long");
}

//! A crash, a SIGTERM and a kill -9 of every program of a run: what is recorded and explained, and that nothing is left.

use crate::support::{lab, machines, recorded, CLIENT, SERVER};
use rustix::process::{kill_process, Pid, Signal};
use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use testkit::falls::{each_falls, explained, processes, waits_until};

/// Whom a signal ends.
#[derive(Clone, Copy, Debug)]
enum Victim {
    /// The program in the machine of this node.
    Program(&'static str),
    Lab,
    /// The QEMU of this machine.
    Machine(&'static str),
}

/// Who is ended, by what, and what `wire explain` says about it. The lab crashes with SIGABRT, because Rust's own handler returns
/// from a SIGSEGV that somebody has sent, expecting the faulty instruction to raise it again at once.
const FALLS: [(Victim, Signal, &str); 15] = [
    (Victim::Program(SERVER), Signal::SEGV, "server was killed by signal 11 (SIGSEGV)"),
    (Victim::Program(SERVER), Signal::TERM, "server was killed by signal 15 (SIGTERM)"),
    (Victim::Program(SERVER), Signal::KILL, "server was killed by signal 9 (SIGKILL)"),
    (Victim::Program(CLIENT), Signal::SEGV, "client was killed by signal 11 (SIGSEGV)"),
    (Victim::Program(CLIENT), Signal::TERM, "client was killed by signal 15 (SIGTERM)"),
    (Victim::Program(CLIENT), Signal::KILL, "client was killed by signal 9 (SIGKILL)"),
    (Victim::Lab, Signal::ABORT, "the file ends without an end"),
    (Victim::Lab, Signal::TERM, "SIGTERM ended the run"),
    (Victim::Lab, Signal::KILL, "the file ends without an end"),
    (Victim::Machine(SERVER), Signal::SEGV, "QEMU ended (signal: 11 (SIGSEGV))"),
    (Victim::Machine(SERVER), Signal::TERM, "terminating on signal 15"),
    (Victim::Machine(SERVER), Signal::KILL, "QEMU ended (signal: 9 (SIGKILL))"),
    (Victim::Machine(CLIENT), Signal::SEGV, "QEMU ended (signal: 11 (SIGSEGV))"),
    (Victim::Machine(CLIENT), Signal::TERM, "terminating on signal 15"),
    (Victim::Machine(CLIENT), Signal::KILL, "QEMU ended (signal: 9 (SIGKILL))"),
];

/// A run that would go on for a long time, with a folder of its own for temporary files. A crash leaves no core dump.
fn runs(name: &str, temporary: &str, victim: Victim, signal: Signal, moment: u64) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -c 0; exec \"$0\" \"$@\""]).arg(lab().get_program()).env("TMPDIR", temporary);
    command.args(["exec", "--deadline=60", "--name", name]);
    command.args(["--server=rping -s -C 2000000", "--client=rping -c -a server -C 2000000"]);
    if let Victim::Program(node) = victim {
        let signal = signal.as_raw();
        command.arg(format!(
            "--fault=on {node} usleep {moment}000; kill -{signal} $(pidof rping) when client sends ConnectRequest"
        ));
    }
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// The victim falls this many milliseconds after the client has begun to connect. A machine falls this long after the client's
/// program has started. For the lab no moment is too early, so its time counts from when both machines run.
fn falls(&(victim, signal, told): &(Victim, Signal, &str), moment: u64) {
    let name = "falls";
    let (file, temporary) = (recorded(name, "wire.pcapng"), tempfile::tempdir().unwrap());
    let _ = fs::remove_dir_all(file.parent().unwrap());
    let mark = temporary.path().to_str().unwrap();
    let mut run = runs(name, mark, victim, signal, moment);
    waits_until("two machines", || machines(&run).len() == 2);
    let (lab, machines) = (Pid::from_child(&run), machines(&run));
    let pid = match victim {
        Victim::Program(_) => None,
        Victim::Lab => Some(lab),
        Victim::Machine(node) => {
            let client = b"MESSAGE=rping -c";
            let has_client = |bytes: &[u8]| bytes.windows(client.len()).any(|part| part == client);
            waits_until("the client starts", || fs::read(&file).is_ok_and(|bytes| has_client(&bytes)));
            Some(machines[usize::from(node == CLIENT)])
        }
    };
    if let Some(pid) = pid {
        sleep(Duration::from_millis(moment));
        kill_process(pid, signal).unwrap();
    }
    run.wait().unwrap();
    waits_until("no process is left", || processes("environ", |text| text.contains(mark)).is_empty());
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0, "no file is left");
    let said = explained(&file);
    // A lab that is killed may have recorded nothing yet.
    let is_early = matches!(victim, Victim::Lab) && signal != Signal::TERM && said.contains("nothing was recorded");
    assert!(is_early || said.contains(told), "{victim:?}, {signal:?} after {moment} ms, not {told:?}: {said}");
    if let Victim::Machine(node) = victim {
        assert!(said.contains(&format!("the {node}'s machine ended by itself")), "{said}");
    }
}

/// The lab needs a quarter of a second until the programs start, on an idle host.
const MOMENTS: u64 = 800;

#[test]
fn whoever_falls_the_record_is_whole_and_says_so() {
    each_falls(&FALLS, 1, MOMENTS, |_, fall, moment| falls(fall, moment));
}

#[test]
#[ignore = "takes long: make test-long"]
fn whoever_falls_at_twenty_moments_the_record_is_whole() {
    each_falls(&FALLS, 20, MOMENTS, |_, fall, moment| falls(fall, moment));
}

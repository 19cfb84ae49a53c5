//! What the lab does when the host is the problem: interrupted, killed, without QEMU, without space, with a broken state.

use crate::support::{lab, machines, program, recorded, shared, Run, CLIENT, SERVER};
use rustix::process::{kill_process, prlimit, Pid, Resource, Rlimit, Signal};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use testkit::falls::explained;

/// Says `running` (the command itself is shown, too, when it starts) and goes on.
const RUNNING: &str = "printf 'run%s\\n' ning; sleep 600";

/// A folder that looks like cargo's to the lab in it, which has a kernel, and builds states of its own.
fn own() -> tempfile::TempDir {
    // A run of the shared lab first: it finds or unpacks the kernel.
    Run::programs().client("true").check();
    let own = tempfile::tempdir().unwrap();
    ["debug", "lab"].iter().for_each(|name| fs::create_dir(own.path().join(name)).unwrap());
    // `cp` writes it, and not this process, for the same reason as in `support::write_script`.
    let copy = |name: &str| Command::new("cp").arg(shared().join(name)).arg(own.path().join(name)).status();
    assert!(copy("debug/lab").unwrap().success());
    symlink(shared().join("lab/kernel"), own.path().join("lab/kernel")).unwrap();
    // Whether KVM runs may be known already; asking again would take a moment.
    let _ = copy("lab/kvm");
    own
}

/// The lab in such a folder runs `client`.
fn exec(folder: &Path, name: &str, client: &str) -> Command {
    let mut command = Command::new(folder.join("debug/lab"));
    command.args(["exec", "--name", name, "--client", client]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts it, and waits for its machines, or until it prints this.
fn start(mut command: Command, text: Option<&str>) -> (Child, Vec<Pid>) {
    let mut child = command.spawn().unwrap();
    let limit = Instant::now() + Duration::from_secs(60);
    while machines(&child).len() < 2 {
        assert!(Instant::now() < limit, "no machines are started");
        sleep(Duration::from_millis(5));
    }
    if let Some(text) = text {
        let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains(text)), "no line with {text}");
    }
    let machines = machines(&child);
    (child, machines)
}

/// It ends with this status, and nothing of it is left; gives its complaint.
fn ended((lab, machines): (Child, Vec<Pid>), status: Option<i32>) -> String {
    let output = lab.wait_with_output().unwrap();
    let text = error_text(&output);
    assert_eq!(output.status.code(), status, "{text}");
    // One that was killed takes a moment to go.
    let limit = Instant::now() + Duration::from_secs(10);
    let lives = |pid: &Pid| {
        fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).is_ok_and(|command| !command.is_empty())
    };
    while machines.iter().any(lives) {
        assert!(Instant::now() < limit, "a machine is left");
        sleep(Duration::from_millis(20));
    }
    text
}

fn signal(lab: &Child, signal: Signal) {
    kill_process(Pid::from_child(lab), signal).unwrap();
}

fn error_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// For a process that runs, this is a full disk.
fn no_file_grows_beyond(bytes: u64, process: Pid) {
    prlimit(Some(process), Resource::Fsize, Rlimit { current: Some(bytes), maximum: Some(bytes) }).unwrap();
}

/// What Wireshark's sibling reads in a run file: of each line node, program and text.
fn tshark(file: &Path) -> String {
    let fields = ["systemd_journal.hostname", "systemd_journal.syslog_id", "systemd_journal.message"];
    let mut command = Command::new("tshark");
    command.args(["-E", "separator=,", "-Y", "systemd_journal", "-T", "fields", "-r"]).arg(file);
    let output = command.args(fields.iter().flat_map(|field| ["-e", *field])).output().unwrap();
    assert!(output.status.success(), "{}", error_text(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// What can befall a lab that is used for the first time, and later: one after the other, for each boot takes seconds.
#[test]
#[ignore = "takes long: make test-long"]
fn an_own_lab_from_its_first_boot_on() {
    let folder = own();
    let folder = folder.path();
    let states = || -> Vec<PathBuf> {
        let entries = fs::read_dir(folder.join("lab/state")).unwrap().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    };
    let is_interrupted = |text, with| {
        let lab = start(exec(folder, "exec", RUNNING), text);
        signal(&lab.0, with);
        ended(lab, Some(130));
        let is_scratch = |path: &PathBuf| path.to_string_lossy().contains("/.new-");
        assert!(!states().iter().any(is_scratch), "{:?}", states());
    };
    // Already the file for a machine's drive, which is empty but large, is too much.
    let full =
        format!("trap '' XFSZ; ulimit -f $((66 * 2048)); exec {}/debug/lab exec --client true", folder.display());
    let output = Command::new("sh").args(["-c", &full]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", error_text(&output));
    assert!(error_text(&output).contains("cannot create a temporary file"), "{}", error_text(&output));

    is_interrupted(None, Signal::INT);
    // There is room until the states are written: the machines' memory is in files that have their size already.
    let lab = start(exec(folder, "exec", "true"), None);
    lab.1.iter().for_each(|machine| no_file_grows_beyond(64 << 10, *machine));
    ended(lab, Some(3));
    assert!(states().is_empty(), "{:?}", states());

    let run = || exec(folder, "exec", "true").output().unwrap();
    assert!(run().status.success(), "with space again, all is well");
    is_interrupted(None, Signal::TERM);
    is_interrupted(Some("running"), Signal::INT);
    assert_eq!(fs::read_to_string(folder.join("lab/runs/exec/client.log")).unwrap(), "running\n", "what was recorded");

    let [state] = &states()[..] else { panic!("one state") };
    fs::write(state.join("1.state"), b"this is not a machine").unwrap();
    // Of those that other versions left behind, and that a killed lab had begun, two are kept.
    for name in ["0123456789abcdef", "123456789abcdef0", "23456789abcdef01", ".new-killed"] {
        fs::create_dir(folder.join("lab/state").join(name)).unwrap();
    }
    let output = run();
    assert!(output.status.success() && error_text(&output).contains("building them again"), "{}", error_text(&output));
    assert!(states().contains(state) && states().len() == 3, "{:?}", states());
}

#[test]
fn a_killed_lab_takes_its_machines_along() {
    let name = "faults-killed-lab";
    let lab = start(exec(&shared(), name, RUNNING), Some("running"));
    signal(&lab.0, Signal::KILL);
    ended(lab, None);
    let told = tshark(&recorded(name, "wire.pcapng"));
    assert!(told.lines().any(|line| line == "client,printf,running"), "{told}");
    assert!(exec(&shared(), name, "true").output().unwrap().status.success(), "the next run is not disturbed");
}

#[test]
#[ignore = "takes long: make test-long"]
fn a_killed_machine_ends_the_run_with_its_last_words_and_the_record() {
    let name = "faults-killed-machine";
    let last_words = format!("echo '<3>the end is near' >/dev/kmsg; sleep 1; {RUNNING}");
    let lab = start(exec(&shared(), name, &last_words), Some("running"));
    kill_process(lab.1[1], Signal::KILL).unwrap();
    let text = ended(lab, Some(3));
    for wanted in ["the client's machine ended by itself", "signal: 9", "the end is near"] {
        assert!(text.contains(wanted), "no {wanted:?} in {text}");
    }
    let told = tshark(&recorded(name, "wire.pcapng"));
    assert!(told.contains("client,kernel,[") && told.contains(",lab,QEMU ended"), "{told}");
}

#[test]
#[ignore = "takes long: make test-long"]
fn a_disk_that_is_full_in_the_middle_of_a_run_ends_it_and_leaves_whole_blocks() {
    let name = "faults-full-disk";
    // A process that does not ignore this signal ends with the first write that is too long.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(lab().get_program()).args(["exec", "--name", name]);
    command.args(["--server", "sleep 60 | nc -l -p 9000 >/dev/null", "--client"]);
    command.arg("echo ready; sleep 2; dd if=/dev/zero bs=64k count=1000 | nc server 9000");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let lab = start(command, Some(" ready "));
    let limit = 10 << 20;
    no_file_grows_beyond(limit, Pid::from_child(&lab.0));
    let text = ended(lab, Some(3));
    assert!(text.contains("cannot write the results to") && text.contains("is the disk full?"), "{text}");
    let file = recorded(name, "wire.pcapng");
    assert!(fs::metadata(&file).unwrap().len() > limit / 2, "most of it was recorded");
    let told = tshark(&file);
    assert!(told.contains("client,lab,echo ready"), "{told}");
    let said = explained(&file);
    assert!(said.contains("the run itself failed: cannot write the results to"), "{said}");
    assert!(!said.contains("without an end"), "{said}");
}

/// A broken kernel is a failure of what was run on it, and no program's exit status tells.
#[test]
#[ignore = "takes long: make test-long"]
fn a_kernel_that_breaks_is_told_with_its_own_words() {
    let crash = "echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger; sleep 600";
    let check = Run::programs().server("sleep 3; echo alone").client(crash).check();
    let trouble = check.outcome.trouble.clone().unwrap();
    assert!(trouble.contains("kernel of the client is broken") && trouble.contains("Kernel panic"), "{trouble}");
    assert_eq!(check.node(SERVER).exit, Some(0));
    let told = tshark(&check.file);
    assert!(told.contains("server,sleep,alone"), "{told}");
    assert!(told.lines().any(|line| line.starts_with("client,kernel,[") && line.contains("Call Trace")), "{told}");

    // One that goes on is no better.
    let check = Run::programs().client("echo '<1>BUG: one that is only said' >/dev/kmsg; sleep 1").check();
    assert_eq!(check.node(CLIENT).exit, Some(0));
    assert!(check.outcome.trouble.clone().unwrap().contains("BUG: one that is only said"), "{}", check.all());
}

#[test]
#[ignore = "takes long: make test-long"]
fn a_host_without_qemu_is_told_what_to_do() {
    let (folder, tools) = (own(), tempfile::tempdir().unwrap());
    for name in ["busybox", "ip", "tc", "rdma", "date"] {
        symlink(program(name), tools.path().join(name)).unwrap();
    }
    let output = exec(folder.path(), "exec", "true").env("PATH", tools.path()).output().unwrap();
    let text = error_text(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("cannot find the program `qemu-system-") && text.contains("make setup"), "{text}");
}

/// The server would be given half a minute.
#[test]
fn a_server_does_not_wait_for_a_client_that_failed_before_it_sent_anything() {
    let check = Run::programs().server("rping -s -C 1").client("exit 3").check();
    assert_eq!(check.node(CLIENT).exit, Some(3));
    assert!(check.outcome.trouble.unwrap().contains("before it sent anything"));
}

//! What the lab does when the host is the problem: interrupted, killed, without QEMU, without space, with a broken
//! state. Each test runs the real program in a folder of its own, as `FOLDER/debug/lab`, so that its state is its own, too.

use crate::support::{machines, program, Run, CLIENT, SERVER};
use rustix::process::{kill_process, prlimit, Pid, Resource, Rlimit, Signal};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Once;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Says `running` (the command itself is shown, too, when it starts) and goes on.
const RUNNING: &str = "printf 'run%s\\n' ning; sleep 600";

/// A lab to do harm to.
struct Target {
    /// Cargo's folder, or one that looks like it to the lab in it.
    folder: PathBuf,
    lab: PathBuf,
    /// Its processes have this in their environment, and are found by it.
    mark: String,
    /// The folder of its results.
    name: String,
    _own: Option<tempfile::TempDir>,
}

impl Target {
    /// One that has nothing but a kernel: it builds states of its own.
    fn own() -> Self {
        let shared = Self::shared("faults");
        // A run of the shared lab first, once: it finds or downloads the kernel that all share.
        static KERNEL: Once = Once::new();
        KERNEL.call_once(|| assert!(shared.run("true").status.success()));
        let own = tempfile::tempdir().unwrap();
        fs::create_dir_all(own.path().join("debug")).unwrap();
        fs::create_dir_all(own.path().join("lab")).unwrap();
        let lab = own.path().join("debug/lab");
        // `cp` writes it, and not this process, for the same reason as in `support::write_script`.
        assert!(Command::new("cp").arg(&shared.lab).arg(&lab).status().unwrap().success());
        symlink(shared.path("lab/kernel"), own.path().join("lab/kernel")).unwrap();
        // Whether KVM runs is known already; asking again would take a moment.
        let _ = fs::copy(shared.path("lab/kvm"), own.path().join("lab/kvm"));
        let (folder, mark) = (own.path().to_owned(), own.path().display().to_string());
        Self { folder, lab, mark, name: "exec".to_owned(), _own: Some(own) }
    }

    /// The one that all tests share, with its saved machines; its results have a folder of their own.
    fn shared(name: &str) -> Self {
        let lab = PathBuf::from(env!("CARGO_BIN_EXE_lab"));
        let folder = lab.ancestors().nth(2).unwrap().to_owned();
        let mark = format!("{} {name}", std::process::id());
        Self { folder, lab, mark, name: name.to_owned(), _own: None }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// What it has recorded.
    fn result(&self, file: &str) -> PathBuf {
        self.path("lab/runs").join(&self.name).join(file)
    }

    /// A lab that runs `client`.
    fn lab(&self, client: &str) -> Command {
        let mut command = Command::new(&self.lab);
        command.args(["exec", "--name", &self.name, "--client", client]).env("LAB_TEST", &self.mark);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, client: &str) -> Output {
        self.lab(client).output().unwrap()
    }

    /// The processes that carry its mark.
    fn processes(&self) -> usize {
        let mark = format!("LAB_TEST={}\0", self.mark);
        let is_ours =
            |pid: &Path| fs::read(pid.join("environ")).is_ok_and(|text| String::from_utf8_lossy(&text).contains(&mark));
        fs::read_dir("/proc").unwrap().flatten().filter(|entry| is_ours(&entry.path())).count()
    }

    /// Waits until the lab has started both machines.
    fn wait_for_machines(&self) {
        let limit = Instant::now() + Duration::from_secs(60);
        while self.processes() < 3 {
            assert!(Instant::now() < limit, "no machines are started");
            sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the last process to go; a process that was killed takes a moment to.
    fn assert_nothing_left(&self) {
        let limit = Instant::now() + Duration::from_secs(10);
        while self.processes() > 0 {
            assert!(Instant::now() < limit, "{} processes are left", self.processes());
            sleep(Duration::from_millis(20));
        }
    }

    /// Names in a folder that a finished lab must not leave.
    fn leftovers(&self) -> Vec<String> {
        let folders = ["lab/runs", "lab/state"].map(|name| self.path(name));
        let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
        entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with(".new"))
            .collect()
    }
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

fn error_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What can befall a lab that is used for the first time, and later: one after the other, for each boot takes seconds.
#[test]
#[ignore = "takes long: make test-long"]
fn an_own_lab_from_its_first_boot_on() {
    let target = Target::own();
    a_full_disk_is_named(&target);
    is_interrupted(&target, "booting", Signal::INT);
    a_disk_that_fills_up_leaves_no_half_state(&target);
    assert!(target.run("true").status.success(), "with space again, all is well");
    is_interrupted(&target, "restoring", Signal::TERM);
    is_interrupted(&target, "running", Signal::INT);
    assert_eq!(fs::read_to_string(target.result("client.log")).unwrap(), "running\n", "it keeps what it has recorded");
    a_broken_state_is_built_again(&target);
}

/// It leaves nothing running, at any moment.
fn is_interrupted(target: &Target, moment: &str, with: Signal) {
    let mut child = target.lab(RUNNING).spawn().unwrap();
    match moment {
        "running" => wait_for_line(&mut child, "running"),
        _ => target.wait_for_machines(),
    }
    signal(&child, with);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{moment}: {}", error_text(&output));
    target.assert_nothing_left();
    assert_eq!(target.leftovers(), [""; 0], "{moment}");
}

#[test]
fn a_killed_lab_takes_its_machines_along() {
    let target = Target::shared("faults-killed-lab");
    let mut child = target.lab(RUNNING).spawn().unwrap();
    wait_for_line(&mut child, "running");
    assert!(target.processes() >= 3, "the lab and two machines");
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    target.assert_nothing_left();
    let told = tshark(&target.result("wire.pcapng"));
    assert!(told.lines().any(|line| line == "client,printf,running"), "{told}");
    assert!(target.run("true").status.success(), "the next run is not disturbed");
}

#[test]
#[ignore = "takes long: make test-long"]
fn a_killed_machine_ends_the_run_with_its_last_words_and_the_record() {
    let target = Target::shared("faults-killed-machine");
    let mut child =
        target.lab("echo '<3>the end is near' >/dev/kmsg; sleep 1; printf 'run%s\\n' ning; sleep 600").spawn().unwrap();
    wait_for_line(&mut child, "running");
    let client = machines(&child)[1];
    kill_process(client, Signal::KILL).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", error_text(&output));
    for wanted in ["the client's machine ended by itself", "signal: 9", "the end is near"] {
        assert!(error_text(&output).contains(wanted), "no {wanted:?} in {}", error_text(&output));
    }
    let told = tshark(&target.result("wire.pcapng"));
    assert!(told.contains("client,kernel,[") && told.contains(",lab,QEMU ended"), "{told}");
    target.assert_nothing_left();
}

#[test]
#[ignore = "takes long: make test-long"]
fn a_disk_that_is_full_in_the_middle_of_a_run_ends_it_and_leaves_whole_blocks() {
    let target = Target::shared("faults-full-disk");
    let flood = "echo ready; sleep 2; dd if=/dev/zero bs=64k count=1000 | nc server 9000";
    let arguments =
        ["exec", "--name", &target.name, "--server", "sleep 60 | nc -l -p 9000 >/dev/null", "--client", flood];
    // A process that does not ignore this signal ends with the first write that is too long.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(&target.lab).args(arguments);
    command.env("LAB_TEST", &target.mark).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    wait_for_line(&mut child, " ready ");
    let limit = 10 << 20;
    no_file_grows_beyond(limit, Pid::from_child(&child));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", error_text(&output));
    assert!(error_text(&output).contains("cannot write the results to"), "{}", error_text(&output));
    assert!(error_text(&output).contains("is the disk full?"), "{}", error_text(&output));
    let file = target.result("wire.pcapng");
    assert!(fs::metadata(&file).unwrap().len() > limit / 2, "most of it was recorded");
    let told = tshark(&file);
    assert!(told.contains("client,lab,echo ready"), "{told}");
    target.assert_nothing_left();
}

/// For a process that runs, this is a full disk.
fn no_file_grows_beyond(bytes: u64, process: Pid) {
    prlimit(Some(process), Resource::Fsize, Rlimit { current: Some(bytes), maximum: Some(bytes) }).unwrap();
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

/// What Wireshark's sibling reads in a run file: of each line node, program and text.
fn tshark(file: &Path) -> String {
    let fields = ["systemd_journal.hostname", "systemd_journal.syslog_id", "systemd_journal.message"];
    let mut command = Command::new("tshark");
    command.args(["-E", "separator=,", "-Y", "systemd_journal", "-T", "fields", "-r"]).arg(file);
    let output = command.args(fields.iter().flat_map(|field| ["-e", *field])).output().unwrap();
    assert!(output.status.success(), "{}", error_text(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn wait_for_line(child: &mut Child, text: &str) {
    use std::io::{BufRead, BufReader};
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains(text)), "no line with {text}");
}

fn a_broken_state_is_built_again(target: &Target) {
    let states = || -> Vec<PathBuf> {
        let entries = fs::read_dir(target.path("lab/state")).unwrap().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    };
    let [state] = &states()[..] else { panic!("one state") };
    fs::write(state.join("1.state"), b"this is not a machine").unwrap();
    // Of those that other versions left behind, and that a killed lab had begun, two are kept.
    for name in ["0123456789abcdef", "123456789abcdef0", "23456789abcdef01", ".new-killed"] {
        fs::create_dir(target.path("lab/state").join(name)).unwrap();
    }
    let output = target.run("echo fine");
    assert!(output.status.success(), "{}", error_text(&output));
    assert!(error_text(&output).contains("building them again"), "{}", error_text(&output));
    assert!(states().contains(state) && states().len() == 3, "{:?}", states());
    target.assert_nothing_left();
}

#[test]
#[ignore = "takes long: make test-long"]
fn a_host_without_qemu_is_told_what_to_do() {
    let target = Target::own();
    let tools = tempfile::tempdir().unwrap();
    for name in ["busybox", "ip", "tc", "rdma", "date"] {
        symlink(program(name), tools.path().join(name)).unwrap();
    }
    let output = target.lab("true").env("PATH", tools.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let text = error_text(&output);
    assert!(text.contains("cannot find the program `qemu-system-") && text.contains("make setup"), "{text}");
}

/// Already the file for a machine's drive, which is empty but large, is too much.
fn a_full_disk_is_named(target: &Target) {
    let shell = format!("trap '' XFSZ; ulimit -f $((66 * 2048)); exec {} exec --client true", target.lab.display());
    let mut command = Command::new("sh");
    let output = command.args(["-c", &shell]).env("LAB_TEST", &target.mark).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", error_text(&output));
    assert!(error_text(&output).contains("cannot create a temporary file"), "{}", error_text(&output));
}

/// There is room until the states are written: the machines' memory is in files that have their size already.
fn a_disk_that_fills_up_leaves_no_half_state(target: &Target) {
    let child = target.lab("true").spawn().unwrap();
    target.wait_for_machines();
    machines(&child).into_iter().for_each(|machine| no_file_grows_beyond(64 << 10, machine));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", error_text(&output));
    target.assert_nothing_left();
    let states = || fs::read_dir(target.path("lab/state")).unwrap().flatten().filter(|entry| entry.path().is_dir());
    assert_eq!(states().count(), 0);
}

/// The server would be given half a minute.
#[test]
fn a_server_does_not_wait_for_a_client_that_failed_before_it_sent_anything() {
    let check = Run::programs().server("rping -s -C 1").client("exit 3").check();
    assert_eq!(check.node(CLIENT).exit, Some(3));
    assert!(check.outcome.trouble.unwrap().contains("before it sent anything"));
}

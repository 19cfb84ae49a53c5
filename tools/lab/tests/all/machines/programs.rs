//! Programs of this host in the lab: small shell commands, what they bring and say, and what is done to them.

use crate::support::{lab, position, program, said, write_script, Run, CLIENT, SERVER};
use run::file::Event;
use std::fs;
use std::process::{Command, Stdio};

#[test]
fn what_a_program_says_is_told_in_its_order_with_its_stream_and_its_status() {
    let server = "hostname; ulimit -l; for n in 1 2 3; do echo out $n; echo err $n >&2; done; exit 3";
    let client = "date +%s.%N; sed -n 's/MemTotal: *//p' /proc/meminfo; printf 'no newline'";
    let host = || std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    let begun = host();
    let check = Run::programs().server(server).client(client).with("memory", "384").check().exits(3, 0);
    let ended = host();
    // Each stream is in its order; two streams are two ways out of the machine.
    let (errors, lines): (Vec<String>, _) =
        check.node(SERVER).log.iter().cloned().partition(|line| line.starts_with("err"));
    assert_eq!(lines, ["server", "unlimited", "out 1", "out 2", "out 3"]);
    assert_eq!(errors, ["err 1", "err 2", "err 3"]);
    let mut told = Vec::new();
    check.each_event(|event| match event {
        Event::Line(line) if line.error => told.push(line.text.clone()),
        _ => {}
    });
    assert_eq!(told, errors);
    assert_eq!(fs::read_to_string(check.outcome.folder.join("server.err")).unwrap(), errors.join("\n") + "\n");
    // The machines have this host's time, and the memory that is asked for.
    let [time, memory, last] = &check.node(CLIENT).log[..] else { panic!("{}", check.all()) };
    assert_eq!(last, "no newline");
    let guest = time.parse::<f64>().unwrap();
    assert!((begun - 10.0..ended + 10.0).contains(&guest), "guest {guest}, host {begun} to {ended}");
    let kilobytes: u32 = memory.trim_end_matches(" kB").parse().unwrap();
    assert!((256 << 10..384 << 10).contains(&kilobytes), "{kilobytes}");
}

/// Nobody waits for more than two seconds without being told for what, and until when.
#[test]
#[ignore = "takes long: make test-long"]
fn who_waits_reads_for_what_and_until_when() {
    let options = ["exec", "--name=waiting", "--deadline=8", "--server=rping -s", "--client=sleep 4"];
    let output = lab().args(options).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    let told: Vec<&str> = text.lines().filter(|line| line.contains(": waiting for ")).collect();
    let until = |who: &str| format!("lab: waiting for {who} to end (until 8 s, --deadline)");
    assert!(told.contains(&until("the server and the client").as_str()), "{text}");
    assert!(told.contains(&until("the server").as_str()), "{text}");
}

/// A port that sleeps (Linux since 6.5) lets a line out after the packet that its program sends next.
#[test]
fn no_serial_port_falls_asleep() {
    let ports = "cat /sys/bus/serial-base/devices/*/power/control 2>/dev/null; true";
    let check = Run::programs().client(ports).check();
    assert!(check.node(CLIENT).log.iter().all(|line| line == "on"), "{}", check.all());
}

#[test]
#[ignore = "takes long: make test-long"]
fn the_deadline_ends_what_would_run_for_ever() {
    let check = Run::programs().server("sleep 600").client("echo done").with("deadline", "1").check();
    assert!(check.nodes.iter().all(|node| node.name != SERVER || node.exit.is_none()));
    let trouble = check.outcome.trouble.unwrap();
    assert!(trouble.contains("1 s") && trouble.contains("the server"), "{trouble}");
}

pub fn example(name: &str) -> String {
    format!("{}/examples/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn sends_hello(program: &str, bring: &[&str]) {
    let run = Run::programs().server(&format!("{program} server"));
    let run = run.client(&format!("{program} client 10.47.91.1 hello"));
    let check = bring.iter().fold(run, |run, path| run.with("bring", path)).check().exits(0, 0);
    assert_eq!([&check.node(SERVER).log, &check.node(CLIENT).log], [&["received: hello"], &["sent: hello"]]);
    assert_eq!(check.packets_named("RC Send Only"), 1, "{}", check.all());
}

#[test]
fn the_c_program_of_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("message").display().to_string();
    let build = ["-Wall", "-Werror", "-o", &program, &example("message.c"), "-lrdmacm", "-libverbs"];
    assert!(Command::new("cc").args(build).status().unwrap().success());
    sends_hello(&program, &[]);
}

#[test]
#[ignore = "needs python3-pyverbs, the stage `python` of set-up"]
fn the_python_program_of_the_page() {
    let ask = "import os, pyverbs; print(os.path.dirname(os.__file__), *pyverbs.__path__)";
    let output = Command::new("python3").args(["-c", ask]).output().unwrap();
    let folders = String::from_utf8(output.stdout).unwrap();
    sends_hello(&example("message.py"), &folders.split_whitespace().collect::<Vec<_>>());
}

#[test]
fn what_is_brought_is_there_and_what_is_wanted_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("bin")).unwrap();
    write_script(&path("bin/look.sh"), "ibv_devices | grep -o rxe0; cat /data/text; cat data/link; echo $WORD");
    fs::write(path("text"), "some words\n").unwrap();
    std::os::unix::fs::symlink("text", path("link")).unwrap();
    let make = "mkdir -p /tmp/n/deep; seq 100000 >/tmp/n/deep/s; ln -s /etc/passwd /tmp/n/l; hostname >/tmp/both";
    // With its libraries and its interpreter.
    let run = Run::programs().server(make).client(&format!("{make}; cd /; /data/bin/look.sh"));
    let run = run.with("bring", &format!("{}:/data", folder.path().display()));
    let run = run.with("bring", &format!("{}:/usr/bin/ibv_devices", program("ibv_devices")));
    let run = run.with("env", "WORD=a 'quoted' word").with("out", "/tmp/both").with("out", "server:/tmp/none");
    let check = run.with("out", &format!("client:/tmp/n:{}", path("numbers").display())).check();
    assert_eq!(check.node(CLIENT).log, ["rxe0", "some words", "some words", "a 'quoted' word"]);
    assert_eq!(fs::read_to_string(path("numbers/deep/s")).unwrap().lines().count(), 100_000);
    assert!(path("numbers/l").symlink_metadata().is_err(), "links stay behind");
    for node in [SERVER, CLIENT] {
        let name = fs::read_to_string(check.outcome.folder.join("out").join(node).join("both")).unwrap();
        assert_eq!(name.trim(), node);
    }
    assert_eq!(check.outcome.trouble.as_deref(), Some("the server has no /tmp/none after the run (--out)"));
    assert!(!check.outcome.succeeded);
}

#[test]
fn a_server_is_ready_when_its_test_succeeds() {
    // A machine's console takes 4,095 bytes in a line, and cuts what is longer.
    let ready = format!("test -e /tmp/ready && [ $WORD = x ] || {{ false; # {} \n}}", "#".repeat(4500));
    let run = Run::programs().with("env", "WORD=x").client("echo here");
    let server = "sleep 0.3; echo now; touch /tmp/ready; sleep 600";
    let run_it = run.clone().server(server).with("ready", &ready).with("fault", "power-off server when here");
    let check = run_it.check();
    assert!(said(&check, "now") < said(&check, "here"));

    let check = run.server("sleep 600").with("ready", "false").with("deadline", "2").check();
    assert!(check.outcome.trouble.unwrap().contains("not ready: `false` has not succeeded"));
    assert!(check.nodes.iter().all(|node| node.name != CLIENT));
}

/// About ten seconds.
#[test]
#[ignore = "takes long: make test-long"]
fn a_server_that_nobody_hears_listening_is_named() {
    let run = Run::programs().server("sleep 600").client("echo here");
    let check = run.with("fault", "power-off server when here").check();
    let silent = |event: &Event<'_>| matches!(event, Event::Line(line) if line.act == "silent");
    assert!(position(&check, silent) < said(&check, "here"));
}

#[test]
fn how_it_went_can_be_read_by_a_program() {
    let told = |server: &str, status: i32| {
        let mut lab = lab();
        lab.args(["exec", "--json", "--name", "told", "--server", server, "--client", "lesson-02 client -a server"]);
        let output = lab.output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let good = told("lesson-02 server", 0);
    assert_eq!((&good["succeeded"], &good["exit"]["client"], &good["trouble"]), (&true.into(), &0.into(), &().into()));
    assert_eq!(good["packets"]["ConnectRequest"], 1);
    assert!(good["file"].as_str().unwrap().ends_with("/runs/told/wire.pcapng"));
    let bad = told("lesson-02 server; exit 7", 1);
    assert_eq!((&bad["succeeded"], &bad["exit"]["server"]), (&false.into(), &7.into()));
}

#[test]
#[ignore = "takes long: make test-long"]
fn two_runs_at_a_time_take_two_folders() {
    let commands = ["--server=lesson-02 server", "--client=lesson-02 client -a server"];
    let start =
        |_| lab().args(["exec", "--json", "--name=twice"]).args(commands).stdout(Stdio::piped()).spawn().unwrap();
    let [one, other] = [0, 1].map(start).map(|lab| {
        let output = lab.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    });
    assert_eq!((&one["packets"]["ConnectRequest"], &one["packets"]), (&1.into(), &other["packets"]));
    assert_ne!(one["file"], other["file"]);
}

/// By the lab, and by a lesson that is asked before a machine is started for it.
#[test]
fn mistakes_are_named_before_anything_starts() {
    let large = tempfile::NamedTempFile::new().unwrap();
    large.as_file().set_len(100 << 20).unwrap();
    let large = format!("--bring={}", large.path().display());
    let cases: [(&[&str], i32, &str); 13] = [
        (&["run", "lesson-04", "--client-args=--bogus"], 2, "For more information, try '--help'"),
        (&["run", "lesson-04", "--server-args=-p none"], 2, "For more information, try '--help'"),
        (&["run", "lesson-4"], 2, "Name one like lesson-04"),
        (&["exec"], 2, "nothing to run"),
        (&["walk"], 2, "unrecognized subcommand"),
        (&[], 2, "Usage"),
        (&["exec", "--client=true", "--out=client"], 2, "isn't a file of a machine"),
        (&["exec", "--client=true", "--name=a/b"], 2, "cannot be the name of a folder"),
        (&["exec", "--client=true", "--fault=kill nobody when x"], 2, "there is no node `nobody`"),
        (&["run", "99"], 3, "cargo build -p lesson-99"),
        (&["exec", "--client=./no/such/program -x"], 3, "there is no program ./no/such/program"),
        (&["exec", "--client=true", &large], 3, "takes 100 MiB, and a machine with 256 MiB"),
        (&["exec", "--client=echo 'open"], 3, "a quote isn't closed"),
    ];
    for (arguments, status, words) in cases {
        let output = lab().args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {text}");
        assert!(text.contains(words) && (status == 3 || output.stdout.is_empty()), "{arguments:?}: {text}");
    }
    let help = lab().args(["run", "lesson-04", "--client-args=--help"]).output().unwrap();
    let said = String::from_utf8_lossy(&help.stdout);
    assert!(help.status.success() && said.contains("The server would wait for it, so it wasn't started"), "{said}");
}

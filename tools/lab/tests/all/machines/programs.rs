//! Programs of this host in the lab: rping, small shell commands, and what is done to them.

use crate::support;

use lab::{Brought, Fetched, Lab, Options, Outcome, Run, SERVER};
use roce::icrc::Icrc;
use roce::{Frame, Packet};
use run::file::{Event, Line};
use std::time::{Duration, Instant};

fn run(run: Run) -> Outcome {
    Lab::open().and_then(|lab| lab.run(&run)).unwrap_or_else(|error| panic!("{error:#}"))
}

fn exits(outcome: &Outcome) -> [Option<i32>; 2] {
    [outcome.node("server").exit, outcome.node("client").exit]
}

/// The number of the first event that fits.
fn position(outcome: &Outcome, fits: impl Fn(&Event<'_>) -> bool) -> u64 {
    let (mut number, mut found) = (0, None);
    let events = outcome.each_event(|event| {
        number += 1;
        found = found.or(fits(event).then_some(number));
    });
    events.unwrap();
    found.expect("there is such an event")
}

/// What there is to say about each RoCE packet.
fn of_packets<T>(outcome: &Outcome, look: impl Fn(&Packet<'_>) -> T) -> Vec<T> {
    let mut found = Vec::new();
    outcome.each_packet(|_, packet| found.push(look(packet))).unwrap();
    found
}

fn names(outcome: &Outcome) -> Vec<&'static str> {
    of_packets(outcome, |packet| packet.name())
}

/// EtherTypes of all frames that are no RoCE packets.
fn other_types(outcome: &Outcome) -> Vec<[u8; 2]> {
    let mut found = Vec::new();
    let events = outcome.each_event(|event| match event {
        Event::Packet(record) if matches!(Frame::ethernet(record.data), Frame::Other(_)) => {
            found.push([record.data[12], record.data[13]]);
        }
        _ => {}
    });
    events.unwrap();
    found
}

#[test]
fn rping_over_ipv4() {
    let outcome = run(Run::programs().server("rping -s -C 1 -v").client("rping -c -a server -C 1 -v"));
    assert!(support::ended_well(&outcome), "{outcome:?}");
    let names = names(&outcome);
    assert_eq!(names[..3], ["ConnectRequest", "ConnectReply", "ReadyToUse"]);
    assert!(names.contains(&"RC RDMA Write Only") && names.contains(&"RC RDMA Read Response Only"), "{names:?}");
    assert_eq!(names[names.len() - 2..], ["DisconnectRequest", "DisconnectReply"]);
    assert!(of_packets(&outcome, |packet| packet.icrc() == Icrc::Ok).iter().all(|ok| *ok));
    // Nothing but the two machines' own ARP: no IPv6 chatter, no announcements.
    assert_eq!(other_types(&outcome), [[0x08, 0x06], [0x08, 0x06]]);

    // The effect stands after its cause: the server prints the data after the packet that brought it.
    let is_data = |event: &Event<'_>| match event {
        Event::Packet(record) => matches!(Frame::ethernet(record.data),
            Frame::Roce(packet) if packet.name() == "RC RDMA Read Response Only"),
        Event::Line(_) => false,
    };
    let data = position(&outcome, is_data);
    let line = position(&outcome, |event| matches!(event, Event::Line(line) if line.text.contains("ping data")));
    assert!(data < line, "packet at {data}, line at {line}");
}

#[test]
#[ignore = "takes long: make test-long"]
fn a_server_on_tcp_is_waited_for() {
    let outcome = run(Run::programs().server("ib_write_lat -n 5").client("ib_write_lat -n 5 server"));
    assert_eq!(exits(&outcome), [Some(0), Some(0)], "{:?}", outcome.node("client").log);
    assert!(names(&outcome).contains(&"RC RDMA Write Only"));
}

#[test]
fn what_a_program_says_is_told_in_its_order_with_its_stream_and_its_status() {
    let server = "hostname; ulimit -l; for n in 1 2 3; do echo out $n; echo err $n >&2; done; exit 3";
    let options = Options { memory: Some(384), ..Options::default() };
    let memory = "sed -n 's/MemTotal: *//p' /proc/meminfo";
    let outcome = run(Run::programs()
        .server(server)
        .client(&format!("date +%s.%N; {memory}; printf 'no newline'"))
        .options(options));
    assert_eq!(exits(&outcome), [Some(3), Some(0)]);
    // Each stream is in its order; two streams are two ways out of the machine.
    let (errors, lines): (Vec<String>, _) =
        outcome.node("server").log.iter().cloned().partition(|line| line.starts_with("err"));
    assert_eq!(lines, ["server", "unlimited", "out 1", "out 2", "out 3"]);
    let mut told = Vec::new();
    let look = |event: &Event<'_>| match event {
        Event::Line(line) if line.error => told.push(line.text.clone()),
        _ => {}
    };
    outcome.each_event(look).unwrap();
    assert_eq!((&told, &errors[..]), (&errors, &["err 1".into(), "err 2".into(), "err 3".into()][..]));
    assert_eq!(std::fs::read_to_string(outcome.folder.join("server.err")).unwrap(), errors.join("\n") + "\n");
    let is_end = |line: &Line| line.node == SERVER && line.act == "exit" && line.text == "exit status 3";
    position(&outcome, |event| matches!(event, Event::Line(line) if is_end(line)));
    // The machines have this host's time, and the memory that is asked for.
    let [time, memory, last] = &outcome.node("client").log[..] else { panic!("{outcome:?}") };
    assert_eq!(last, "no newline");
    let (guest, host) = (time.parse::<f64>().unwrap(), std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64());
    assert!((guest - host).abs() < 10.0, "guest {guest}, host {host}");
    let kilobytes: u32 = memory.trim_end_matches(" kB").parse().unwrap();
    assert!((256 << 10..384 << 10).contains(&kilobytes), "{kilobytes}");
}

#[test]
#[ignore = "takes long: make test-long"]
fn the_deadline_ends_what_would_run_for_ever() {
    let started = Instant::now();
    let outcome = run(Run::programs().server("sleep 600").client("echo done").deadline(Duration::from_secs(1)));
    assert_eq!(outcome.node("server").exit, None);
    let trouble = outcome.trouble.expect("there is trouble");
    assert!(trouble.contains("1 s") && trouble.contains("the server"), "{trouble}");
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

fn example(name: &str) -> String {
    format!("{}/examples/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn sends_hello(program: &str, options: Options) {
    let (server, client) = (format!("{program} server"), format!("{program} client 10.47.91.1 hello"));
    let outcome = run(Run::programs().server(&server).client(&client).options(options));
    let logs = [&outcome.node("server").log, &outcome.node("client").log];
    assert_eq!(logs, [&["received: hello"], &["sent: hello"]]);
    assert_eq!(exits(&outcome), [Some(0), Some(0)]);
    let packets = names(&outcome);
    assert_eq!(packets.iter().filter(|name| **name == "RC Send Only").count(), 1, "{packets:?}");
}

#[test]
fn the_c_program_of_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("message").display().to_string();
    let build = ["-Wall", "-Werror", "-o", &program, &example("message.c"), "-lrdmacm", "-libverbs"];
    assert!(std::process::Command::new("cc").args(build).status().unwrap().success());
    sends_hello(&program, Options::default());
}

#[test]
#[ignore = "needs python3-pyverbs, which set-up does not get"]
fn the_python_program_of_the_page() {
    let ask = |what: &str| {
        let output = std::process::Command::new("python3").args(["-c", what]).output().unwrap();
        let folder = String::from_utf8(output.stdout).unwrap();
        Brought::parse(folder.trim()).unwrap()
    };
    let bring =
        vec![ask("import os; print(os.path.dirname(os.__file__))"), ask("import pyverbs; print(*pyverbs.__path__)")];
    sends_hello(&example("message.py"), Options { bring, ..Options::default() });
}

#[test]
fn what_is_brought_is_there_and_what_is_wanted_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let (look, here) = (folder.path().join("bin/look.sh"), folder.path().join("numbers"));
    std::fs::create_dir(folder.path().join("bin")).unwrap();
    support::write_script(&look, "ibv_devices | grep -o rxe0; cat /data/text; cat data/link; echo $WORD");
    std::fs::write(folder.path().join("text"), "some words\n").unwrap();
    std::os::unix::fs::symlink("text", folder.path().join("link")).unwrap();
    // With its libraries and its interpreter.
    let bring = |text: String| Brought::parse(&text).unwrap();
    let devices = lab::program("ibv_devices").unwrap().display().to_string();
    let out = [format!("client:/tmp/n:{}", here.display()), "/tmp/both".to_owned(), "server:/tmp/none".to_owned()];
    let options = Options {
        bring: vec![
            bring(format!("{}:/data", folder.path().display())),
            bring(format!("{devices}:/usr/bin/ibv_devices")),
        ],
        env: vec![("WORD".to_owned(), "a 'quoted' word".to_owned())],
        out: out.iter().map(|text| Fetched::parse(text).unwrap()).collect(),
        ..Options::default()
    };
    let make = "mkdir -p /tmp/n/deep; seq 100000 >/tmp/n/deep/s; hostname >/tmp/both";
    let outcome =
        run(Run::programs().server(make).client(&format!("{make}; cd /; /data/bin/look.sh")).options(options));
    assert_eq!(outcome.node("client").log, ["rxe0", "some words", "some words", "a 'quoted' word"]);
    assert_eq!(std::fs::read_to_string(here.join("deep/s")).unwrap().lines().count(), 100_000);
    for node in ["server", "client"] {
        let name = std::fs::read_to_string(outcome.folder.join("out").join(node).join("both")).unwrap();
        assert_eq!(name.trim(), node);
    }
    assert_eq!(outcome.trouble.as_deref(), Some("the server has no /tmp/none after the run (--out)"));
    assert!(!outcome.succeeded());
}

#[test]
fn a_server_is_ready_when_its_test_succeeds() {
    let options = Options { ready: Some("test -e /tmp/ready && [ $WORD = x ]".to_owned()), ..Options::default() };
    let options = Options { env: vec![("WORD".to_owned(), "x".to_owned())], ..options };
    let server = "sleep 0.3; echo now; touch /tmp/ready; sleep 600";
    let run_it = Run::programs().server(server).client("echo here").options(options.clone());
    let outcome = run(run_it.power_off_when("server", "here"));
    let said = |text: &str| position(&outcome, |event| matches!(event, Event::Line(line) if line.text == text));
    assert!(said("now") < said("here"));

    let never = Options { ready: Some("false".to_owned()), ..options };
    let run_it = Run::programs().server("sleep 600").client("echo here").options(never);
    let outcome = run(run_it.deadline(Duration::from_secs(2)));
    assert!(outcome.trouble.unwrap().contains("not ready: `false` has not succeeded"));
    assert!(outcome.nodes[1].log.is_empty());
}

/// About ten seconds.
#[test]
#[ignore = "takes long: make test-long"]
fn a_server_that_nobody_hears_listening_is_named() {
    let run_it = Run::programs().server("sleep 600").client("echo here");
    let outcome = run(run_it.power_off_when("server", "here"));
    let silent = |event: &Event<'_>| matches!(event, Event::Line(line) if line.act == "silent");
    let here = |event: &Event<'_>| matches!(event, Event::Line(line) if line.text == "here");
    assert!(position(&outcome, silent) < position(&outcome, here));
}

#[test]
fn how_it_went_can_be_read_by_a_program() {
    let told = |server: &str, status: i32| {
        let mut lab = std::process::Command::new(env!("CARGO_BIN_EXE_lab"));
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
fn two_runs_at_a_time_do_not_disturb_each_other() {
    let say = |text: &str| {
        Run::programs().server("lesson-02 server").client(&format!("lesson-02 client -a server; echo {text}"))
    };
    let outcomes = std::thread::scope(|scope| {
        let threads = ["first", "second"].map(|text| scope.spawn(move || run(say(text))));
        threads.map(|thread| thread.join().unwrap())
    });
    for (outcome, text) in outcomes.iter().zip(["first", "second"]) {
        assert_eq!(exits(outcome), [Some(0), Some(0)]);
        assert_eq!(outcome.node("client").log.last().map(String::as_str), Some(text));
        assert_eq!(names(outcome).iter().filter(|name| **name == "ConnectRequest").count(), 1);
    }
}

#[test]
fn mistakes_are_named_before_anything_starts() {
    let lab = Lab::open().unwrap();
    let error = |run: Run| format!("{:#}", lab.run(&run).unwrap_err());
    let text = error(Run::lesson("99").unwrap());
    assert!(text.contains("cargo build -p lesson-99"), "{text}");
    let text = error(Run::programs().client("./no/such/program -x"));
    assert!(text.contains("there is no program ./no/such/program"), "{text}");
    let large = tempfile::NamedTempFile::new().unwrap();
    large.as_file().set_len(100 << 20).unwrap();
    let bring = vec![Brought::parse(large.path().to_str().unwrap()).unwrap()];
    let text = error(Run::programs().client("true").options(Options { bring, ..Options::default() }));
    assert!(text.contains("takes 100 MiB") && text.contains("`--memory 512`"), "{text}");
    let text = error(Run::programs().client("echo 'open"));
    assert!(text.contains("a quote is not closed"), "{text}");
}

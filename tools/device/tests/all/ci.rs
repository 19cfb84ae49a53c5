//! What other people's continuous integration rests on.

use crate::programs::support::{target, DEVICE};
use serde_json::{json, Value};
use std::path::PathBuf;
use std::process::{id, Command, Output, Stdio};
use testkit::ran::Check;

/// Runs it; its exit status, and the JSON that is the last line of what it printed.
fn told(words: &[&str]) -> (i32, Value) {
    let output = Command::new(DEVICE).args(words).arg("--json").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code().unwrap(), serde_json::from_str(text.lines().last().unwrap()).unwrap())
}

#[test]
fn a_run_is_told_as_json() {
    let (status, json) = told(&["run", "lesson-01", "--name=test-json"]);
    let file = target().join("device/runs/test-json/wire.pcapng");
    let wanted = json!({
        "succeeded": true, "exit": { "server": 0, "client": 0 }, "signal": {}, "trouble": null,
        "packets": { "ConnectRequest": 1, "ConnectReject": 1 }, "other_frames": 0, "file": file,
    });
    assert_eq!((status, json), (0, wanted));
}

#[test]
fn a_failed_run_is_told_as_json() {
    let (status, json) = told(&["exec", "--name=test-json-2", "--server=false", "--client=sleep 60", "--grace=0"]);
    assert_eq!((status, &json["succeeded"], &json["exit"]["server"]), (1, &json!(false), &json!(1)));
    // If its device was at work, that is said behind it.
    let trouble = json["trouble"].as_str().unwrap();
    assert!(trouble.starts_with("the client had not ended 0 s after the server had failed, and is ended"), "{trouble}");
}

/// What rping's two sides sent to each other, read from one side's run file.
fn packets(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str::<Value>(text.lines().last().unwrap()).unwrap()["packets"].clone()
}

/// Two runs that know nothing of each other, as in two containers. Each records what it sends, and what comes from outside.
#[test]
fn two_runs_talk_to_each_other() {
    let address = |end: u32| format!("127.0.{}.{end}", 2 + id() % 250);
    let run = |end: u32, rping: &str| {
        let own = [format!("--name=test-outside-{end}"), format!("--address={}", address(end))];
        let line = format!("rping -a {} -C 2 {rping}", address(1));
        let mut device = Command::new(DEVICE);
        device
            .args(["run", "--json"])
            .args(own)
            .args(["--", "sh", "-c", &line])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        device
    };
    let server = run(1, "-s").spawn().unwrap();
    // One that knocks before somebody listens is rejected, and knocks again.
    let client = (0..50).find_map(|_| {
        let output = run(2, "-c").output().unwrap();
        output.status.success().then_some(output)
    });
    let (server, client) =
        (packets(&server.wait_with_output().unwrap()), packets(&client.expect("no client came through")));
    assert_eq!(client["RC RDMA Write Only"], 2, "{client}");
    assert_eq!(client["ConnectReply"], 1, "{client}");
    assert!(client.as_object().unwrap().iter().all(|(name, count)| server[name] == *count || name == "ConnectRequest"));
}

/// Each of two runs that go on at once keeps what is its own, though they have one name, as all of `rdma-device run` have.
#[test]
fn two_runs_of_one_name_leave_two_files() {
    let folder = std::env::temp_dir().join(format!("device-twice-{}", id()));
    std::fs::create_dir_all(&folder).unwrap();
    let run = |own: &str, other: &str| {
        let [own, other] = [own, other].map(|name| folder.join(name).display().to_string());
        // Both have begun before one of them ends.
        let line = format!(
            "touch {own}; until [ -e {other} ]; do sleep 0.05; done; rping -s -C 1 & \
             until rping -c -a $NODE -C 1; do sleep 0.1; done; wait"
        );
        let words = ["run", "--name=test-twice", "--json", "--", "sh", "-c", &line];
        Command::new(DEVICE).args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let both = [run("one", "two"), run("two", "one")].map(|run| run.wait_with_output().unwrap());
    std::fs::remove_dir_all(folder).unwrap();
    let mut files = both.map(|output| {
        let count = |packets: &Value| packets["RC RDMA Read Request"].clone();
        let told: Value = {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            serde_json::from_str(text.lines().last().unwrap()).unwrap()
        };
        let file = PathBuf::from(told["file"].as_str().unwrap());
        let check = Check::read(&file, ());
        assert_eq!(json!(check.packets_named("RC RDMA Read Request")), count(&packets(&output)), "{}", check.all());
        file
    });
    files.sort();
    let runs = target().join("device/runs");
    assert_eq!(files, ["test-twice", "test-twice-2"].map(|name| runs.join(name).join("wire.pcapng")));
}

/// In a container or chroot that has next to nothing, it's said what is missing.
#[test]
#[ignore = "needs user namespaces, which some systems grant to root alone"]
fn without_dev_null_it_names_what_is_missing() {
    let lines = "mount -t tmpfs tmpfs /dev && exec $0 run --name test-no-null -- true";
    let output = Command::new("unshare").args(["-rm", "sh", "-c", lines, DEVICE]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("no /dev/null") && said.contains("mknod"), "{said}");
}

/// Two runs talk to each other over a cable between two network namespaces.
#[test]
#[ignore = "needs network namespaces, which some systems grant to root alone"]
fn two_network_namespaces_talk_to_each_other() {
    let lines = r#"
        ip link set lo up
        ip link add one type veth peer name two
        unshare -n sleep 60 & other=$!
        until [ "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
        ip link set two netns $other
        ip addr add 10.47.91.1/24 dev one && ip link set one up
        nsenter -n -t $other sh -ec "ip link set lo up; ip addr add 10.47.91.2/24 dev two; ip link set two up"
        $0 run --name test-namespace --address 10.47.91.1 -- rping -s -a 10.47.91.1 -C 2 & server=$!
        until ss -Hlun | grep -q 10.47.91.1:4791; do sleep 0.01; done; sleep 1
        nsenter -n -t $other $0 run --json --address 10.47.91.2 -- rping -c -a 10.47.91.1 -C 2
        wait $server
        kill $other
    "#;
    let output = Command::new("unshare").args(["-rn", "sh", "-ec", lines, DEVICE]).output().unwrap();
    assert_eq!(packets(&output)["RC RDMA Write Only"], 2);
}

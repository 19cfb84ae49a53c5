//! Other people's programs run on the device, unmodified: those of rdma-core and of perftest.

use super::support::{free_port, programs, Check, Run, DEVICE, SERVER};
use std::env;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use testkit::each::each;

/// Server, client, and a packet that shows what it did. What perftest measures says nothing: this device is read, not raced; and
/// with its -u 19 an ACK has 2.1 s: its own 67 ms are for a NIC, and here a busy machine's processor is the NIC.
#[rustfmt::skip]
const PROGRAMS: [(&str, &str, &str); 31] = [
    ("rping -s -C 5 -S 5000", "rping -c -a $SERVER -C 5 -S 5000 -v", "RDMA Read Request"),
    ("ucmatose", "ucmatose -s $SERVER", "RC Send Only"),
    ("udaddy", "udaddy -s $SERVER", "UD Send Only"),
    ("rdma_server", "rdma_client -s $SERVER", "RC Send Only"),
    ("rdma_xserver", "rdma_xclient -s $SERVER", "RC Send Only"),
    ("rstream -S 1024 -C 20", "rstream -s $SERVER -S 1024 -C 20", "RDMA Write"),
    ("riostream -S 1024 -C 20", "riostream -s $SERVER -S 1024 -C 20", "RDMA Write"),
    // Two whose servers have no end, or (cmtime) got one with rdma-core 56: they have one when the client has done its work.
    ("cmtime -c 20 & while [ ! -e FILE ]; do sleep 0.05; done; kill $! || wait $!", "cmtime -s $SERVER -c 20 && touch FILE", "DisconnectReply"),
    ("rcopy & while [ ! -e FILE.done ]; do sleep 0.05; done; kill $! || wait $!", "rcopy /etc/passwd $SERVER:FILE && cmp /etc/passwd FILE && touch FILE.done", "RDMA Write"),
    // Without a connection manager; with -e they sleep.
    ("ibv_rc_pingpong -p PORT -g 0 -n 100", "ibv_rc_pingpong -p PORT -g 0 -n 100 127.0.0.1", "RC Send First"),
    ("ibv_rc_pingpong -p PORT -g 0 -n 100 -e", "ibv_rc_pingpong -p PORT -g 0 -n 100 -e 127.0.0.1", "RC Send First"),
    ("ibv_rc_pingpong -p PORT -g 0 -n 100 -N", "ibv_rc_pingpong -p PORT -g 0 -n 100 -N 127.0.0.1", "RC Send First"),
    ("ibv_uc_pingpong -p PORT -g 0 -n 100", "ibv_uc_pingpong -p PORT -g 0 -n 100 127.0.0.1", "UC Send First"),
    ("ibv_ud_pingpong -p PORT -g 0 -n 100", "ibv_ud_pingpong -p PORT -g 0 -n 100 127.0.0.1", "UD Send Only"),
    ("ibv_srq_pingpong -p PORT -g 0 -n 100", "ibv_srq_pingpong -p PORT -g 0 -n 100 127.0.0.1", "RC Send First"),
    // Of perftest.
    ("ib_send_lat -p PORT -n 50 -F -u 19", "ib_send_lat -p PORT -n 50 -F -u 19 127.0.0.1", "RC Send Only"),
    ("ib_send_lat -c UC -p PORT -n 50 -F", "ib_send_lat -c UC -p PORT -n 50 -F 127.0.0.1", "UC Send Only"),
    ("ib_send_lat -c UD -p PORT -n 50 -F", "ib_send_lat -c UD -p PORT -n 50 -F 127.0.0.1", "UD Send Only"),
    ("ib_write_lat -p PORT -n 50 -F -u 19", "ib_write_lat -p PORT -n 50 -F -u 19 127.0.0.1", "RC RDMA Write Only"),
    ("ib_write_lat -c UC -p PORT -n 50 -F", "ib_write_lat -c UC -p PORT -n 50 -F 127.0.0.1", "UC RDMA Write Only"),
    ("(until [ -e FILE ]; do sleep 0.05; done; kill $$) & exec ib_write_lat -R -p PORT -n 50 -F -u 19", "ib_write_lat -R -p PORT -n 50 -F -u 19 $SERVER || { touch FILE; false; }", "RC RDMA Write Only"),
    ("ib_read_lat -p PORT -n 50 -F -u 19", "ib_read_lat -p PORT -n 50 -F -u 19 127.0.0.1", "RDMA Read Request"),
    ("ib_atomic_lat -p PORT -n 50 -F -u 19", "ib_atomic_lat -p PORT -n 50 -F -u 19 127.0.0.1", "Fetch"),
    ("ib_send_bw -p PORT -n 50 -F -u 19", "ib_send_bw -p PORT -n 50 -F -u 19 127.0.0.1", "RC Send First"),
    ("ib_send_bw -c UC -p PORT -n 50 -F", "ib_send_bw -c UC -p PORT -n 50 -F 127.0.0.1", "UC Send First"),
    ("ib_send_bw -c UD -p PORT -n 50 -F", "ib_send_bw -c UD -p PORT -n 50 -F 127.0.0.1", "UD Send Only"),
    ("(until [ -e FILE ]; do sleep 0.05; done; kill $$) & exec ib_send_bw -R -p PORT -n 50 -F -u 19", "ib_send_bw -R -p PORT -n 50 -F -u 19 $SERVER || { touch FILE; false; }", "RC Send First"),
    ("ib_send_bw --use-srq -p PORT -n 50 -F -u 19", "ib_send_bw --use-srq -p PORT -n 50 -F -u 19 127.0.0.1", "RC Send First"),
    ("ib_write_bw -p PORT -n 50 -F -u 19", "ib_write_bw -p PORT -n 50 -F -u 19 127.0.0.1", "RC RDMA Write First"),
    ("ib_read_bw -p PORT -n 50 -F -u 19", "ib_read_bw -p PORT -n 50 -F -u 19 127.0.0.1", "RDMA Read Request"),
    ("ib_atomic_bw -p PORT -n 50 -F -u 19", "ib_atomic_bw -p PORT -n 50 -F -u 19 127.0.0.1", "Fetch"),
];

/// They poll: more of them at a time would only wait for a processor.
const AT_A_TIME: usize = 4;

#[test]
fn all_end_well() {
    each(AT_A_TIME, &PROGRAMS, |(server, client, packet)| {
        // Perftest gives up if it cannot tell the processor's speed, as its samples of it differ on a busy machine; some of it does with
        // -F, too. And with -R its
        // server listens twice: a client that knocks in between is rejected and crashes, and the server would wait for ever. So
        // the server ends when its client has failed, and not after a time, which a busy machine would take for a good run, too.
        // The pingpongs have no option for their 67 ms.
        let why = ["Can't produce a report", "Failed to connect RDMA CM events", "transport retry counter exceeded"];
        let gave_up = |ran: &Check| why.iter().any(|text| ran.all().contains(text));
        let mut tries = (0..5).map(|_| {
            let port = free_port().to_string();
            let file = env::temp_dir().join(format!("device-stranger-{port}"));
            let filled = |line: &str| line.replace("PORT", &port).replace("FILE", &file.display().to_string());
            let ran = programs(&filled(server), &filled(client));
            for left in [file.with_extension("done"), file] {
                let _ = fs::remove_file(left);
            }
            ran
        });
        let ran = tries.find(|ran| !gave_up(ran)).unwrap_or_else(|| panic!("{server}: five runs gave up")).exits(0, 0);
        assert!(ran.packets().iter().any(|sent| sent.contains(packet)), "{server}: no {packet}: {:?}", ran.packets());
    });
}

/// Which has one address only on loopback: both programs are on one node.
#[test]
fn over_ipv6_they_run_too() {
    let both = "rping -s -a ::1 -C 3 & until rping -c -a ::1 -C 3 -v; do sleep 0.1; done; wait";
    let node = Command::new(DEVICE).args(["run", "--name=test-ipv6", "--address=::1", "--", "sh", "-c", both]).output();
    let node = node.unwrap();
    let said = String::from_utf8_lossy(&node.stdout).into_owned();
    assert!(node.status.success() && said.contains("ping data: rdma-ping-2"), "{node:?}");
}

/// XRC is not there: it is said in words, and nothing hangs.
#[test]
fn what_is_refused_ends_in_words() {
    let ran = programs("ibv_xsrq_pingpong -g 0", "ibv_xsrq_pingpong -g 0 127.0.0.1").exits(1, 1);
    ran.logs(SERVER, "Couldn't Open the XRC Domain");
}

/// A datagram to a group comes to another node, with a wire between them, too. Who sends waits until the other has joined: then
/// it has rping listen.
#[test]
fn a_group_reaches_from_node_to_node() {
    let group = format!("239.47.{}.{}", std::process::id() % 250, std::process::id() / 250 % 250);
    let server = format!(
        "f=$(mktemp); stdbuf -oL mckey -m {group} >$f & until grep -q receiving $f; do sleep 0.01; done; \
         rping -s -C 1; wait; cat $f; rm $f"
    );
    let client = format!("mckey -m {group} -s && rping -c -a $SERVER -C 1");
    for rule in [None, Some("delay 3rd \"UD Send Only Immediate\" from client by 20 ms")] {
        let run = Run::programs(&server, &client);
        let ran = rule.map(|rule| Run::programs(&server, &client).wire(rule)).unwrap_or(run).check().exits(0, 0);
        assert_eq!(ran.packets_named("UD Send Only Immediate"), 10, "{}", ran.all());
        assert!(ran.node(SERVER).log.iter().any(|line| line == "return status 0"), "{}", ran.all());
    }
}

#[test]
fn programs_in_a_shell_use_the_device() {
    let mut shell = Command::new(DEVICE)
        .args(["shell", "--name=test-shell"])
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    shell.stdin.take().unwrap().write_all(b"rping -c -a $SERVER -C 1 -v\nibv_devices\n").unwrap();
    let output = shell.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
    for wanted in ["ping data: rdma-ping-0", "rxe0", "RDMA Read Request", "DREQ (DisconnectRequest)"] {
        assert!(text.contains(wanted), "no {wanted}: {text}");
    }
}

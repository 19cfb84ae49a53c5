//! Other people's programs run on the device, unmodified: those of rdma-core and of perftest.

use super::support::{free_port, programs, Check, Run, CLIENT, DEVICE, SERVER};
use crate::calls::program;
use std::env;
use std::fs;
use std::io::Write;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use testkit::each::each;

/// Server, client, and a packet that shows what it did. What perftest measures says nothing: this device is read, not raced; and
/// with its -u 19 an ACK has 2.1 s: its own 67 ms are for a NIC, and here a busy machine's processor is the NIC.
#[rustfmt::skip]
const PROGRAMS: [(&str, &str, &str); 42] = [
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
    ("ib_send_lat -e -p PORT -n 50 -F -u 19", "ib_send_lat -e -p PORT -n 50 -F -u 19 127.0.0.1", "RC Send Only"),
    ("ib_send_lat --inline_recv 64 -p PORT -n 50 -F -u 19", "ib_send_lat --inline_recv 64 -p PORT -n 50 -F -u 19 127.0.0.1", "RC Send Only"),
    ("ib_send_bw -b -p PORT -n 50 -F -u 19", "ib_send_bw -b -p PORT -n 50 -F -u 19 127.0.0.1", "RC Send First"),
    ("ib_send_bw --use-srq -q 4 -p PORT -n 50 -F -u 19", "ib_send_bw --use-srq -q 4 -p PORT -n 50 -F -u 19 127.0.0.1", "RC Send First"),
    ("ib_send_bw --recv_post_list 5 -q 2 -p PORT -n 50 -F -u 19", "ib_send_bw --recv_post_list 5 -q 2 -p PORT -n 50 -F -u 19 127.0.0.1", "RC Send First"),
    ("ib_write_bw -c UC -p PORT -n 50 -F", "ib_write_bw -c UC -p PORT -n 50 -F 127.0.0.1", "UC RDMA Write First"),
    ("ib_write_bw -b -p PORT -n 50 -F -u 19", "ib_write_bw -b -p PORT -n 50 -F -u 19 127.0.0.1", "RC RDMA Write First"),
    ("ib_write_bw --use_old_post_send -p PORT -n 50 -F -u 19", "ib_write_bw --use_old_post_send -p PORT -n 50 -F -u 19 127.0.0.1", "RC RDMA Write First"),
    ("ib_write_bw --mr_per_qp -q 4 -p PORT -n 50 -F -u 19", "ib_write_bw --mr_per_qp -q 4 -p PORT -n 50 -F -u 19 127.0.0.1", "RC RDMA Write First"),
    ("ib_read_bw -e -p PORT -n 50 -F -u 19", "ib_read_bw -e -p PORT -n 50 -F -u 19 127.0.0.1", "RDMA Read Request"),
    ("ib_atomic_bw -A CMP_AND_SWAP -p PORT -n 50 -F -u 19", "ib_atomic_bw -A CMP_AND_SWAP -p PORT -n 50 -F -u 19 127.0.0.1", "Compare"),
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

/// A program that knows sockets alone, with rsockets put before them: its bytes cross as RDMA WRITEs.
#[test]
fn plain_sockets_become_rsockets() {
    let echo = format!("env LD_PRELOAD={} {}", library("rsocket/librspreload.so.1").display(), program("rsecho"));
    let ran = programs(&format!("{echo} server $SERVER"), &format!("{echo} client $SERVER")).exits(0, 0);
    ran.logs(SERVER, "100000 bytes have come");
    ran.logs(CLIENT, "the same 100000 bytes have come back");
    assert!(ran.packets().iter().any(|sent| sent.contains("RDMA Write First")), "{:?}", ran.packets());
}

/// A library that belongs to the ones that programs are run with.
fn library(name: &str) -> PathBuf {
    let unpacked = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let system = ["x86_64", "aarch64"].map(|kind| PathBuf::from(format!("/usr/lib/{kind}-linux-gnu")));
    let folders = env::split_paths(&unpacked).chain(system).chain(["/usr/lib64".into(), "/usr/lib".into()]);
    let mut places = folders.map(|folder| folder.join(name));
    places.find(|place| place.exists()).unwrap_or_else(|| panic!("no {name}: it comes with librdmacm"))
}

/// A packet as one may come from anywhere: no RoCE at all, or a BTH that is nearly right with something behind it.
fn any_packet(random: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
    let is_roce = random(3) > 0;
    let head = match is_roce {
        true => {
            let opcodes: Vec<u8> = (0..0x20).chain([0x40, 0x64, 0x65, 0x81, 0xff]).collect();
            let to = [0, 1, 17, random(1 << 24), 0xff_ffff][random(5)] as u32;
            let flags = [0, 0x40, 0x80, 0xc0, 0x30][random(5)];
            let begin = [opcodes[random(opcodes.len())], flags, 0xff, 0xff];
            [begin, to.to_be_bytes(), (random(1 << 31) as u32).to_be_bytes()].concat()
        }
        false => Vec::new(),
    };
    let length = if is_roce { [0, 4, 16, 20, 28, 256, 260, 280, 1024, 4000][random(10)] } else { random(80) };
    head.into_iter().chain((0..length).map(|_| random(256) as u8)).collect()
}

#[test]
#[ignore = "takes long: make test-long"]
fn packets_of_nobody_do_no_harm() {
    let address = |end: u32| format!("127.1.{}.{end}", 2 + std::process::id() % 250);
    let (addresses, is_over) = ([address(1), address(2)], AtomicBool::new(false));
    let sent = std::thread::scope(|scope| {
        let storm = scope.spawn(|| {
            let (socket, mut seed) = (UdpSocket::bind(("127.0.0.1", 0)).unwrap(), 7_u64);
            let mut random = |below: usize| {
                seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                (seed >> 33) as usize % below
            };
            let (mut sent, begun) = (0, Instant::now());
            while !is_over.load(Ordering::Relaxed) && begun.elapsed() < Duration::from_secs(300) {
                let to = &addresses[random(2)];
                sent += u32::from(socket.send_to(&any_packet(&mut random), (to.as_str(), 4791)).is_ok());
                if sent % 64 == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            sent
        });
        let port = free_port();
        let line = format!("ib_write_bw -p {port} -n 500 -F -u 19");
        let ran = Run::programs(&line, &format!("{line} 127.0.0.1")).addresses(&addresses).check();
        is_over.store(true, Ordering::Relaxed);
        ran.exits(0, 0);
        storm.join().unwrap()
    });
    assert!(sent > 1000, "{sent} packets");
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

//! The command itself: what it prints, how it ends.

use crate::files::{capture, file, text, wire, written, Piece, Recorded};
use run::file::Line;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use testkit::frames;

fn printed(arguments: &[&str], file: &Path) -> String {
    let output = wire("show", file, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn at(time_ns: u64, frame: Recorded) -> Piece {
    Piece::Frame(Recorded { time_ns: Some(time_ns), ..frame })
}

fn conversation() -> Vec<u8> {
    let mut arp = vec![0; 60];
    arp[12..14].copy_from_slice(&[8, 6]);
    let frames = (0..).zip(frames::conversation()).map(|(i, frame)| {
        let comment = (i == 3).then_some("step 4, client: rdma_post_write");
        at(1_001_000_000 + i * 250_000, Recorded::of(frame).with(comment))
    });
    written([at(1_000_000_000, Recorded::of(arp))].into_iter().chain(frames))
}

#[test]
fn among_many_each_line_says_from_which_to_which() {
    let path = run::files::root().unwrap().join("captures/13_ring_all_reduce.pcapng");
    let ladder = printed(&["--format", "ladder"], &path);
    let lines = |text: &str| ladder.lines().filter(|line| line.contains(text)).count();
    // Nobody is left or right: one heading for each pair would be above each line.
    assert_eq!(lines(" frame "), 0, "{ladder}");
    assert_eq!(lines("10.47.91.3 ─▶ 10.47.91.1  REQ (ConnectRequest)"), 2, "{ladder}");
    assert_eq!(lines("10.47.91.1 ─▶ 10.47.91.3  REJ (ConnectReject)"), 1, "{ladder}");
}

#[test]
fn the_ladder_of_a_conversation() {
    let expected = " frame         ms  client 10.0.0.2            server 10.0.0.1
     2      1.000  ── REQ (ConnectRequest) ─────────────────▶  port 7471  qp 0x11  mtu 1024  private data of 5 bytes or more
     3      1.250  ◀─────────────────── REP (ConnectReply) ──  qp 0x22  server QP is in RTR or RTS  private data of 16 bytes or more
     4      1.500  ── RTU (ReadyToUse) ─────────────────────▶  both QPs are in RTS
  step 4, client: rdma_post_write
     5      1.750  ── RDMA Write First ─────────────────────▶  psn +0  len 1024 of 1064  va 0x7f0000001000  rkey 0x1234
     6      2.000  ── RDMA Write Last ──────────────────────▶  psn +1  len 40
     7      2.250  ◀────────────────────────── Acknowledge ──  psn +1  msn 1
     8      2.500  ── RDMA Read Request ────────────────────▶  psn +2  len 1061  va 0x7f0000001000  rkey 0x1234
     9      2.750  ◀───────────── RDMA Read Response First ──  psn +2  len 1024  msn 2
    10      3.000  ◀────────────── RDMA Read Response Last ──  psn +3  len 37  msn 2
    11      3.250  ◀──────────────────────────── Send Only ──  psn +0  len 5
    12      3.500  ── RNR NAK ──────────────────────────────▶  psn +0  msn 0  no receive posted: wait 0.64 ms
    13      3.750  ── RDMA Write Only ──────────────────────▶  psn +4  len 3  va 0x10  rkey 0x99
    14      4.000  ◀────────────────────────────────── NAK ──  psn +4  msn 2  remote access error
    15      4.250  ── DREQ (DisconnectRequest) ─────────────▶  client QP leaves RTS
    16      4.500  ◀─────────────── DREP (DisconnectReply) ──
15 RoCEv2 packets; not shown: 1 ARP
";
    assert_eq!(printed(&[], &file("ladder", &conversation())), expected);
}

#[test]
fn without_the_handshake_the_numbers_are_found_all_the_same_and_nobody_is_called_the_client() {
    let text = printed(&[], &file("no-cm", &capture(&frames::conversation()[3..13])));
    assert!(text.starts_with(" frame         ms  10.0.0.2 ") && !text.contains("client"), "{text}");
    let numbers: Vec<&str> = text.lines().filter_map(|line| line.split("psn ").nth(1)?.split(' ').next()).collect();
    assert_eq!(numbers, ["+0", "+1", "+1", "+2", "+2", "+3", "+0", "+0", "+4", "+4"]);
}

#[test]
fn a_retransmission_is_marked() {
    let frames = frames::conversation();
    let text = printed(&[], &file("again", &capture([0, 1, 2, 3, 4, 3, 4, 5, 6].map(|i| &frames[i]))));
    let marked: Vec<bool> = text.lines().skip(4).map(|line| line.contains("sent again")).collect();
    assert_eq!(marked, [false, false, true, true, false, false, false], "{text}");
}

/// A run: what each node says before it sends its packet, and the end.
fn run() -> Vec<u8> {
    let line = |node: &str, program: &str, text: &str, act: &str| {
        let [node, program, text, act] = [node, program, text, act].map(String::from);
        Piece::Line(Line { time_us: 1_000_000, node, program, text, act, ..Line::default() })
    };
    let ready = Recorded::of(frames::conversation()[2].clone()).with(Some("Step 1: a knock [x]"));
    written([
        line("client", "lesson-01", "[12:00:00.000 #0001 knock] SLOW  rdma_connect", ""),
        at(1_001_500_000, ready.from("client")),
        line("server", "lesson-01", "[12:00:00.000 #0001 reject] SLOW  rdma_reject", ""),
        line("server", Line::LAB, "exit status 0", "exit"),
        line("", Line::LAB, "the run is over", Line::END),
    ])
}

const LANES: &str = "   #      ms  client                                    │ server
────────────────────────────────────────────────────────┼───────────────────────────────────────────
   1     0.0  [knock] SLOW  rdma_connect                │
   2     1.5  ─────────────────────── RTU (ReadyToUse)  both QPs are in RTS ───────────────────────▶
                                                 Step 1: a knock
   3     0.0                                            │ [reject] SLOW  rdma_reject
   4     0.0                                            │ ── exit status 0
   5     0.0  ── the run is over
";

#[test]
fn a_run_is_drawn_in_lanes_and_its_lines_have_numbers() {
    let path = file("run", &run());
    assert_eq!(printed(&[], &path), LANES);
    assert_eq!(
        printed(&["--packet", "1"], &path),
        "frame 1, lesson-01 on client: [12:00:00.000 #0001 knock] SLOW  rdma_connect\n"
    );
    let ladder = printed(&["--format", "ladder"], &path);
    assert!(ladder.contains("     2      1.500  ── RTU"), "{ladder}");
    assert_eq!(printed(&["--format", "tsv"], &path).lines().count(), 2);
}

#[test]
fn lanes_are_drawn_while_the_file_grows() {
    let run = run();
    let path = file("growing", &run[..run.len() - 100]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_wire"));
    command.arg("show").arg(&path).arg("--follow").stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let (first, rest) = LANES.split_at(LANES.find("   4     0.0").unwrap());
    let mut drawn = vec![0; first.len()];
    out.read_exact(&mut drawn).unwrap();
    assert_eq!(String::from_utf8_lossy(&drawn), first);
    std::fs::write(&path, &run).unwrap();
    let mut drawn = String::new();
    out.read_to_string(&mut drawn).unwrap();
    assert_eq!(drawn, rest);
    assert!(child.wait().unwrap().success());
}

#[test]
fn one_packet_byte_by_byte() {
    let path = file("bytes", &conversation());
    let write = "frame 5, 1098 bytes: RC RDMA Write First, 10.0.0.2 -> 10.0.0.1\nstep 4, client: rdma_post_write\n";
    for (number, expected) in [
        ("5", write),
        ("5", "  002b  ..00....                    PadCnt                   0"),
        ("5", "  0033  ff ff ff                    PSN                      16777215"),
        ("5", "  003e  00 00 12 34                 R_Key                    0x00001234"),
        ("5", "Payload, 1024 bytes"),
        ("5", "        (the same line 63 times more)"),
        ("5", "ok: it fits the packet"),
        ("2", "ServiceID                0x0000000001061d2f  RDMA_PS_TCP, port 7471"),
        ("2", "  0081  10100...                    RemoteCMResponseTimeout  20                  4.3 s"),
        ("2", "PathPacketPayloadMTU     3                   1024 bytes"),
        ("2", "SourceIP                 10.0.0.2"),
        ("2", "PrivateData, 56 bytes\n  0106  6b 6e 6f 63 6b 00"),
        ("1", "frame 1, 60 bytes: ARP\n"),
    ] {
        let text = printed(&["--packet", number], &path);
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}

#[test]
fn every_byte_of_every_packet_is_shown() {
    let path = file("all-bytes", &conversation());
    for (i, frame) in frames::conversation().iter().enumerate() {
        let text = printed(&["--packet", &(i + 2).to_string()], &path);
        let offsets: Vec<usize> =
            text.lines().filter_map(|line| usize::from_str_radix(line.get(2..6)?, 16).ok()).collect();
        assert_eq!(offsets.first(), Some(&0));
        let steps = offsets.windows(2).map(|pair| pair[1] - pair[0]);
        let jumps = steps.filter(|&step| step > 16).count();
        assert_eq!(jumps, text.matches("the same line").count(), "frame {}\n{text}", i + 2);
        assert!(frame.len() - offsets.last().unwrap() <= 16);
    }
}

#[test]
fn errors_end_with_2_and_say_where() {
    let whole = conversation();
    let cut = file("cut", &whole[..whole.len() - 100]);
    for arguments in [&[][..], &["--format", "tsv"]] {
        let output = wire("show", &cut, arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("begins at byte"), "{}", text(&output.stderr));
        // What came before the damage is shown.
        assert!(text(&output.stdout).lines().count() > 14);
    }
    let output = wire("show", &cut, &["--format", "plot"]);
    assert!(text(&output.stdout).starts_with("over time: ") && text(&output.stderr).contains("begins at byte"));
    let pair = file("no data", &capture(frames::conversation()[..2].to_vec()));
    for (act, arguments) in [("show", &["--format", "plot"][..]), ("svg", &["--plot"])] {
        let output = wire(act, &pair, arguments);
        assert!(output.status.code() == Some(2) && text(&output.stderr).contains("nothing to plot"), "{output:?}");
    }
    for (name, bytes) in [("empty", &b""[..]), ("text", b"this is not a capture")] {
        assert_eq!(wire("show", &file(name, bytes), &[]).status.code(), Some(2));
    }
    assert_eq!(wire("show", Path::new("/nonexistent.pcap"), &[]).status.code(), Some(2));
    let output = wire("show", &file("missing", &whole), &["--packet", "99"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no frame 99: the file has 16"));
    assert_eq!(wire("show", &cut, &["--packet", "0"]).status.code(), Some(2));
    assert_eq!(wire("show", &cut, &["--format", "xml"]).status.code(), Some(2));
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let path = file("long", &capture(std::iter::repeat(frames::conversation()).take(2000).flatten()));
    for format in ["ladder", "tsv"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wire"));
        command.args(["show", "--format", format]).arg(&path).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut first = [0; 10];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    }
}

//! Whatever a capture holds, time and output grow as its size does: four times as large takes about four times as long, and
//! not sixteen. What counts is the processor's time of this thread, so a busy machine changes nothing.

use crate::exercise;
use crate::files::{written, Piece, Recorded};
use run::file::Line;
use std::time::Duration;
use testkit::clock::cost;
use testkit::frames::{self, CLIENT, SERVER};

/// So much larger is the second capture.
const FACTOR: usize = 4;
/// Linear time takes 4 times as long, n log n 5, quadratic 16.
const LIMIT: f64 = 10.0;

/// Below this, what a clock counts is chance.
const LEAST: Duration = Duration::from_micros(500);

fn said(node: &str, text: &str) -> Piece {
    Piece::Line(Line { node: node.into(), program: "x".into(), text: text.into(), ..Line::default() })
}

/// A frame of nothing, so that its node is described.
fn node(name: &str) -> Piece {
    Piece::Frame(Recorded::of(vec![0; 14]).from(name))
}

/// A conversation, and after it these frames.
fn conversation(frames: impl Iterator<Item = Vec<u8>>) -> Vec<Piece> {
    frames::conversation().into_iter().chain(frames).map(|frame| Piece::Frame(Recorded::of(frame))).collect()
}

fn send(qp: u32, psn: u32) -> Vec<u8> {
    frames::frame(CLIENT, SERVER, 4, qp, psn, &[], b"data")
}

/// Captures of a kind, with this many of what it is about; and how many the smaller one has. A page shows 3000 events at most.
type Kind = (&'static str, usize, fn(u32) -> Vec<Piece>);

const KINDS: [Kind; 11] = [
    ("nodes and packets, then lines", 500, |count| {
        let lines = (0..count).map(|n| said(&n.to_string(), "hello"));
        (0..count).map(|n| node(&n.to_string())).chain(lines).collect()
    }),
    ("lines of a lesson", 500, |count| {
        let words = "DATA  ibv_post_send  IBV_WR_SEND wr_id=1 len=5";
        (0..count).map(|i| said("client", &format!("[10:00:00.000 #{i:04} write] {words}"))).collect()
    }),
    ("requests of one connection", 200, |count| conversation((0..count).map(|i| send(0x22, 100 + i)))),
    ("one request again and again", 300, |count| conversation((0..count).map(|_| send(0x22, 100)))),
    ("a queue pair for each packet", 300, |count| conversation((0..count).map(|i| send(0x100 + i, 1)))),
    ("notifications of congestion to many queue pairs", 300, |count| {
        let notify = |qp| frames::frame(SERVER, CLIENT, 0x81, qp, 0, &[], &[0; 16]);
        conversation((0..count).map(|i| send(0x100 + i, 1)).chain((0..count).map(|i| notify(0x100 + i))))
    }),
    ("what a switch tells of many ports", 500, |count| {
        let told = |act: &str, text: String, time_us| Piece::Line(Line { time_us, ..Line::of_lab(act, &text) });
        let of_one = |n: u32| {
            let time = u64::from(n * 7919 % 1000) << 40;
            [("queue", format!("n{n}: 1000 bytes wait")), ("pause", format!("n{}: priority {}", n % 60, n % 9))]
                .map(|(act, text)| told(act, text, time))
        };
        (0..count).flat_map(of_one).collect()
    }),
    ("a long line", 20_000, |length| vec![said("client", &"x y".repeat(length as usize))]),
    ("a node with a long name that says much", 5000, |length| {
        let name = "n".repeat(length as usize);
        let says = (0..length / 10).map(|_| said("c", &"word ".repeat(20)));
        ["a", &name, "c"].into_iter().map(node).chain(says).collect()
    }),
    // Each WRITE goes into all the regions before it.
    ("regions one over the other", 240, |count| {
        let regions = (0..count).flat_map(|n| {
            let write = frames::frame(CLIENT, SERVER, 10, 0x11, n, &frames::reth(0x1000, 2, 64), &[7; 64]);
            let access = said("server", "ibv_reg_mr access=LOCAL_WRITE|REMOTE_WRITE");
            let region = said("server", "MR: addr=0x1000 len=4096 lkey=0x1 rkey=0x2");
            [access, region, Piece::Frame(Recorded::of(write).from("client"))]
        });
        [node("server")].into_iter().chain(regions).collect()
    }),
    ("sections", 500, |_| vec![]),
];

/// What grows faster than the capture.
fn fast(act: &str, kind: &str, [small, large]: &[Vec<u8>; 2], does: impl Fn(&[u8]) -> usize) -> Vec<String> {
    let [(some, small), (more, large)] = [small, large].map(|file| cost(|| does(file)));
    let time = large.as_secs_f64() / small.max(LEAST).as_secs_f64();
    // A page has the player.
    let output = more as f64 / some.max(100_000) as f64;
    eprintln!("{act:10} {kind:40} {small:10.1?} {large:10.1?}  {time:5.1}  {output:5.1}");
    let ratios = [("time", time), ("bytes", output)].into_iter().filter(|(_, ratio)| *ratio > LIMIT);
    ratios
        .map(|(what, ratio)| format!("{act} of {kind}: {FACTOR} times as many take {ratio:.0} times the {what}"))
        .collect()
}

#[test]
fn time_and_output_grow_as_the_capture_does() {
    let mut found = Vec::new();
    for (kind, count, make) in KINDS {
        let files = [count, FACTOR * count].map(|count| match kind {
            "sections" => written([]).repeat(count),
            _ => written(make(count as u32)),
        });
        for (act, does) in exercise::ACTS {
            found.extend(fast(act, kind, &files, |file| does(file).unwrap_or(0)));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Both read every packet once. What is said of them costs no more than to print them.
#[test]
fn to_explain_takes_at_most_twice_as_long_as_to_list() {
    let ack = |psn| frames::frame(SERVER, CLIENT, 17, 0x11, psn, &frames::aeth(0x1f, 0), &[]);
    let file = written(conversation((0..20_000).flat_map(|i| [send(0x22, 100 + i), ack(100 + i)])));
    let of = |wanted: &str| exercise::ACTS.into_iter().find(|(act, _)| *act == wanted).map(|(_, does)| does).unwrap();
    let [(_, list), (said, explain)] = ["tsv", "explain"].map(|act| cost(|| of(act)(&file).unwrap()));
    eprintln!("tsv {list:.1?}, explain {explain:.1?}");
    assert!(explain < 2 * list, "explain takes {explain:?}, tsv {list:?}");
    assert!(said > 100);
}

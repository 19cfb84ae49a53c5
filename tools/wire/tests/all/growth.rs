//! Whatever a capture holds, time and output grow as its size does: four times as large takes about four times as long, and
//! not sixteen. What counts is the processor's time of this thread, so a busy machine changes nothing.

use crate::exercise;
use crate::frames::{self, CLIENT, SERVER};
use roce::LinkType;
use run::capture::Reader;
use run::file::Line;
use run::lanes::{self, Style};
use run::pcapng::{Section, Writer};
use std::time::Duration;
use testkit::clock::cost;
use wire::play::{self, page};
use wire::show;

/// So much larger is the second capture.
const FACTOR: usize = 4;
/// Linear time takes 4 times as long, n log n 5, quadratic 16.
const LIMIT: f64 = 10.0;

/// Below this, what a clock counts is chance.
const LEAST: Duration = Duration::from_micros(500);

/// Captures of a kind, with this many of what it is about.
type Kind = fn(usize) -> Vec<u8>;

fn writer() -> Writer<Vec<u8>> {
    Writer::without_interface(Vec::new(), &Section::default()).unwrap()
}

fn describe(writer: &mut Writer<Vec<u8>>, count: usize) {
    for i in 0..count {
        writer.interface(LinkType::ETHERNET, Some(&i.to_string())).unwrap();
    }
}

fn said(node: &str, text: &str) -> Line {
    Line { node: node.into(), program: "x".into(), text: text.into(), ..Line::default() }
}

fn line(text: &str) -> Line {
    Line::of_program("lesson-04", text.to_owned(), false)
}

fn interfaces_and_lines(count: usize) -> Vec<u8> {
    let mut writer = writer();
    describe(&mut writer, count);
    (0..count).for_each(|_| writer.line(&line("x")).unwrap());
    writer.into_inner().unwrap()
}

fn interfaces_and_packets(count: usize) -> Vec<u8> {
    let mut writer = writer();
    describe(&mut writer, count);
    (0..count).for_each(|i| writer.cut_packet(i as u32, 1, &[0; 14], 14, None).unwrap());
    writer.into_inner().unwrap()
}

/// Lines of a log, as a lesson writes them.
fn lines(count: usize) -> Vec<u8> {
    let mut writer = writer();
    writer.interface(LinkType::ETHERNET, Some("client")).unwrap();
    for i in 0..count {
        writer
            .line(&line(&format!("[10:00:00.000 #{i:04} write] DATA  ibv_post_send  wr_id={i} IBV_WR_SEND")))
            .unwrap();
    }
    writer.into_inner().unwrap()
}

fn packets(count: usize, frame: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), LinkType::ETHERNET, &Section::default()).unwrap();
    frames::conversation().iter().for_each(|frame| writer.packet(0, frame, None).unwrap());
    (0..count as u32).for_each(|i| writer.packet(u64::from(i), &frame(i), None).unwrap());
    writer.into_inner().unwrap()
}

fn requests_of_one_connection(count: usize) -> Vec<u8> {
    packets(count, |i| frames::frame(CLIENT, SERVER, 4, 0x22, 100 + i, &[], b"data"))
}

fn one_request_again_and_again(count: usize) -> Vec<u8> {
    packets(count, |_| frames::frame(CLIENT, SERVER, 4, 0x22, 100, &[], b"data"))
}

fn a_queue_pair_for_each_packet(count: usize) -> Vec<u8> {
    packets(count, |i| frames::frame(CLIENT, SERVER, 4, 0x100 + i, 1, &[], b"data"))
}

fn sections(count: usize) -> Vec<u8> {
    let one = Writer::new(Vec::new(), LinkType::ETHERNET, &Section::default()).unwrap().into_inner().unwrap();
    one.repeat(count)
}

fn a_long_line(length: usize) -> Vec<u8> {
    let mut writer = writer();
    writer.line(&said("client", &"x y".repeat(length))).unwrap();
    writer.into_inner().unwrap()
}

fn a_node_with_a_long_name_that_says_much(length: usize) -> Vec<u8> {
    let mut writer = writer();
    for name in ["a", &"n".repeat(length), "c"] {
        writer.interface(LinkType::ETHERNET, Some(name)).unwrap();
    }
    (0..length / 10).for_each(|_| writer.line(&said("c", &"word ".repeat(20))).unwrap());
    writer.into_inner().unwrap()
}

fn many_nodes(count: usize) -> Vec<u8> {
    let mut writer = writer();
    describe(&mut writer, count);
    (0..count).for_each(|n| writer.line(&said(&n.to_string(), "hello")).unwrap());
    writer.into_inner().unwrap()
}

/// Each WRITE goes into all the regions before it: they are one over the other.
fn regions_one_over_the_other(count: usize) -> Vec<u8> {
    let mut writer = writer();
    let client = writer.interface(LinkType::ETHERNET, Some("client")).unwrap();
    writer.interface(LinkType::ETHERNET, Some("server")).unwrap();
    for n in 0..count as u32 {
        writer.line(&said("server", "ibv_reg_mr access=LOCAL_WRITE|REMOTE_WRITE")).unwrap();
        writer.line(&said("server", "MR: addr=0x1000 len=4096 lkey=0x1 rkey=0x2")).unwrap();
        let write = frames::frame(CLIENT, SERVER, 10, 0x11, n, &frames::reth(0x1000, 2, 64), &[7; 64]);
        writer.cut_packet(client, u64::from(n), &write, write.len(), None).unwrap();
    }
    writer.into_inner().unwrap()
}

/// Lines and packets in numbers, for what reads a capture.
const KINDS: [(&str, Kind, usize); 7] = [
    ("interfaces and lines", interfaces_and_lines, 500),
    ("interfaces and packets", interfaces_and_packets, 500),
    ("lines", lines, 500),
    ("requests of one connection", requests_of_one_connection, 300),
    ("one request again and again", one_request_again_and_again, 300),
    ("a queue pair for each packet", a_queue_pair_for_each_packet, 300),
    ("sections", sections, 500),
];

/// Large texts, many nodes, much memory, for what draws it. A page shows 3000 events at most: so many regions are a third.
const DRAWN: [(&str, Kind, usize); 4] = [
    ("a long line", a_long_line, 20_000),
    ("a node with a long name", a_node_with_a_long_name_that_says_much, 5000),
    ("nodes", many_nodes, 1000),
    ("regions one over the other", regions_one_over_the_other, 240),
];

/// What is written, in bytes.
type Drawing = fn(&[u8]) -> usize;

const DRAWINGS: [(&str, Drawing); 3] = [
    ("lanes", |file| lanes::text(file, Style::FILE, 0..=u64::MAX).unwrap().len()),
    ("ladder", |file| {
        let (mut out, reader) = (Vec::new(), || Reader::new(file).unwrap());
        show::ladder::write(&mut reader(), run::row::clients(&mut reader()), Style::FILE, &mut out).unwrap();
        out.len()
    }),
    ("play", |file| page::page(&play::run(file, "x", None).unwrap(), &page::ladder(file)).len()),
];

/// What grows faster than the capture.
fn fast(act: &str, (kind, make, count): (&str, Kind, usize), does: impl Fn(&[u8]) -> usize) -> Vec<String> {
    let [(some, small), (more, large)] = [count, FACTOR * count].map(make).map(|file| cost(|| does(&file)));
    let time = large.as_secs_f64() / small.max(LEAST).as_secs_f64();
    // A page has the player.
    let output = more as f64 / some.max(100_000) as f64;
    eprintln!("{act:10} {kind:30} {small:10.1?} {large:10.1?}  {time:5.1}  {output:5.1}");
    let ratios = [("time", time), ("bytes", output)].into_iter().filter(|(_, ratio)| *ratio > LIMIT);
    ratios
        .map(|(what, ratio)| format!("{act} of {kind}: {FACTOR} times as many take {ratio:.0} times the {what}"))
        .collect()
}

#[test]
fn time_and_output_grow_as_the_capture_does() {
    let reads = exercise::ACTS.iter().filter(|(act, _)| !["lanes", "play"].contains(act));
    let read = reads.flat_map(|(act, does)| {
        KINDS.into_iter().flat_map(move |kind| {
            fast(act, kind, |file| {
                does(file);
                0
            })
        })
    });
    let drawn = DRAWINGS.iter().flat_map(|(act, does)| DRAWN.into_iter().flat_map(move |kind| fast(act, kind, does)));
    let all: Vec<String> = read.chain(drawn).collect();
    assert!(all.is_empty(), "{}", all.join("\n"));
}

//! Whatever a capture holds, time grows as its size does: four times as large takes about four times as long, and not
//! sixteen. What counts is the processor's time of this thread, so a busy machine changes nothing.

use crate::exercise;
use crate::frames::{self, CLIENT, SERVER};
use roce::LinkType;
use run::file::Line;
use run::pcapng::{Section, Writer};
use std::time::Duration;
use testkit::clock::cost;

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

const KINDS: [(&str, Kind, usize); 7] = [
    ("interfaces and lines", interfaces_and_lines, 500),
    ("interfaces and packets", interfaces_and_packets, 500),
    ("lines", lines, 500),
    ("requests of one connection", requests_of_one_connection, 300),
    ("one request again and again", one_request_again_and_again, 300),
    ("a queue pair for each packet", a_queue_pair_for_each_packet, 300),
    ("sections", sections, 500),
];

#[test]
fn time_grows_as_the_capture_does() {
    let mut slow = Vec::new();
    // Pictures and pages have their own test, linear.rs.
    for (act, does) in exercise::ACTS.iter().filter(|(act, _)| !["lanes", "play"].contains(act)) {
        for (kind, make, count) in KINDS {
            let [small, large] = [count, FACTOR * count].map(make).map(|file| cost(|| does(&file)).1);
            let ratio = large.as_secs_f64() / small.max(LEAST).as_secs_f64();
            eprintln!("{act:10} {kind:30} {small:10.1?} {large:10.1?}  {ratio:5.1}");
            if ratio > LIMIT {
                slow.push(format!("{act} of {kind}: {FACTOR} times as many take {ratio:.0} times as long"));
            }
        }
    }
    assert!(slow.is_empty(), "{}", slow.join("\n"));
}

//! What is drawn of what has happened.
#![allow(clippy::unwrap_used)] // A test may end with a panic.

use super::*;
use crate::sighting::{Lookout, Record};
use roce::LinkType;

const MS: u64 = 1_000_000;

/// A WRITE of 1000 bytes from 10.0.0.FROM to 10.0.0.TO: Ethernet, IPv4, UDP, BTH, RETH, data, ICRC.
fn write(from: u8, to: u8, is_marked: bool) -> Vec<u8> {
    let mut frame = vec![0; 14 + 20 + 8 + 12 + 16 + 1000 + 4];
    let length = frame.len() as u16;
    frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    frame[15] = if is_marked { 3 } else { 2 };
    frame[16..18].copy_from_slice(&(length - 14).to_be_bytes());
    frame[23] = 17;
    frame[26..34].copy_from_slice(&[10, 0, 0, from, 10, 0, 0, to]);
    frame[36..38].copy_from_slice(&4791u16.to_be_bytes());
    frame[38..40].copy_from_slice(&(length - 34).to_be_bytes());
    frame[42] = 0x0a;
    frame[47] = 7;
    frame
}

fn sends(seen: &mut Plotted, time_ns: u64, node: &str, data: &[u8], comment: Option<&str>) {
    let (link, length) = (LinkType::ETHERNET, data.len());
    let record = Record { number: 1, node: Some(node), time_ns: Some(time_ns), link, data, length, comment };
    seen.event(&Event::Packet(Lookout::default().see(record)));
}

fn tells(seen: &mut Plotted, time_ns: u64, port: &str, what: What) {
    let event = switch::Event { port: port.into(), what };
    let line = Line { time_us: time_ns / 1000, ..Line::of_lab(event.act(), &event.to_string()) };
    seen.event(&Event::Line(line));
}

/// 48 ms, as there are columns: one sends all the time, the other in the second half; that is paused in the first half of it.
fn run() -> Plotted {
    let mut seen = Plotted::default();
    let wire = "delay 1st ACK by 1 s; link 1 Gbit/s 5 us; queue 96 KB; ecn 8..32 KB";
    seen.event(&Event::Line(Line::of_lab(Line::WIRE, wire)));
    sends(&mut seen, 0, "server", &write(1, 9, false), Some("lab: dropped: it is lost"));
    for ms in 0..48 {
        for quarter in 0..4 {
            let time = ms * MS + quarter * MS / 4;
            sends(&mut seen, time, "client", &write(2, 1, false), None);
            if ms >= 24 {
                let is_marked = ms == 47 && quarter == 0;
                sends(&mut seen, time, "client-2", &write(3, 1, is_marked), Some("Step 1: writes"));
            }
        }
        match ms {
            12 => tells(&mut seen, ms * MS, "server", What::Queue(64 << 10)),
            24 => tells(&mut seen, ms * MS, "client-2", What::Pause(0)),
            36 => {
                tells(&mut seen, ms * MS, "server", What::Queue(0));
                tells(&mut seen, ms * MS, "client-2", What::Resume(0));
            }
            _ => {}
        }
    }
    seen
}

#[test]
fn text_shows_what_was_when() {
    let text = run().text();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("over time: 0 to 47.8 ms, 995 us in a column; rates up to "), "{text}");
    let bars = |line: &str| line.chars().skip(17).take(48).collect::<String>();
    // Three lines of the queue, full for a half of the time.
    for line in &lines[1..4] {
        let (from, to) =
            (bars(line).chars().position(|bar| bar == '█').unwrap(), bars(line).trim_end().chars().count());
        assert!((11..=13).contains(&from) && (36..=38).contains(&to), "{text}");
    }
    assert!(lines[1].starts_with("waits for server") && lines[1].ends_with("max 64.0 KB"), "{text}");
    assert!(lines[4].starts_with("rate of client ") && lines[4].ends_with(" 201 KB in all"), "{text}");
    assert!(bars(lines[4]).chars().all(|bar| bar == '█'), "{text}");
    assert!(lines[5].starts_with("rate of client-2") && lines[5].ends_with(" 101 KB in all"), "{text}");
    assert_eq!(bars(lines[5]), " ".repeat(24) + &"█".repeat(24), "{text}");
    assert!(lines[6].starts_with("paused client-2 ") && lines[6].ends_with("25 % of time"), "{text}");
    assert!(lines[7].starts_with("marked  ") && lines[7].ends_with("█ 1 packets"), "{text}");
    assert!(lines[8].starts_with("lost             █") && lines[8].ends_with(" 1 packets"), "{text}");
    assert!(lines[9].starts_with("lost: each packet that was dropped"), "{text}");
    assert_eq!(lines.len(), 10, "{text}");
}

#[test]
fn a_picture_says_the_same_in_words() {
    let (picture, words) = run().picture();
    for told in [
        "47.8 ms of a run",
        "waits for server: max 64.0 KB",
        "rate of client-2: 101 KB in all",
        "paused client-2: 25 % of time",
    ] {
        assert!(words.contains(told) && picture.contains(told), "{told}: {words}");
    }
    for level in ["marks begin", "all are marked", "no more room"] {
        assert!(picture.contains(level), "{level}");
    }
    assert!(picture.contains("marked: 1 packets") && picture.contains("prefers-color-scheme:dark"));
}

#[test]
fn pauses_of_several_priorities_are_one_until_all_have_ended() {
    let mut seen = Plotted::default();
    let acts = [What::Pause(0), What::Pause(3), What::Resume(0), What::Resume(3), What::Queue(1)];
    acts.into_iter().zip(0..).for_each(|(what, ms)| tells(&mut seen, ms * MS, "client", what));
    let (steps, _) = &seen.pauses["client"];
    assert_eq!(steps.means(&Parts::new((0, 4 * MS - 1), 4)), [1.0, 1.0, 1.0, 0.0]);
}

/// Of 20 senders, each with a port, none makes it longer or wider; and a hundred times as many events make no picture larger.
#[test]
fn drawings_are_bounded() {
    let size = |events: u64| {
        let mut seen = Plotted::default();
        for event in 0..events {
            let (node, time) = (event % 20, event * 100 * MS / events);
            let name = format!("a-client-with-a-long-name-{node}");
            sends(&mut seen, time, &name, &write(10 + node as u8, 1, true), None);
            tells(&mut seen, time, &name, What::Queue(1000 + node));
            tells(&mut seen, time, &name, if event / 20 % 2 == 0 { What::Pause(0) } else { What::Resume(0) });
        }
        let text = seen.text();
        assert!(text.lines().count() <= 14 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
        seen.picture().0.len()
    };
    let (small, large) = (size(4000), size(40_000));
    assert!(large < 400_000 && large < 3 * small, "{small} {large}");
}

#[test]
fn times_may_be_anything_and_names_too_many() {
    let mut seen = Plotted::default();
    assert!(seen.is_empty() && seen.text().is_empty());
    for (number, time) in [u64::MAX, 0, 7, u64::MAX / 2, 1].into_iter().cycle().take(1000).enumerate() {
        sends(&mut seen, time, &number.to_string(), &write((number % 200) as u8, 1, false), None);
        tells(&mut seen, time, &number.to_string(), What::Queue(u64::MAX));
        tells(&mut seen, time, "x", What::Pause(number as u8));
    }
    assert!(seen.flows.len() <= MOST && seen.queues.len() <= MOST);
    assert!(!seen.text().is_empty() && !seen.picture().0.contains("NaN"));
}

#[test]
fn a_capture_without_data_is_no_plot() {
    let file =
        crate::pcapng::Writer::new(Vec::new(), &crate::pcapng::Section::default()).unwrap().into_inner().unwrap();
    let error = read(&mut Reader::new(file.as_slice()).unwrap()).1.unwrap_err().to_string();
    assert!(error.contains("nothing to plot"), "{error}");
}

/// Two bursts of a millisecond, and 98 ms between them in which everybody waits for a timer: all would be in the picture's first and
/// last pixels. A rest in which somebody is paused or something waits is none.
#[test]
fn a_long_rest_is_cut_out_and_told() {
    let bursts = |between: Option<What>| {
        let mut seen = Plotted::default();
        for burst in [0, 99] {
            (0..10)
                .for_each(|tenth| sends(&mut seen, burst * MS + tenth * MS / 10, "client", &write(2, 1, false), None));
            if let (0, Some(what)) = (burst, between.clone()) {
                tells(&mut seen, MS, "client", what);
            }
        }
        seen
    };
    let rests = bursts(None);
    let (text, (picture, words)) = (rests.text(), rests.picture());
    assert!(
        text.starts_with("over time: 0 to 99.9 ms without 98.0 ms in which nothing happened, 40.6 us in a column;"),
        "{text}"
    );
    assert!(words.starts_with("99.9 ms of a run") && picture.contains("98.0 ms of rest"), "{words} {picture}");
    // What comes after the rest is told by the clock.
    assert!(picture.contains(">98.95<") && picture.contains(">99.45<"), "{picture}");
    for holds in [What::Pause(0), What::Queue(7)] {
        let text = bursts(Some(holds)).text();
        assert!(text.starts_with("over time: 0 to 99.9 ms, 2.08 ms in a column;"), "{text}");
    }
}

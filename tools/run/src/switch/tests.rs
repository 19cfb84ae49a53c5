//! The model by itself: what physics, and the standards, say that a switch does.

use super::*;
use roce::link::{self, LinkType};

const NODES: [&str; 3] = ["server", "one", "two"];
const LENGTH: usize = 1014;
/// What a frame of that length takes at 1 Gbit/s: 1,038 bytes.
const TIME: Duration = Duration::from_nanos(8304);
const DELAY: Duration = Duration::from_micros(5);

fn switch(text: &str) -> Switch {
    Switch::parse(text, &NODES).unwrap().unwrap()
}

/// An Ethernet frame with an IPv4 header and a number, with this traffic class.
fn frame(class: u8, number: u32) -> Vec<u8> {
    let mut bytes = vec![0; LENGTH];
    bytes[12..14].copy_from_slice(&[8, 0]);
    let ip = &mut bytes[14..];
    ip[..20].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 127, 0, 0, 3, 127, 0, 0, 2]);
    ip[2..4].copy_from_slice(&1000u16.to_be_bytes());
    ip[20..28].copy_from_slice(&[0x12, 0xb7, 0x12, 0xb7, 0x03, 0xd4, 0, 0]);
    let sum: u32 = ip[..20].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    ip[10..12].copy_from_slice(&(!((sum >> 16) + (sum & 0xffff)) as u16).to_be_bytes());
    link::set_traffic_class(ip, class);
    ip[100..104].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes(frame[114..118].try_into().unwrap())
}

/// Lets everything happen.
fn all(switch: &mut Switch) -> Vec<(Duration, Out)> {
    let mut out = Vec::new();
    while let Some(next) = switch.next() {
        out.extend(switch.advance(next));
    }
    out
}

fn delivered(out: &[(Duration, Out)], node: usize) -> Vec<(Duration, &[u8])> {
    let frames = out.iter().filter_map(|(time, out)| match out {
        Out::Deliver { to, frame } if *to == node => Some((*time, frame.as_slice())),
        _ => None,
    });
    frames.collect()
}

fn told(out: &[(Duration, Out)]) -> Vec<&Event> {
    out.iter().filter_map(|(_, out)| if let Out::Tell(event) = out { Some(event) } else { None }).collect()
}

fn is_marked(frame: &[u8]) -> bool {
    link::datagram(LinkType::ETHERNET, frame).unwrap().is_marked()
}

#[test]
fn a_frame_takes_its_time_on_both_cables_and_the_next_one_comes_right_behind() {
    let mut switch = switch("link 1 Gbit/s 5 us");
    for number in 0..3 {
        switch.send(Duration::ZERO, 1, Some(0), frame(0, number));
    }
    let out = all(&mut switch);
    let first = TIME * 2 + DELAY * 2;
    let times: Vec<_> = delivered(&out, 0).iter().map(|(time, frame)| (*time, number(frame))).collect();
    assert_eq!(times, [(first, 0), (first + TIME, 1), (first + TIME * 2, 2)]);
    assert!(delivered(&out, 1).is_empty() && delivered(&out, 2).is_empty());
    // What is for all comes to all others.
    switch.send(first * 9, 1, None, frame(0, 7));
    let out = all(&mut switch);
    assert_eq!([0, 1, 2].map(|node| delivered(&out, node).len()), [1, 0, 1]);
    assert_eq!(out.iter().filter(|(_, out)| matches!(out, Out::Passed { .. })).count(), 1, "it is recorded once");
}

#[test]
fn a_queue_has_room_for_so_much_and_no_more_and_keeps_the_order() {
    let mut switch = switch("link 1 Gbit/s 5 us; queue 8 KB");
    for number in 0..50 {
        switch.send(Duration::ZERO, 1, Some(0), frame(0, number));
        switch.send(Duration::ZERO, 2, Some(0), frame(0, 100 + number));
    }
    let out = all(&mut switch);
    let arrived: Vec<u32> = delivered(&out, 0).iter().map(|(_, frame)| number(frame)).collect();
    let drops = told(&out).iter().filter(|event| matches!(event, Event { what: What::Drop(_), .. })).count();
    assert_eq!(arrived.len() + drops, 100);
    // Two cables' worth comes in, one goes out: about half of it, and what has room, gets through.
    assert!((50..60).contains(&arrived.len()), "{}", arrived.len());
    for of_one in [0..50, 100..150] {
        let order: Vec<_> = arrived.iter().filter(|number| of_one.contains(*number)).collect();
        assert!(order.windows(2).all(|pair| pair[0] < pair[1]), "{order:?}");
    }
    let mut longest = told(&out).into_iter().filter_map(|event| match event {
        Event { what: What::Queue(bytes), .. } => Some(*bytes),
        _ => None,
    });
    assert!(longest.clone().max().unwrap() > 7000 && longest.clone().max().unwrap() <= 8192);
    assert_eq!(longest.next_back(), Some(0), "in the end it is empty");
    // Every frame was seen once, and said to be dropped where it was.
    let seen = out.iter().filter_map(|(_, out)| match out {
        Out::Passed { comment, .. } => Some(comment.is_some()),
        _ => None,
    });
    assert_eq!((seen.clone().count(), seen.filter(|dropped| *dropped).count()), (100, drops));
}

#[test]
fn marks_come_in_proportion_and_only_to_those_who_can_be_marked() {
    let ecn = Ecn { none: 8192, all: 32768, most: 0.1 };
    assert_eq!(
        [0, 8192, 20480, 32767, 32768].map(|waiting| (ecn.share(waiting) * 100.0).round()),
        [0., 0., 5., 10., 100.]
    );
    let mut switch = switch("link 1 Gbit/s 5 us; queue 1 MB; ecn 10..20 KB at 50%");
    for number in 0..400 {
        switch.send(Duration::ZERO, 1, Some(0), frame(2, number));
        switch.send(Duration::ZERO, 2, Some(0), frame(0, 1000 + number));
    }
    let out = all(&mut switch);
    for (_, frame) in delivered(&out, 0) {
        if is_marked(frame) {
            assert!(number(frame) < 1000);
            let ip = &frame[14..34];
            let sum: u32 = ip.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
            assert_eq!((sum >> 16) + (sum & 0xffff), 0xffff, "the header's checksum fits");
        }
    }
    // What was waiting when a frame came is in its comment; this gives the share of each depth.
    let marked: Vec<bool> = out
        .iter()
        .filter_map(|(_, out)| match out {
            Out::Passed { frame, .. } if number(frame) < 1000 => Some(is_marked(frame)),
            _ => None,
        })
        .collect();
    assert!(!marked[..8].contains(&true), "nothing waits yet");
    assert!(marked[60..].iter().all(|marked| *marked), "more than 20 KB wait");
    assert_eq!(marked.len(), 400);
}

#[test]
fn the_share_that_is_marked_is_the_one_of_the_queue() {
    // The queue is between both marks: as much comes as goes.
    let mut switch = switch("link 1 Gbit/s 5 us; queue 1 MB; ecn 0..1000 KB at 40 %");
    for number in 0..500 {
        switch.send(Duration::ZERO, 1, Some(0), frame(2, number));
        switch.send(Duration::ZERO, 2, Some(0), frame(2, number));
    }
    let marked = delivered(&all(&mut switch), 0).iter().filter(|(_, frame)| is_marked(frame)).count();
    // It grows from 0 to 500 frames: half of the way to 1,010 of them, so from 0 to a fifth, and a tenth in the mean.
    assert!((75..125).contains(&marked), "{marked}");
}

#[test]
fn who_fills_a_queue_is_paused_and_goes_on_and_nothing_is_lost() {
    let mut switch = switch("link 1 Gbit/s 5 us; queue 16 KB; pfc 8 KB");
    for number in 0..200 {
        switch.send(Duration::ZERO, 1, Some(0), frame(0, number));
        switch.send(Duration::ZERO, 2, Some(0), frame(0, 1000 + number));
    }
    assert!(!switch.is_stuck());
    let out = all(&mut switch);
    let (events, arrived) = (told(&out), delivered(&out, 0));
    assert_eq!(arrived.len(), 400);
    assert!(!events.iter().any(|event| matches!(event, Event { what: What::Drop(_), .. })));
    for port in ["one", "two"] {
        let of = |event: &&Event| match event {
            Event { port: of, what: What::Pause(0) } if of == port => Some(true),
            Event { port: of, what: What::Resume(0) } if of == port => Some(false),
            _ => None,
        };
        let turns: Vec<bool> = events.iter().filter_map(of).collect();
        assert!(turns.len() > 10 && turns.len() % 2 == 0, "{}", turns.len());
        assert!(turns.chunks(2).all(|turn| turn == [true, false]));
    }
    // The port is never idle: it sends one frame behind the other.
    assert_eq!(arrived[399].0 - arrived[0].0, TIME * 399);
    let pauses = delivered(&out, 1).iter().map(|(_, frame)| pause(frame)).collect::<Vec<_>>();
    assert!(pauses.contains(&Some(0)) && pauses.contains(&Some(u16::MAX)) && !pauses.contains(&None));
}

fn pause(frame: &[u8]) -> Option<u16> {
    roce::pause::Frame::decode(frame)?.quanta[0]
}

#[test]
fn a_pause_is_of_one_priority() {
    const OTHER: u8 = 3 << 5;
    let mut switch = switch("link 1 Gbit/s 5 us; queue 16 KB; pfc 8 KB");
    let pause = roce::pause::Frame::about(0, u16::MAX).encode([2; 6]).to_vec();
    // A node may also pause its switch.
    switch.send(Duration::ZERO, 0, None, pause);
    let later = Duration::from_micros(100);
    switch.advance(later);
    switch.send(later, 1, Some(0), frame(0, 1));
    switch.send(later, 1, Some(0), frame(OTHER, 2));
    let out = all(&mut switch);
    let arrived = delivered(&out, 0);
    assert_eq!(arrived.iter().map(|(_, frame)| number(frame)).collect::<Vec<_>>(), [2, 1]);
    // 65,535 quanta of 512 bits at 1 Gbit/s.
    assert!(arrived[0].0 < Duration::from_millis(1) && arrived[1].0 > Duration::from_micros(33_553));
}

#[test]
fn a_ring_of_switches_that_pause_each_other_stands_still_for_ever() {
    let names = ["a", "b", "c"];
    let mut switch = Switch::parse("link 1 Gbit/s 1 us; queue 32 KB; pfc 8 KB; ring 3", &names).unwrap().unwrap();
    for number in 0..300 {
        for from in 0..3 {
            // Each to the one before it, so on two cables of the ring.
            switch.send(Duration::ZERO, from, Some((from + 2) % 3), frame(0, number));
        }
    }
    let mut out = Vec::new();
    while let Some(next) = switch.next().filter(|next| *next < Duration::from_secs(1)) {
        out.extend(switch.advance(next));
    }
    let arrived: Vec<_> =
        (0..3).flat_map(|node| delivered(&out, node)).filter(|(_, frame)| pause(frame).is_none()).collect();
    assert!(
        arrived.len() < 900 && arrived.iter().all(|(time, _)| *time < Duration::from_millis(10)),
        "{}",
        arrived.len()
    );
    assert!(switch.next().is_some() && switch.is_stuck(), "they pause each other again and again");
}

#[test]
fn a_lot_loses_about_its_share_and_the_same_ones_each_time() {
    let lost = || {
        let mut switch = switch("link 100 Gbit/s 1 us; queue 64 MB; lose 1 in 100");
        for number in 0..10_000 {
            switch.send(Duration::ZERO, 1, Some(0), frame(0, number));
        }
        let out = all(&mut switch);
        delivered(&out, 0).iter().map(|(time, frame)| (*time, number(frame))).collect::<Vec<_>>()
    };
    assert!((9_850..9_950).contains(&lost().len()), "{}", lost().len());
    assert_eq!(lost(), lost());
}

#[test]
fn several_paths_mix_the_order() {
    let mut switch = switch("link 1 Gbit/s 5 us; paths 2 by 20 us");
    for number in 0..100 {
        switch.send(Duration::ZERO, 1, Some(0), frame(0, number));
    }
    let out = all(&mut switch);
    let order: Vec<u32> = delivered(&out, 0).iter().map(|(_, frame)| number(frame)).collect();
    let mut sorted = order.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..100).collect::<Vec<_>>());
    assert!(order.windows(2).filter(|pair| pair[0] > pair[1]).count() > 30, "{order:?}");
}

#[test]
fn what_a_switch_tells_can_be_read() {
    for what in [What::Queue(12), What::Drop("lost: by lot".into()), What::Pause(3), What::Resume(0)] {
        let event = Event { port: "worker-1".into(), what };
        assert_eq!(Event::read(event.act(), &event.to_string()), Some(event));
    }
    assert_eq!(Event::read("exit", "exit status 0"), None);
}

#[test]
fn settings_are_read_and_a_wrong_word_is_pointed_at() {
    let text = "link 100 Mbit/s 5µs; queue 64 KB; ecn 8..32 KB at 1 %; pfc 24..48 KB; lose 1 in 1000; paths 3; ring 2; dcqcn g 1/16";
    let settings = switch(text).settings;
    let expected = Settings {
        rate: 100_000_000,
        delay: DELAY,
        room: 65536,
        ecn: Some(Ecn { none: 8192, all: 32768, most: 0.01 }),
        pfc: Some(Pfc { off: 49152, on: 24576 }),
        lose: 1000,
        paths: Some(Paths { count: 3, by: Duration::from_micros(20) }),
        ring: 2,
        dcqcn: Some("g 1/16".into()),
    };
    assert_eq!(settings, expected);
    assert_eq!(switch("link 1 Gbit/s 5 us; pfc 48 KB").settings.pfc, Some(Pfc { off: 49152, on: 36864 }));
    let (of_switch, rules) = split("drop 1st ACK; link 1 Gbit/s 5 us ;queue 1 MB;; delay every ACK by 2 s");
    assert_eq!(
        (of_switch.as_str(), rules.as_str()),
        ("link 1 Gbit/s 5 us; queue 1 MB", "drop 1st ACK; delay every ACK by 2 s")
    );
    assert!(Switch::parse("", &NODES).unwrap().is_none());
    for (text, wrong, word) in [
        ("queue 64 KB", "queue", "a switch needs a link"),
        ("link 1 Gbit 5 us", "Gbit", "the units are: Gbit/s"),
        ("link 0 Gbit/s 5 us", "Gbit/s", "a rate"),
        ("link 1 Gbit/s", "", "a cable's delay"),
        ("link 1 Gbit/s 5 us fast", "fast", "here it ends"),
        ("link 1 Gbit/s 5 us; ecn 32..8 KB", "32..8", "marks begin"),
        ("link 1 Gbit/s 5 us; ecn 8 KB", "KB", "where do marks begin?"),
        ("link 1 Gbit/s 5 us; ecn 8..32 KB at 101 %", "101", "how many are marked?"),
        ("link 1 Gbit/s 5 us; lose 2 in 3", "2", "how many are lost?"),
        ("link 1 Gbit/s 5 us; ring 1", "1", "how many switches?"),
        ("link 1 Gbit/s 5 us; path 2", "path", "what a switch has is"),
    ] {
        let error = Switch::parse(text, &NODES).unwrap_err().to_string();
        let lines: Vec<&str> = error.lines().collect();
        let marked = lines[2].find('^').and_then(|at| lines[1].get(at..at + lines[2].trim().len())).unwrap_or_default();
        assert_eq!(marked, wrong, "{error}");
        assert!(error.contains(word), "{error}");
    }
}

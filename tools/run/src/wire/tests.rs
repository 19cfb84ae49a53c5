//! The wire, between ports that remember what they got.
#![allow(clippy::unwrap_used)] // A test may end with a panic.

use super::*;
use crate::capture::Reader;
use roce::icrc::Icrc;
use roce::packet::DECODED;
use std::fs::File;

const NODES: [&str; 3] = ["server", "client", "client-2"];
const SERVER: usize = 0;
const CLIENT: usize = 1;
const OTHER: usize = 2;

/// A frame for a node has its number in the last byte of its address; any other byte is for all.
#[derive(Default)]
struct Got {
    frames: Vec<(usize, Vec<u8>)>,
    full: Option<usize>,
}

impl Ports for Got {
    fn target(&mut self, _: usize, sighting: &Sighting<'_>) -> Option<usize> {
        Some(usize::from(sighting.data[5])).filter(|node| *node < NODES.len())
    }

    fn all_but(&self, from: usize) -> Vec<usize> {
        (0..NODES.len()).filter(|node| *node != from).collect()
    }

    fn send(&mut self, _: usize, to: &[usize], frame: &[u8]) -> Option<usize> {
        to.iter().for_each(|to| self.frames.push((*to, frame.to_vec())));
        self.full.filter(|full| to.contains(full))
    }

    fn arrives(&mut self, to: usize, frame: Vec<u8>) -> bool {
        self.frames.push((to, frame));
        self.full != Some(to)
    }
}

impl Got {
    fn taken(&mut self) -> Vec<usize> {
        mem::take(&mut self.frames).into_iter().map(|(to, _)| to).collect()
    }
}

/// What was recorded, in words: who sent it, whether it came again, whether its ICRC fits, and what was done to it.
#[derive(Default)]
struct Log {
    events: Vec<String>,
    /// Packets that a switch has marked.
    marked: usize,
    /// What its clock says, which goes on with each packet; and the time that each packet has brought along.
    clock: u64,
    times: Vec<Option<u64>>,
    trouble: Option<String>,
}

impl Scribe for Log {
    fn time_ns(&self) -> Option<u64> {
        Some(self.clock)
    }

    fn packet(&mut self, node: usize, sighting: Sighting<'_>, comment: Option<&str>) -> Result<()> {
        let again = if sighting.seen.is_some_and(|seen| seen.again) { " again" } else { "" };
        let bad = if sighting.packet().is_some_and(|packet| packet.icrc() == Icrc::Bad) { " bad" } else { "" };
        self.clock += 1;
        self.times.push(sighting.time_ns);
        self.marked += usize::from(sighting.packet().is_some_and(|packet| packet.datagram.is_marked()));
        let comment = comment.map_or_else(String::new, |comment| format!(": {comment}"));
        self.events.push(format!("{}{again}{bad}{comment}", NODES.get(node).unwrap_or(&"switch")));
        Ok(())
    }

    fn line(&mut self, _: Option<usize>, line: Line) -> Result<()> {
        self.events.push(format!("{} {}", line.act, line.text));
        Ok(())
    }

    fn other(&mut self, _: &str) -> Result<usize> {
        Ok(NODES.len())
    }

    fn first_trouble(&mut self) -> &mut Option<String> {
        &mut self.trouble
    }
}

impl Log {
    fn taken(&mut self) -> Vec<String> {
        mem::take(&mut self.events)
    }
}

/// The first WRITE of a long message, from the client, for this node or for all.
fn write_first(to: u8) -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures/04_rdma_write-multi-packet.pcapng");
    let mut reader = Reader::new(File::open(path).unwrap()).unwrap();
    loop {
        let sighting = reader.next().unwrap().unwrap();
        if sighting.packet().is_some_and(|packet| packet.name() == "RC RDMA Write First") {
            let mut frame = sighting.data.to_vec();
            frame[5] = to;
            return frame;
        }
    }
}

fn laid(text: &str) -> (Wire, Got, Log) {
    (Wire::parse(text, &NODES).unwrap(), Got::default(), Log::default())
}

#[test]
fn what_is_carried_is_recorded_as_it_arrives() {
    let frame = write_first(SERVER as u8);
    for (rule, arrivals, events) in [
        ("", 1, ["client"].as_slice()),
        ("drop", 0, &["client: lab: dropped"]),
        ("duplicate", 2, &["client", "client again: lab: duplicated"]),
        ("corrupt", 1, &["client bad: lab: corrupted"]),
        ("delay", 0, &["client: lab: delayed 5 ms"]),
    ] {
        let by = if rule == "delay" { " by 5 ms" } else { "" };
        let text = if rule.is_empty() { String::new() } else { format!("{rule} 1st packet{by}") };
        let (mut wire, mut got, mut log) = laid(&text);
        wire.time = Some(Duration::ZERO);
        let carried = wire.carry(CLIENT, &frame, &mut got, &mut log).unwrap();
        assert_eq!((carried.name, carried.goes_on), (Some("RC RDMA Write First"), arrivals > 0), "{rule}");
        let all = log.taken();
        let (line, packets) =
            if rule.is_empty() { (None, &all[..]) } else { all.split_last().map(|(l, p)| (Some(l), p)).unwrap() };
        assert!(packets.iter().zip(events).all(|(got, wanted)| got.starts_with(wanted)), "{rule}: {packets:?}");
        assert_eq!((packets.len(), got.taken()), (events.len(), vec![SERVER; arrivals]), "{rule}");
        // Copies have left in one moment, whenever they're taken down.
        assert_eq!(log.times, if rule == "duplicate" { vec![Some(0); 2] } else { vec![None] }, "{rule}");
        assert!(line.map_or(rule.is_empty(), |line| line.starts_with("rule RC RDMA Write First ")), "{line:?}");
        if rule == "delay" {
            assert_eq!(wire.due(), Some(Duration::from_millis(5)));
            wire.time = wire.due();
            wire.let_go(&mut got, &mut log).unwrap();
            assert_eq!((got.taken(), log.taken()), (vec![SERVER], vec!["rule RC RDMA Write First goes on".to_owned()]));
        }
    }
}

/// A switch records a frame when it comes out, and by then the rule has long been done.
#[test]
fn what_a_rule_has_done_is_recorded_behind_a_switch_too() {
    for (rule, events) in [
        ("duplicate", ["client", "client again: lab: duplicated"].as_slice()),
        ("corrupt", &["client bad: lab: corrupted"]),
        ("delay", &["client: lab: delayed 5 ms"]),
    ] {
        let by = if rule == "delay" { " by 5 ms" } else { "" };
        let (mut wire, mut got, mut log) = laid(&format!("link 1 Gbit/s 5 us; {rule} 1st packet{by}"));
        wire.time = Some(Duration::ZERO);
        wire.carry(CLIENT, &write_first(SERVER as u8), &mut got, &mut log).unwrap();
        for later in [10, 20] {
            wire.time = Some(Duration::from_millis(later));
            wire.let_go(&mut got, &mut log).unwrap();
            wire.cross(&mut got, &mut log).unwrap();
        }
        let packets: Vec<String> = log.taken().into_iter().filter(|event| event.starts_with("client")).collect();
        let is_said = packets.iter().zip(events).all(|(got, wanted)| got.starts_with(wanted));
        assert!(is_said && packets.len() == events.len(), "{rule}: {packets:?}");
    }
}

#[test]
fn nothing_passes_a_cable_that_is_cut() {
    for switch in ["", "link 1 Gbit/s 5 us; "] {
        let (mut wire, mut got, mut log) = laid(&format!("{switch}cut 1st packet from client-2"));
        let mut carried = |from: usize, to: usize| {
            wire.time = Some(wire.now() + Duration::from_millis(1));
            wire.carry(from, &write_first(to as u8), &mut got, &mut log).unwrap();
            wire.enter();
            wire.time = Some(wire.now() + Duration::from_millis(1));
            wire.cross(&mut got, &mut log).unwrap();
            (got.taken(), log.taken().concat())
        };
        assert_eq!(carried(CLIENT, OTHER).0, [OTHER]);
        let (arrived, text) = carried(OTHER, CLIENT);
        assert!(arrived.is_empty() && text.contains("and the cable cut"), "{text}");
        for (from, to, reached) in [
            (OTHER, SERVER, vec![]),
            (CLIENT, OTHER, vec![]),
            (CLIENT, SERVER, vec![SERVER]),
            (CLIENT, 0xff, vec![SERVER]),
        ] {
            let (arrived, text) = carried(from, to);
            assert_eq!(arrived, reached, "{switch}{from} to {to}: {text}");
            let is_told = text.contains("dropped, as the cable of client-2 is cut");
            assert_eq!(is_told, (from, to) != (CLIENT, SERVER), "{switch}{from} to {to}: {text}");
        }
    }
}

#[test]
fn what_crosses_a_switch_is_recorded_there() {
    let (mut wire, mut got, mut log) = laid("link 1 Gbit/s 5 us; duplicate 1st packet");
    wire.time = Some(Duration::ZERO);
    wire.carry(CLIENT, &write_first(SERVER as u8), &mut got, &mut log).unwrap();
    assert_eq!((log.taken().len(), got.taken().len()), (1, 0), "the rule's line alone");
    wire.enter();
    while let Some(due) = wire.due() {
        wire.time = Some(wire.now() + due);
        wire.cross(&mut got, &mut log).unwrap();
    }
    let log = log.taken().into_iter().filter(|event| event.starts_with("client")).collect::<Vec<_>>();
    let wanted = ["client", "client again: lab: duplicated by the rule: duplicate 1st packet"].map(str::to_owned);
    assert_eq!((&log[..], got.taken()), (&wanted[..], vec![SERVER, SERVER]));
}

#[test]
fn with_a_switch_each_frame_is_recorded_once_and_as_what_it_is() {
    for (rule, first) in
        [("drop 1st packet", "client: lab: dropped by the rule"), ("delay 1st packet by 1 ms", "client")]
    {
        let (mut wire, mut got, mut log) = laid(&format!("link 1 Gbit/s 5 us; {rule}"));
        wire.time = Some(Duration::ZERO);
        for _ in 0..2 {
            wire.carry(CLIENT, &write_first(SERVER as u8), &mut got, &mut log).unwrap();
            wire.enter();
            while let Some(due) = wire.due() {
                wire.time = Some(wire.now() + due);
                wire.let_go(&mut got, &mut log).unwrap();
                wire.cross(&mut got, &mut log).unwrap();
            }
        }
        let packets = log.taken().into_iter().filter(|event| event.starts_with("client")).collect::<Vec<_>>();
        assert!(packets[0].starts_with(first), "{packets:?}");
        assert_eq!(packets[1..], ["client again"], "{rule}: the second one has the first one's number");
    }
}

#[test]
fn whatever_is_done_to_a_frame_it_is_decoded_once() {
    for switch in ["", "link 1 Gbit/s 5 us"] {
        for (rule, times, recorded) in [
            ("", 1, 1),
            ("drop 1st packet", 1, 1),
            ("cut 1st packet", 1, 1),
            ("duplicate 1st packet", 1, 2),
            ("delay 1st packet by 1 ms", 1, 1),
            ("swap 1st packet", 1, 1),
            // What arrives is another frame than what was sent: each of the two is decoded.
            ("corrupt 1st packet", 2, 1),
        ] {
            let text = [switch, rule].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ");
            let (mut wire, mut got, mut log) = laid(&text);
            wire.time = Some(Duration::ZERO);
            let (frame, before) = (write_first(SERVER as u8), DECODED.get());
            wire.carry(CLIENT, &frame, &mut got, &mut log).unwrap();
            wire.enter();
            while let Some(due) = wire.due() {
                wire.time = Some(wire.now() + due);
                wire.let_go(&mut got, &mut log).unwrap();
                wire.cross(&mut got, &mut log).unwrap();
            }
            let packets = log.taken().into_iter().filter(|event| event.starts_with("client")).count();
            assert_eq!((DECODED.get() - before, packets), (times, recorded), "{text}");
        }
    }
}

#[test]
fn a_mark_of_the_switch_is_recorded_and_needs_no_second_decode() {
    let (mut wire, mut got, mut log) = laid("link 1 Gbit/s 5 us; ecn 0..1 B");
    wire.time = Some(Duration::ZERO);
    let mut frame = write_first(SERVER as u8);
    roce::link::set_traffic_class(&mut frame[14..], 2);
    let before = DECODED.get();
    // They come to the server's port at once, so one waits for the other.
    for from in [CLIENT, OTHER] {
        wire.carry(from, &frame, &mut got, &mut log).unwrap();
    }
    wire.enter();
    while let Some(due) = wire.due() {
        wire.time = Some(wire.now() + due);
        wire.cross(&mut got, &mut log).unwrap();
    }
    assert_eq!((DECODED.get() - before, log.marked), (2, 1), "{:?}", log.events);
}

#[test]
fn whoever_takes_nothing_is_named_and_what_is_held_at_the_end_is_told() {
    let (mut wire, mut got, mut log) = laid("swap 2nd packet; drop 3rd packet");
    got.full = Some(SERVER);
    let frame = write_first(SERVER as u8);
    wire.carry(CLIENT, &frame, &mut got, &mut log).unwrap();
    let full = "client: lab: dropped, as server takes nothing from the wire and its queue is full";
    assert_eq!(log.taken(), [full]);
    wire.carry(CLIENT, &frame, &mut got, &mut log).unwrap();
    log.taken();
    wire.end(&mut log).unwrap();
    let held = "rule RC RDMA Write First is still held back, and the run is over".to_owned();
    let unmet = "the rule `drop 3rd packet` never met its packet".to_owned();
    assert_eq!(log.taken(), [held, format!("trouble {unmet}")]);
    assert_eq!(log.trouble, Some(unmet));
}

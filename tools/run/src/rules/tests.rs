//! Rules tried on the frames of the bundled captures.

use super::*;
use crate::capture::Reader;
use crate::sighting::Lookout;
use roce::icrc::Icrc;
use roce::Frame;
use std::fs::File;

const NODES: [&str; 2] = ["server", "client"];
const CAPTURES: [&str; 5] = [
    "02_resources",
    "03_metadata_exchange",
    "04_rdma_write-multi-packet",
    "05_rdma_read",
    "06_send_recv_state_machine",
];

struct Sent {
    frame: Vec<u8>,
    from: usize,
    name: &'static str,
}

fn packets(capture: &str) -> Vec<Sent> {
    let path = format!("{}/../../captures/{capture}.pcapng", env!("CARGO_MANIFEST_DIR"));
    let (mut reader, mut all) = (Reader::new(File::open(path).unwrap()).unwrap(), Vec::new());
    while let Some(record) = reader.next().unwrap() {
        let Some(packet) = record.packet() else { continue };
        let from = NODES.iter().position(|node| record.node == Some(node)).unwrap();
        all.push(Sent { frame: record.data.to_vec(), from, name: packet.name() });
    }
    all
}

fn parse(text: &str) -> Rules {
    Rules::parse(text, &NODES).unwrap()
}

/// The places of the packets that a rule chooses.
fn chosen<'a>(rule: &str, packets: impl IntoIterator<Item = &'a Sent>) -> Vec<usize> {
    let (mut rules, mut lookout) = (parse(rule), Lookout::default());
    let judged = packets.into_iter().map(|sent| {
        let sighting = lookout.live(Some(NODES[sent.from]), &sent.frame);
        rules.judge(&sighting, sent.from, Some(1 - sent.from)).is_some()
    });
    let places: Vec<usize> = judged.enumerate().filter_map(|(place, yes)| yes.then_some(place)).collect();
    assert_eq!(rules.trouble().is_some(), places.is_empty(), "{rule}");
    places
}

#[test]
fn a_rule_finds_each_packet_by_its_name_and_number() {
    for capture in CAPTURES {
        let all = packets(capture);
        for (place, sent) in all.iter().enumerate() {
            let same = all[..=place].iter().filter(|other| (other.from, other.name) == (sent.from, sent.name));
            let suffix = ["th", "st", "nd", "rd"].get(same.clone().count()).unwrap_or(&"th");
            let rule = format!("drop {}{suffix} \"{}\" from {}", same.count(), sent.name, NODES[sent.from]);
            assert_eq!(chosen(&rule, &all), [place], "{capture}: {rule}");
        }
    }
}

#[test]
fn a_packet_goes_by_several_names() {
    let all = packets("03_metadata_exchange");
    for (names, count) in [
        (["RC Send Only", "Send Only", "send only"], 2),
        (["ConnectRequest", "REQ", "'REQ'"], 1),
        (["packet", "\"packet\"", "PACKET"], all.len()),
    ] {
        for name in names {
            assert_eq!(chosen(&format!("drop every {name}"), &all).len(), count, "{name}");
        }
    }
    let from_client = chosen("drop every packet from client", &all);
    assert_eq!(from_client, chosen("drop every packet to server", &all));
    assert!(from_client.len() < all.len());
    assert!(chosen("drop 21st packet ; ", &all).is_empty() && all.len() < 21);
    assert!(chosen("drop every packet from client to client", &all).is_empty());
}

/// Whichever packet is sent a second time: the rule finds that, and no other.
#[test]
fn what_is_sent_again_is_known() {
    for capture in CAPTURES {
        let all = packets(capture);
        for (place, sent) in all.iter().enumerate() {
            let repeated = all[..=place].iter().chain([sent]).chain(&all[place + 1..]);
            for rule in ["drop every again-sent packet", "drop only again-sent packet", "drop 1st again-sent packet"] {
                assert_eq!(chosen(rule, repeated.clone()), [place + 1], "{capture}: {} twice, {rule}", sent.name);
            }
        }
        assert!(chosen("drop every again-sent packet", &all).is_empty());
    }
}

#[test]
fn the_first_rule_acts_and_all_count() {
    let all = packets("03_metadata_exchange");
    let mut rules = parse("drop 2nd packet; delay every packet by 2 s; swap 3rd packet");
    let mut lookout = Lookout::default();
    let judged = all
        .iter()
        .filter_map(|sent| rules.judge(&lookout.live(None, &sent.frame), sent.from, None).map(|(act, ..)| act));
    let delay = Act::Delay(Duration::from_secs(2));
    assert_eq!(judged.take(3).collect::<Vec<_>>(), [delay, Act::Drop, delay]);
    assert_eq!(rules.trouble(), None);
    let rules = parse("drop 2nd packet; swap every packet");
    let unmet = "the rules `drop 2nd packet` and `swap every packet` never met their packets";
    assert_eq!(rules.trouble().as_deref(), Some(unmet));
}

#[test]
fn a_word_that_is_not_known_is_pointed_at() {
    for (rule, words, hint) in [
        ("dorp 1st packet", "dorp", "drop, duplicate, delay, swap, corrupt, cut"),
        ("drop first packet", "first", "1st, 2nd, 3rd"),
        ("drop 0th packet", "0th", "1st, 2nd, 3rd"),
        ("drop 1 packet", "1", "1st, 2nd, 3rd"),
        ("drop only packet", "packet", "only again-sent"),
        ("drop 1st \"RC Akcnowledge\" from server", "RC Akcnowledge", "ConnectRequest or REQ"),
        ("drop 1st \"RC Acknowledge\" fro server", "fro", "from NODE, to NODE"),
        ("drop 1st packet from sever", "sever", "the nodes are: server, client"),
        ("drop 1st packet by 2 s", "by", "`drop` takes no time"),
        ("delay 1st packet by 2 h", "h", "for example: by 200 ms"),
        ("delay 1st packet by 0 ms", "ms", "for example: by 200 ms"),
        ("delay 1st packet by 200ms soon", "soon", "a semicolon and a rule"),
    ] {
        // Also in a second rule, where the mark is below that one.
        let complaint = Rules::parse(&format!("drop every NAK; {rule}"), &NODES).unwrap_err().to_string();
        let lines: Vec<&str> = complaint.lines().collect();
        let mark = lines[1].find(rule).unwrap() + rule.find(words).unwrap();
        assert_eq!(lines[2], format!("{}{}", " ".repeat(mark), "^".repeat(words.len())), "{complaint}");
        assert!(complaint.contains(hint), "{complaint}");
    }
    for unfinished in ["drop", "drop 1st", "drop only", "drop 1st packet from", "delay 1st packet by"] {
        let complaint = Rules::parse(unfinished, &NODES).unwrap_err().to_string();
        assert_eq!(complaint.lines().nth(2).unwrap(), format!("{:>1$}", "^", unfinished.len() + 4), "{complaint}");
    }
}

#[test]
fn no_text_ends_in_a_panic() {
    let rule = "delay 21st again-sent \"RC Send Only\" from client to server by 200 ms; drop every NAK";
    for (place, c) in rule.char_indices() {
        for other in ["", "é", "\"", " ", ";", "9", "\n"] {
            let _ = Rules::parse(&format!("{}{other}{}", &rule[..place], &rule[place + c.len_utf8()..]), &NODES);
            let _ = Rules::parse(&format!("{}{other}", &rule[..place]), &NODES);
        }
    }
}

/// Sends packets through a rule, all at one moment.
fn pass(faults: &mut Rules, all: &[Sent], now: Duration) -> Vec<Passage> {
    let mut lookout = Lookout::default();
    let passed =
        all.iter().map(|sent| faults.pass(&lookout.live(None, &sent.frame), sent.from, Some(1 - sent.from), now));
    passed.collect()
}

/// Two packets that the client sends one after the other, without an answer between.
fn two_in_a_row() -> Vec<Sent> {
    let mut all = packets("04_rdma_write-multi-packet");
    let first = all.iter().position(|sent| sent.name == "RC RDMA Write First").unwrap();
    all.drain(first..first + 2).collect()
}

#[test]
fn what_becomes_of_a_frame_is_told() {
    let all = two_in_a_row();
    for (act, past, copies) in [
        ("drop", "dropped", 0),
        ("cut", "dropped, and the cable cut,", 0),
        ("duplicate", "duplicated", 2),
        ("corrupt", "corrupted", 1),
    ] {
        let rule = format!("{act} 1st \"RC RDMA Write First\"");
        let passage = pass(&mut parse(&rule), &all, Duration::ZERO).remove(0);
        let deed = format!("{past} by the rule: {rule}");
        assert_eq!(passage.line, Some(format!("RC RDMA Write First {deed}")));
        assert_eq!(passage.comment, Some(format!("lab: {deed}")));
        assert_eq!((passage.copies, passage.cuts, passage.then.is_some()), (copies, act == "cut", false));
    }
}

#[test]
fn a_corrupted_frame_is_wrong_in_its_icrc_and_nowhere_else() {
    for sent in CAPTURES.into_iter().flat_map(packets) {
        let (mut rules, mut lookout) = (parse("corrupt every packet"), Lookout::default());
        let sighting = lookout.live(None, &sent.frame);
        let got = rules.pass(&sighting, sent.from, None, Duration::ZERO).damaged.unwrap();
        let Frame::Roce(packet) = Frame::ethernet(&got) else { panic!("no packet") };
        assert_eq!((packet.icrc(), packet.name()), (Icrc::Bad, sent.name));
        let differing = got.iter().zip(&sent.frame).filter(|(now, before)| now != before).count();
        assert_eq!((differing, got.len()), (4, sent.frame.len()));
    }
}

#[test]
fn a_swapped_frame_goes_on_after_the_next_one_or_after_a_while() {
    let (all, mut swap, now) = (two_in_a_row(), parse("swap every packet"), Duration::from_secs(1));
    let passages = pass(&mut swap, &all, now);
    assert_eq!((passages[0].copies, passages[1].copies), (0, 1));
    assert_eq!((&passages[1].damaged, passages[1].then.as_ref().map(|then| &then.data)), (&None, Some(&all[0].frame)));
    assert_eq!(swap.due(), None);

    pass(&mut swap, &all[..1], now);
    let due = swap.due().unwrap();
    assert!(due > now && swap.release(now).is_none());
    let Released { from, to, frame, line } = swap.release(due).unwrap();
    assert_eq!((from, to, &frame.data), (all[0].from, Some(1 - all[0].from), &all[0].frame));
    assert!(line.contains("goes on alone") && swap.release(due).is_none(), "{line}");
}

#[test]
fn delayed_frames_go_on_in_their_order_and_no_more_than_a_link_holds() {
    let (all, mut delay, now) = (two_in_a_row(), parse("delay every packet by 300 ms"), Duration::from_secs(1));
    let due = now + Duration::from_millis(300);
    assert!(pass(&mut delay, &all, now).iter().all(|passage| passage.copies == 0 && passage.then.is_none()));
    assert_eq!((delay.due(), delay.release(now).is_some()), (Some(due), false));
    let release =
        |delay: &mut Rules| std::iter::from_fn(|| delay.release(due)).map(|released| released.frame.data).collect();
    let released: Vec<Vec<u8>> = release(&mut delay);
    assert_eq!(released, [all[0].frame.clone(), all[1].frame.clone()]);

    let held = (0..10_000).filter(|_| pass(&mut delay, &all[..1], now)[0].line.is_some()).count();
    assert!(held > 1000 && held < 10_000, "{held}");
    let dropped = pass(&mut delay, &all[..1], now).remove(0);
    let why = "lab: dropped, because so much is held back already";
    assert_eq!((dropped.copies, dropped.comment.as_deref()), (0, Some(why)));
    assert_eq!(release(&mut delay).len(), held);
    assert!(pass(&mut delay, &all[..1], now)[0].line.is_some(), "there is room again");
}

//! What is run: lessons with a fault on the wire, and programs of which one asks for what it may not have. And the captures that
//! somebody might have of each.

use crate::programs::support::{example, Check, Run};
use proptest::prelude::RngCore;
use proptest::test_runner::{RngAlgorithm, TestRng};
use roce::aeth::{Nak, Syndrome};
use roce::{Frame, LinkType, Packet};
use run::capture::Reader;
use std::collections::BTreeMap;
use wire::explain::Cause;

/// What runs: a lesson and its client's options.
const LESSONS: [(&str, &str); 7] = [
    ("02", ""),
    ("03", ""),
    ("04", "--len 4000"),
    ("05", "--len 4000"),
    ("06", ""),
    ("10", "--count 40 --depth 8"),
    ("11", "--transport rc"),
];
pub const ACTS: [&str; 5] = ["drop", "duplicate", "swap", "corrupt", "delay"];

/// What never gets through: a rule, and what may be said of it. These take seconds, as somebody must give up.
const NEVER: [(&str, &[Cause]); 4] = [
    ("drop every \"ConnectRequest\"", &[Cause::NoAnswer]),
    ("drop every \"ConnectReply\"", &[Cause::NeverThrough]),
    ("drop every \"RC Send Only\" from client", &[Cause::SilentPeer]),
    ("drop every \"RC Acknowledge\" from server", &[Cause::AnswersLost]),
];
/// The lesson of these: its client sends first, and waits for the answer.
const NEVER_IN: usize = 1;

/// What is refused while more is under way behind it: what it is called, the server, the client with BYTES in place of a length,
/// and the cause.
const REFUSED: [(&str, &str, &str, Cause); 3] = [
    (
        "refuse a WRITE with a wrong key",
        "ODD server sleep=200",
        "ODD client $SERVER write=555555555000,dead,ff*BYTES close",
        Cause::RemoteAccess,
    ),
    (
        "refuse a SEND that is too long",
        "ODD server room=64 sleep=200",
        "ODD client $SERVER send=ff*BYTES close",
        Cause::InvalidRequest,
    ),
    (
        "refuse the first of many SENDs",
        "ODD server room=8 sleep=200",
        "lesson-10 client -a $SERVER --op send --count 40 --depth 16",
        Cause::InvalidRequest,
    ),
];

/// One run of this many has one of NEVER, and one has one of REFUSED.
const ONE_OF: usize = 25;

/// What happens in a run, and so may be said of it.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The wire did this to one packet, or to none.
    Act(&'static str),
    Never(&'static [Cause]),
    Refused(Cause),
}

/// One run of the test.
pub struct Situation {
    pub fault: Fault,
    /// What all of its captures are counted as; if there is no name, it depends on the packet that was hit.
    pub name: Option<&'static str>,
    /// What repeats it.
    pub how: String,
    pub packets: Vec<Taken>,
    /// What was late or overtaken, or was the last of its kind, may have had no consequence: then nothing is to be said.
    pub has_consequence: bool,
}

/// How a capture was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cut {
    Whole,
    /// Each packet to its first 96 bytes.
    Short,
    /// The first packets are missing.
    Begin,
    /// The last ones are.
    End,
    /// Only the packets of one side are there.
    OneWay,
    /// Each packet is there twice, from before and after a router.
    Twice,
    /// Each packet ends behind its BTH: an ACK looks as a NAK.
    NoAeth,
}

impl Cut {
    /// Much can't be seen of one side alone, or without the headers behind the BTH.
    pub fn is_blind(self) -> bool {
        [Cut::OneWay, Cut::NoAeth].contains(&self)
    }
}

/// What somebody has recorded of a run.
pub struct Capture<'a> {
    pub cut: Cut,
    pub packets: &'a [Taken],
    /// This many bytes of each.
    snap: usize,
}

/// A packet of a run, and what the wire did to it.
#[derive(Clone)]
pub struct Taken {
    node: String,
    bytes: Vec<u8>,
    time_ns: u64,
    link: u16,
    /// The packet's class, and the rule's act, or that it refuses for good.
    pub hit: Option<(Class, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Message,
    Request,
    Answer,
}

fn packets(check: &Check) -> Vec<Taken> {
    let bytes = std::fs::read(&check.file).unwrap();
    let mut reader = Reader::new(bytes.as_slice()).unwrap();
    let mut taken = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        let act = record.comment.and_then(|comment| Some(comment.split("lab: ").nth(1)?.to_owned()));
        let Frame::Roce(packet) = Frame::decode(record.link, record.data) else { continue };
        let act = if refuses(&packet) { Some("refuse".to_owned()) } else { act };
        taken.push(Taken {
            node: record.node.unwrap_or_default().to_owned(),
            bytes: record.data.to_vec(),
            time_ns: record.time_ns.unwrap(),
            link: record.link.0,
            hit: act.map(|act| (class(&packet), act)),
        });
    }
    taken
}

/// Whether no packet behind the one that this answers has a chance.
fn refuses(packet: &Packet) -> bool {
    let verdict = packet.aeth().map(|aeth| aeth.verdict());
    matches!(verdict, Some(Syndrome::Nak(nak)) if nak != Nak::PsnSequence)
}

fn class(packet: &Packet) -> Class {
    match packet.cm() {
        Some(_) => Class::Message,
        None if packet.opcode.is_response() => Class::Answer,
        None => Class::Request,
    }
}

impl Capture<'_> {
    /// How many bytes of each packet are kept if each is in this tunnel: as much of the packet itself as without.
    pub fn snap_in(&self, wrap: impl Fn(&[u8]) -> Vec<u8>) -> usize {
        let around = self.packets.first().map_or(0, |packet| wrap(&packet.bytes).len() - packet.bytes.len());
        self.snap.saturating_add(around)
    }

    /// A plain pcap with nanoseconds, without any comment, each packet in this tunnel.
    pub fn file(&self, wrap: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
        let link = self.packets.first().map_or(LinkType::ETHERNET.0, |packet| packet.link);
        let (mut file, snap) = (Vec::new(), self.snap_in(&wrap));
        for word in [0xa1b2_3c4d, 4 << 16 | 2, 0, 0, 1 << 16, u32::from(link)] {
            file.extend(u32::to_le_bytes(word));
        }
        for packet in self.packets {
            let bytes = wrap(&packet.bytes);
            let kept = &bytes[..bytes.len().min(snap)];
            let (seconds, rest) = (packet.time_ns / 1_000_000_000, packet.time_ns % 1_000_000_000);
            for word in [seconds as u32, rest as u32, kept.len() as u32, bytes.len() as u32] {
                file.extend(word.to_le_bytes());
            }
            file.extend(kept);
        }
        file
    }
}

fn rng(seed: u64) -> TestRng {
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRng::from_seed(RngAlgorithm::ChaCha, &bytes)
}

/// How often each packet is in a capture, by sender and name.
fn names(packets: &[Taken]) -> BTreeMap<String, u32> {
    let mut names = BTreeMap::new();
    for packet in packets {
        if let Frame::Roce(roce) = Frame::decode(LinkType(packet.link), &packet.bytes) {
            *names.entry(format!("{} {}", packet.node, roce.name())).or_default() += 1;
        }
    }
    names
}

/// How many packets a node sends.
fn count_of(names: &BTreeMap<String, u32>, node: &str) -> usize {
    names.iter().filter(|(name, _)| name.starts_with(node)).map(|(_, count)| *count as usize).sum()
}

/// Runs this lesson, with a rule or without.
fn lesson(lesson: usize) -> Run {
    let (number, options) = LESSONS[lesson];
    let server = if number == "11" { options } else { "" };
    Run::lesson(number, server, options)
}

/// What each lesson sends if nothing goes wrong.
pub struct Undisturbed(Vec<BTreeMap<String, u32>>);

impl Undisturbed {
    pub fn run() -> Undisturbed {
        Undisturbed((0..LESSONS.len()).map(|number| names(&packets(&lesson(number).check().exits(0, 0)))).collect())
    }
}

impl Situation {
    /// The run of this seed, and a number below a limit as often as one is asked for.
    pub fn run(seed: u64, undisturbed: &Undisturbed) -> (Situation, impl FnMut(usize) -> usize) {
        let mut rng = rng(seed);
        let mut pick = move |most: usize| rng.next_u32() as usize % most;
        let situation = match pick(ONE_OF) {
            0 => Situation::never(&mut pick),
            1 => Situation::refused(&mut pick),
            _ => Situation::act(&mut pick, undisturbed),
        };
        (situation, pick)
    }

    fn never(pick: &mut impl FnMut(usize) -> usize) -> Situation {
        let (rule, causes) = NEVER[pick(NEVER.len())];
        let packets = packets(&lesson(NEVER_IN).wire(rule).check());
        let how = format!("lesson {}, {rule}", LESSONS[NEVER_IN].0);
        Situation { fault: Fault::Never(causes), name: Some(rule), how, packets, has_consequence: true }
    }

    /// The answer may be late: then all that was on its way is there before it.
    fn refused(pick: &mut impl FnMut(usize) -> usize) -> Situation {
        let (name, server, client, cause) = REFUSED[pick(REFUSED.len())];
        let bytes = (2000 + pick(30_000)).to_string();
        let [server, client] = [server, client].map(|program| program.replace("ODD", &example("odd_peer")));
        let run = Run::programs(&server, &client.replace("BYTES", &bytes));
        let is_late = pick(2) == 0;
        let run = if is_late { run.wire("delay every \"NAK\" by 20 ms") } else { run };
        let packets = packets(&run.check());
        assert!(packets.iter().any(|packet| packet.hit.is_some()), "{name}: nothing is refused");
        let how = format!("{name}, {bytes} bytes, its answer late: {is_late}");
        Situation { fault: Fault::Refused(cause), name: Some(name), how, packets, has_consequence: true }
    }

    fn act(pick: &mut impl FnMut(usize) -> usize, undisturbed: &Undisturbed) -> Situation {
        let number = pick(LESSONS.len());
        let undisturbed = &undisturbed.0[number];
        let (act, node) = (ACTS[pick(ACTS.len())], ["server", "client"][pick(2)]);
        // The last chance of eight has no fault: its packet is one too many.
        let nth = pick(count_of(undisturbed, node) * 8 / 7 + 1) + 1;
        let suffix = ["th", "st", "nd", "rd"].get(if nth / 10 == 1 { 0 } else { nth % 10 }).unwrap_or(&"th");
        let by = if act == "delay" { " by 900 ms" } else { "" };
        let rule = format!("{act} {nth}{suffix} packet from {node}{by}");
        let packets = packets(&lesson(number).wire(&rule).check());
        let has_consequence = act == "corrupt" || names(&packets) != *undisturbed;
        let how = format!("lesson {:?}, {rule}", LESSONS[number]);
        Situation { fault: Fault::Act(act), name: None, how, packets, has_consequence }
    }
}

/// The same at two places: behind the router the time to live is one less.
fn twice(packets: &[Taken]) -> Vec<Taken> {
    let routed = |packet: &Taken| {
        let mut second = packet.clone();
        let ip = if second.link == LinkType::ETHERNET.0 { 14 } else { 0 };
        second.bytes[ip + 8] -= 1;
        second.time_ns += 3000;
        second
    };
    packets.iter().flat_map(|packet| [packet.clone(), routed(packet)]).collect()
}

/// Looks at the seven captures of a run.
pub fn each_capture(all: &[Taken], mut pick: impl FnMut(usize) -> usize, mut look: impl FnMut(Capture<'_>)) {
    let (begin, end) = (pick(all.len() / 2 + 1), all.len() - pick(all.len() / 2 + 1));
    let one = ["server", "client"][pick(2)];
    let alone: Vec<Taken> = all.iter().filter(|packet| packet.node.starts_with(one)).cloned().collect();
    let doubled = twice(all);
    for (cut, packets, snap) in [
        (Cut::OneWay, &alone[..], usize::MAX),
        (Cut::Twice, &doubled[..], usize::MAX),
        (Cut::NoAeth, all, 14 + 20 + 8 + 12),
        (Cut::Whole, all, usize::MAX),
        (Cut::Short, all, 96),
        (Cut::Begin, &all[begin..], usize::MAX),
        (Cut::End, &all[..end], usize::MAX),
    ] {
        look(Capture { cut, packets, snap });
    }
}

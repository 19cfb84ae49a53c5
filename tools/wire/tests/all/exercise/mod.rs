//! Everything the library does with a capture, for inputs of any kind: the tests and the fuzzer call it.

use roce::icrc;
use roce::{Frame, LinkType};
use run::capture::Reader;
use run::look::Style;
use run::pcapng::{Section, Writer};
use run::{lanes, story};
use wire::compare::{compare, Capture, Report, Verdict};
use wire::{annotate, play, show};

/// Something done with a capture.
type Act = fn(&[u8]);

/// All that is done, each by its name.
pub const ACTS: [(&str, Act); 7] = [
    ("tsv", rows),
    ("ladder", ladder),
    ("bytes", one_packet),
    ("lanes", in_lanes),
    ("annotate", annotated),
    ("compare", judged),
    ("play", played),
];

/// Must not panic. What else must hold of any input is asserted.
#[allow(dead_code)] // One test takes them one at a time.
pub fn everything(bytes: &[u8]) {
    ACTS.iter().for_each(|(_, act)| act(bytes));
}

fn rows(bytes: &[u8]) {
    if let Ok(mut reader) = Reader::new(bytes) {
        let _ = show::tsv::write(&mut reader, &mut std::io::sink());
    }
}

fn ladder(bytes: &[u8]) {
    let style = Style { color: true, width: 80 };
    if let (Ok(mut first), Ok(mut again)) = (Reader::new(bytes), Reader::new(bytes)) {
        let clients = run::row::clients(&mut first);
        let _ = show::ladder::write(&mut again, clients, style, &mut std::io::sink());
    }
}

/// Any number will do: each byte of the input has its turn.
fn any_number(bytes: &[u8]) -> u64 {
    1 + u64::from(bytes.last().copied().unwrap_or(0)) % 16
}

fn one_packet(bytes: &[u8]) {
    if let Ok(mut reader) = Reader::new(bytes) {
        let which = show::bytes::Which::Frame(any_number(bytes));
        let _ = show::bytes::write(&mut reader, which, &mut std::io::sink());
    }
}

fn in_lanes(bytes: &[u8]) {
    let number = any_number(bytes);
    let style = Style { width: number as usize * 10, color: true };
    let _ = (lanes::text(bytes, style, 0..=u64::MAX), lanes::picture(bytes, number..=u64::MAX), lanes::ladder(bytes));
}

fn played(bytes: &[u8]) {
    if let Ok(run) = play::run(bytes, "any", None) {
        let _ = play::page::page(&run, &play::page::ladder(bytes));
    }
}

fn judged(bytes: &[u8]) {
    let as_mine = bytes.len() % 2 == 0;
    match mended(bytes) {
        Some(mended) => compared(&mended, as_mine),
        None => compared(bytes, as_mine),
    }
}

fn annotated(bytes: &[u8]) {
    if let (Ok(mut reader), Some(story)) = (Reader::new(bytes), story()) {
        let _ = annotate::annotate(&mut reader, story, &Section::default());
    }
}

/// One story is enough: its steps are of every kind.
fn story() -> Option<&'static story::Story> {
    static STORY: std::sync::OnceLock<Option<story::Story>> = std::sync::OnceLock::new();
    STORY.get_or_init(|| story::named("05").ok()).as_ref()
}

/// Any capture is like itself, unless it is too poor to be judged; and it can be compared with another one.
fn compared(bytes: &[u8], as_mine: bool) {
    let Some(capture) = capture(bytes) else { return };
    let report = compare(&capture, &capture);
    assert_ne!(report.verdict(), Verdict::Different, "not like itself: {report}");
    in_words(&report);
    match reference() {
        Some(reference) if as_mine => in_words(&compare(&capture, reference)),
        Some(reference) => in_words(&compare(reference, &capture)),
        None => {}
    }
}

fn in_words(report: &Report) {
    let _ = (report.to_string(), report.to_json());
}

fn capture(bytes: &[u8]) -> Option<Capture> {
    Capture::read(&mut Reader::new(bytes).ok()?).ok()
}

/// A capture that has a bit of everything.
fn reference() -> Option<&'static Capture> {
    static REFERENCE: std::sync::OnceLock<Option<Capture>> = std::sync::OnceLock::new();
    REFERENCE.get_or_init(|| capture(include_bytes!("../../../../../captures/05_rdma_read.pcapng"))).as_ref()
}

/// The same frames with ICRCs that fit, for a wrong one ends a comparison before it has begun. None without Ethernet,
/// or if the file is damaged.
fn mended(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut reader = Reader::new(bytes).ok()?;
    let mut writer = Writer::new(Vec::new(), LinkType::ETHERNET, &Section::default()).ok()?;
    while let Some(record) = reader.next().ok()? {
        if record.link != LinkType::ETHERNET {
            return None;
        }
        let mut frame = record.data.to_vec();
        let end = match Frame::ethernet(&frame) {
            Frame::Roce(packet) => {
                let end = packet.datagram.ip_offset + packet.datagram.wire_length;
                packet.expected_icrc().map(|sum| (end, sum))
            }
            Frame::Other(_) => None,
        };
        if let Some((end, sum)) = end {
            frame[end - icrc::LENGTH..end].copy_from_slice(&sum.to_le_bytes());
        }
        writer.packet(0, &frame, record.comment).ok()?;
    }
    writer.into_inner().ok()
}

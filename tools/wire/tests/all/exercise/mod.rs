//! Everything the library does with a capture, for inputs of any kind: the tests and the fuzzer call it.

use roce::{icrc, Frame, LinkType};
use run::capture::{Error, Events, Reader};
use run::look::Style;
use run::pcapng::{Section, Writer};
use run::{lanes, plot, story};
use std::sync::OnceLock;
use wire::compare::{compare, Capture, Verdict};
use wire::{annotate, explain, play, show};

/// Something done with a capture, which returns how many bytes it has made.
type Act = fn(&[u8]) -> Result<usize, Error>;

/// All that is done, each by its name.
pub const ACTS: [(&str, Act); 9] = [
    ("tsv", |file| written(|out| show::tsv::write(&mut Reader::new(file)?, out))),
    ("ladder", |file| {
        let style = Style { color: true, width: 80 };
        written(|out| show::ladder::write(&mut Reader::new(file)?, style, out))
    }),
    ("bytes", |file| {
        let which = show::bytes::Which::Frame(any_number(file));
        written(|out| show::bytes::write(&mut Reader::new(file)?, which, out))
    }),
    ("lanes", |file| {
        let style = Style { width: any_number(file) as usize * 10, color: true };
        let run = &Events::read(file)?;
        let (part, _) = lanes::picture(run, any_number(file)..=u64::MAX)?;
        Ok(lanes::text(run, style, 0..=u64::MAX)?.len() + part.len() + lanes::ladder(run)?.0.len())
    }),
    ("annotate", |file| {
        // One story is enough: its steps are of every kind.
        static STORY: OnceLock<story::Story> = OnceLock::new();
        let story = STORY.get_or_init(|| story::named("05").expect("a story of ours"));
        Ok(annotate::annotate(&mut Reader::new(file)?, story, &Section::default())?.file.len())
    }),
    ("compare", |file| compared(mended(file)?.as_deref().unwrap_or(file), file.len() % 2 == 0)),
    ("explain", |file| Ok(explain::explain(&mut Reader::new(file)?)?.to_string().len())),
    ("plot", |file| {
        let (seen, _) = plot::read(&mut Reader::new(file)?);
        Ok(seen.text().len() + seen.picture().0.len())
    }),
    ("play", |file| {
        let run = Events::most(Reader::new(file)?, play::MOST_KEPT);
        Ok(play::page::page(&play::run(&run, "any", None), &play::page::ladder(&run)).len())
    }),
];

/// Must not panic. What else must hold of any input is asserted.
#[allow(dead_code)] // One test takes them one at a time.
pub fn everything(bytes: &[u8]) {
    ACTS.iter().for_each(|(_, act)| drop(act(bytes)));
    if let Ok(told) = Reader::new(bytes).and_then(|mut reader| explain::explain(&mut reader)) {
        let kept = Events::read(bytes).map(|events| explain::explained(&events).to_string());
        assert_eq!(kept.ok(), Some(told.to_string()), "whether it was kept or not");
    }
}

fn written(write: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>) -> Result<usize, Error> {
    let mut out = Vec::new();
    write(&mut out).map(|()| out.len())
}

/// Any number will do: each byte of the input has its turn.
fn any_number(bytes: &[u8]) -> u64 {
    1 + u64::from(bytes.last().copied().unwrap_or(0)) % 16
}

/// Any capture is like itself, unless it is too poor to be judged; and it can be compared with one that has a bit of everything.
fn compared(bytes: &[u8], as_mine: bool) -> Result<usize, Error> {
    static REFERENCE: OnceLock<Capture> = OnceLock::new();
    let read = |bytes: &[u8]| Capture::read(&mut Reader::new(bytes)?);
    let bundled = include_bytes!("../../../../../captures/05_rdma_read.pcapng");
    let reference = REFERENCE.get_or_init(|| read(bundled).expect("a capture of ours"));
    let capture = read(bytes)?;
    let with_itself = compare(&capture, &capture);
    assert_ne!(with_itself.verdict(), Verdict::Different, "not like itself: {with_itself}");
    let (mine, other) = if as_mine { (&capture, reference) } else { (reference, &capture) };
    let reports = [with_itself, compare(mine, other)];
    Ok(reports.map(|report| report.to_string().len() + report.to_json().to_string().len()).iter().sum())
}

/// The same frames with ICRCs that fit, for a wrong one ends a comparison before it has begun. None without Ethernet.
fn mended(bytes: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let mut reader = Reader::new(bytes)?;
    let mut writer = Writer::new(Vec::new(), &Section::default())?;
    let interface = writer.interface(LinkType::ETHERNET, None)?;
    while let Some(record) = reader.next()? {
        if record.link != LinkType::ETHERNET {
            return Ok(None);
        }
        let mut frame = record.data.to_vec();
        let sum = match Frame::ethernet(&frame) {
            Frame::Roce(packet) => {
                let end = packet.datagram.ip_offset + packet.datagram.wire_length;
                packet.expected_icrc().map(|sum| (end, sum))
            }
            Frame::Other(_) => None,
        };
        if let Some((end, sum)) = sum {
            frame[end - icrc::LENGTH..end].copy_from_slice(&sum.to_le_bytes());
        }
        writer.packet(interface, 0, &frame, frame.len(), record.comment)?;
    }
    Ok(Some(writer.into_inner()?))
}

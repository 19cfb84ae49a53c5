//! A run file in which every sentence of the device and of `common` is another one. Whoever looks for facts doesn't notice.

use run::capture::Reader;
use run::file::{Event, Line};
use run::pcapng::{Section, Writer};
use run::said::Said;

/// The same run, told in other words; another seed gives others.
pub fn reworded(run: &[u8], seed: u64) -> Vec<u8> {
    let (mut reader, mut lot) = (Reader::new(run).unwrap(), seed);
    let mut writer = Writer::new(Vec::new(), &Section::default()).unwrap();
    while let Some(event) = reader.event().unwrap() {
        match event {
            Event::Line(line) => writer.line(&Line { text: told(&line, &mut lot), ..line.clone() }).unwrap(),
            Event::Packet(seen) => {
                let interface = writer.interface(seen.link, seen.node).unwrap();
                let time = seen.time_ns.unwrap_or_default();
                writer.packet(interface, time, seen.data, seen.length, seen.comment).unwrap();
            }
        }
    }
    writer.into_inner().unwrap()
}

/// What a line says now. The device's sentences go as a whole: their fields stay. In a line of `common`, the head, the call or kind
/// that it begins with, names and values stay. A lesson's own words are what its pages ask for.
fn told(line: &Line, lot: &mut u64) -> String {
    if line.program == Line::DEVICE {
        return line.text.split(' ').map(|_| word(lot)).collect::<Vec<_>>().join(" ");
    }
    let words = line.words();
    let (kept, prose) = match (Said::of(line), words.split_once(". Next: ")) {
        (Said::Call { .. } | Said::RegMr { .. } | Said::Post { .. }, _) => {
            words.split_at(words.find([' ', ':']).unwrap_or(words.len()))
        }
        (
            Said::Mr { .. }
            | Said::Qp { .. }
            | Said::Sge { .. }
            | Said::Wr { .. }
            | Said::Wc { .. }
            | Said::CmEvent { .. },
            _,
        ) => words.split_at(words.find(':').unwrap_or(words.len())),
        (_, Some((cause, _))) => words.split_at(cause.len() + ". Next: ".len()),
        _ => return line.text.clone(),
    };
    let is_english = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let other = |part: &str| if is_english(part.trim_matches([':', ','])) { word(lot) } else { part.to_owned() };
    let prose: Vec<String> = prose.split(' ').map(other).collect();
    format!("{}{kept}{}", &line.text[..line.text.len() - words.len()], prose.join(" "))
}

/// A word that nobody knows.
fn word(lot: &mut u64) -> String {
    *lot = lot.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (0..4 + (*lot >> 60) % 4).map(|at| char::from(b'a' + (*lot >> (8 + 5 * at)) as u8 % 26)).collect()
}

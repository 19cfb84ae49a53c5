//! One packet byte by byte: hexadecimal beside field, value and meaning.

use super::iwarp;
use super::parts::{parts, Part, Value};
use roce::link::{tunnels, Datagram};
use roce::packet::Frame;
use roce::tcp::Segment;
use run::capture::{Error, Reader, Record};
use run::file::Event;
use run::look::printable;
use run::sighting::Sighting;
use std::io::{Read, Write};
use std::str::FromStr;

/// What to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The frame with this number, which may be a log line.
    Frame(u64),
    /// The first packet of this step of the lesson, which the packets' comments tell.
    Step(u64),
}

impl FromStr for Which {
    type Err = String;

    fn from_str(word: &str) -> Result<Which, String> {
        let number = |digits: &str| digits.parse().ok().filter(|number| *number > 0);
        let which = number(word).map(Which::Frame).or_else(|| number(word.strip_prefix("step")?).map(Which::Step));
        which.ok_or_else(|| format!("`{word}` is neither a frame's number, like 10, nor a step, like step8"))
    }
}

/// Shows a frame of a capture.
pub fn write<R: Read>(reader: &mut Reader<R>, which: Which, out: &mut impl Write) -> Result<(), Error> {
    let mut count = 0;
    while let Some(event) = reader.event()? {
        count += 1;
        let wanted = match (&event, which) {
            (_, Which::Frame(number)) => number == count,
            (Event::Packet(sighting), Which::Step(step)) => {
                sighting.comment.is_some_and(|comment| comment.starts_with(&format!("Step {step}:")))
            }
            (Event::Line(_), Which::Step(_)) => false,
        };
        if wanted {
            let text = match event {
                Event::Packet(sighting) => frame(&sighting),
                Event::Line(line) => format!("frame {count}, {} on {}: {}\n", line.program, line.node, line.text),
            };
            out.write_all(text.as_bytes())?;
            return Ok(out.flush()?);
        }
    }
    Err(Error::msg(match which {
        Which::Frame(number) => format!("there is no frame {number}: the file has {count}"),
        Which::Step(step) => format!("no packet's comment begins with `Step {step}:`"),
    }))
}

fn frame(sighting: &Sighting) -> String {
    let record = &sighting.record;
    let Record { number, data, length, .. } = *record;
    let recorded = if data.len() < length { format!(", {} recorded", data.len()) } else { String::new() };
    let comment: String =
        record.comment.iter().flat_map(|text| text.lines()).map(|line| printable(line) + "\n").collect();
    let (title, rest) = match &sighting.frame {
        Frame::Roce(packet) => {
            let Datagram { src, dst, .. } = packet.datagram;
            let sections = parts(sighting, packet).iter().map(|part| section(part, data)).collect();
            let inside = packet.datagram.is_tunnelled.then(|| format!(", inside {}", tunnels(record.link, data)));
            (format!("{}, {src} -> {dst}{}", packet.name(), inside.unwrap_or_default()), sections)
        }
        Frame::Other(other) => match sighting.iwarp() {
            Some(brought) => {
                let Segment { src, dst, .. } = brought.segment;
                let sections = iwarp::parts(record, brought).iter().map(|part| section(part, data)).collect();
                (format!("{}, {src} -> {dst}", run::iwarp::label(brought)), sections)
            }
            None => (other.to_string(), dump(0, data)),
        },
    };
    format!("frame {number}, {length} bytes{recorded}: {title}\n{comment}{rest}")
}

fn section(part: &Part, bytes: &[u8]) -> String {
    let Part { title, start, length, values } = part;
    let rows = match values.is_empty() {
        true => dump(*start, bytes.get(*start..bytes.len().min(start + length)).unwrap_or(&[])),
        false => values.iter().map(|value| rows(value, bytes)).collect(),
    };
    format!("\n{title}, {length} bytes\n{rows}")
}

fn rows(field: &Value, bytes: &[u8]) -> String {
    let Value { name, value, meaning, .. } = field;
    let (at, end) = field.span();
    let Some(part) = bytes.get(at..end) else { return row(at, "", name, value, meaning) };
    if field.bits % 8 != 0 {
        return row(at, &pattern(part, field), name, value, meaning);
    }
    let (first, more) = part.split_at(part.len().min(COLUMNS));
    let more = more.chunks(COLUMNS).enumerate();
    let more = more.map(|(i, chunk)| row(at + (i + 1) * COLUMNS, &hex(chunk), "", "", ""));
    row(at, &hex(first), name, value, meaning) + &more.collect::<String>()
}

/// Bytes in the left column of a field's row.
const COLUMNS: usize = 8;

fn row(at: usize, left: &str, name: &str, value: &str, meaning: &str) -> String {
    let line = format!("  {at:04x}  {left:26}  {name:23}  {value:18}  {meaning}");
    line.trim_end().to_owned() + "\n"
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// A field that does not fill its bytes: the bits that belong to it, dots for the others.
fn pattern(bytes: &[u8], field: &Value) -> String {
    let first = field.bit % 8;
    let bit = |at: usize| match (bytes[at / 8] >> (7 - at % 8) & 1, (first..first + field.bits).contains(&at)) {
        (_, false) => '.',
        (0, true) => '0',
        (_, true) => '1',
    };
    let byte = |at: usize| (at * 8..at * 8 + 8).map(bit).collect::<String>();
    (0..bytes.len()).map(byte).collect::<Vec<_>>().join(" ")
}

/// Sixteen bytes a line, with the letters they would be. Lines that repeat the one before are counted.
fn dump(start: usize, bytes: &[u8]) -> String {
    let (mut text, mut lines) = (String::new(), bytes.chunks(16).enumerate().peekable());
    while let Some((i, line)) = lines.next() {
        let printable = |&byte: &u8| if (0x20..0x7f).contains(&byte) { char::from(byte) } else { '.' };
        let letters: String = line.iter().map(printable).collect();
        text += &format!("  {:04x}  {:47}  {letters}\n", start + i * 16, hex(line));
        let repeated = std::iter::from_fn(|| lines.next_if(|(_, next)| *next == line)).count();
        text += &match repeated {
            0 => String::new(),
            1 => "        (the same line once more)\n".to_owned(),
            _ => format!("        (the same line {repeated} times more)\n"),
        };
    }
    text
}

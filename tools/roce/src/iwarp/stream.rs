//! From TCP segments to units.

use super::headers::{mpa, startup, untagged};
use super::{crc32c, Crc, Kind, Unit, MOST_PRIVATE, REPLY, REQUEST};
use crate::tcp::Segment;
use rustc_hash::FxHashMap;
use std::net::IpAddr;

/// How many connections of a capture are followed; those that begin later aren't.
const MOST: usize = 1024;

/// Why nobody can tell what a segment brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Bytes before it are missing in the recording, so that nobody knows where a unit begins.
    Gap,
    /// The recording has only its beginning.
    Cut,
    /// What should be a unit can't be one.
    Garbled,
    /// The two sides agreed on markers, which are left out of this decoder.
    Markers,
}

impl Doubt {
    /// The reason, to be read after "cannot tell".
    pub fn words(self) -> &'static str {
        match self {
            Doubt::Gap => "bytes before it are missing",
            Doubt::Cut => "the recording cuts it",
            Doubt::Garbled => "this is no unit of MPA",
            Doubt::Markers => "there are markers in it",
        }
    }
}

/// What a TCP segment brings to an iWARP connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brought {
    pub segment: Segment,
    /// Whether it comes from the side that sent the MPA Request.
    pub from_client: bool,
    /// Its sequence number and the one that it acknowledges, counted from the first byte of RDMA in that direction.
    pub sequence: i64,
    pub acknowledged: i64,
    /// Whether all of its bytes were there before: TCP has sent them again.
    pub again: bool,
    /// The units that end in it.
    pub units: Vec<Unit>,
    /// How many bytes of the next unit have come so far.
    pub begun: usize,
    pub doubt: Option<Doubt>,
}

/// All iWARP connections of a capture.
#[derive(Clone, Debug, Default)]
pub struct Streams(FxHashMap<[(IpAddr, u16); 2], Stream>);

/// A connection; the first end is the client's.
#[derive(Clone, Debug)]
struct Stream {
    ways: [Way; 2],
    has_crc: bool,
}

/// One direction.
#[derive(Clone, Debug)]
struct Way {
    /// The sequence number of its first byte, and of the one that comes next.
    first: u32,
    next: u32,
    /// Bytes of a unit that hasn't ended. Less than a unit, which is at most 64 KiB.
    held: Vec<u8>,
    /// Whether its start-up frame is over.
    has_started: bool,
    /// Whether the other side wants markers in what comes after that.
    has_markers: bool,
    doubt: Option<Doubt>,
}

impl Way {
    fn new(first: u32) -> Way {
        Way { first, next: first, held: Vec::new(), has_started: false, has_markers: false, doubt: None }
    }
}

impl Streams {
    /// The next TCP segment of a recording, and the frame that it's in; None if it isn't one of an iWARP connection.
    pub fn see(&mut self, segment: &Segment, frame: &[u8]) -> Option<Brought> {
        let payload = segment.payload(frame);
        let ends = [(segment.src, segment.src_port), (segment.dst, segment.dst_port)];
        let back = [ends[1], ends[0]];
        let begins = payload.starts_with(REQUEST) && (self.0.len() < MOST || self.0.contains_key(&ends));
        let is_known = self.0.get(&ends).is_some_and(|stream| segment.sequence == stream.ways[0].first);
        if begins && !is_known && !self.0.contains_key(&back) {
            let ways = [Way::new(segment.sequence), Way::new(segment.acknowledgement)];
            self.0.insert(ends, Stream { ways, has_crc: false });
        }
        let (stream, from) = match self.0.get_mut(&ends) {
            Some(stream) => (stream, 0),
            None => (self.0.get_mut(&back)?, 1),
        };
        Some(stream.see(from, segment, payload))
    }
}

impl Stream {
    fn see(&mut self, from: usize, segment: &Segment, payload: &[u8]) -> Brought {
        let at = segment.payload_offset;
        let since = |number: u32, first: u32| i64::from(number.wrapping_sub(first) as i32);
        let peer = self.ways[1 - from].first;
        let way = &mut self.ways[from];
        let (sequence, acknowledged) = (since(segment.sequence, way.first), since(segment.acknowledgement, peer));
        let ahead = since(segment.sequence, way.next);
        let is_old = segment.length > 0 && ahead + segment.length as i64 <= 0;
        let (units, doubt) = match usize::try_from(-ahead) {
            _ if segment.length == 0 || is_old => (Vec::new(), None),
            // What was there before is left out.
            Ok(known) => self.take(from, payload.get(known..).unwrap_or_default(), segment.length - known, at + known),
            Err(_) => (Vec::new(), Some(Doubt::Gap)),
        };
        let begun = self.ways[from].held.len();
        let segment = *segment;
        Brought { segment, from_client: from == 0, sequence, acknowledged, again: is_old, units, begun, doubt }
    }

    /// Takes bytes that are next; `length` is how many there were on the wire.
    fn take(&mut self, from: usize, bytes: &[u8], length: usize, at: usize) -> (Vec<Unit>, Option<Doubt>) {
        let way = &mut self.ways[from];
        way.next = way.next.wrapping_add(length as u32);
        if bytes.len() < length {
            way.doubt.get_or_insert(Doubt::Cut);
        }
        if way.doubt.is_some() {
            way.held.clear();
            return (Vec::new(), way.doubt);
        }
        let earlier = way.held.len();
        let mut all = std::mem::take(&mut way.held);
        all.extend(bytes);
        let (mut units, mut start) = (Vec::new(), 0);
        while start < all.len() {
            match self.next(from, &all[start..]) {
                Ok(Some((kind, crc, length))) => {
                    let bytes = all[start..start + length].to_vec();
                    units.push(Unit { kind, bytes, crc, start: start.checked_sub(earlier).map(|place| at + place) });
                    start += length;
                }
                Ok(None) => break,
                Err(doubt) => {
                    self.ways[from].doubt = Some(doubt);
                    return (units, Some(doubt));
                }
            }
        }
        all.drain(..start);
        self.ways[from].held = all;
        (units, None)
    }

    /// The unit that these bytes begin with: its kind and length. None if it hasn't ended.
    fn next(&mut self, from: usize, bytes: &[u8]) -> Result<Option<(Kind, Crc, usize)>, Doubt> {
        let way = &mut self.ways[from];
        if way.has_started {
            return if way.has_markers { Err(Doubt::Markers) } else { unit(bytes, self.has_crc) };
        }
        let (key, kind) = if from == 0 { (REQUEST, Kind::Request) } else { (REPLY, Kind::Reply) };
        if !bytes.iter().zip(key).all(|(byte, expected)| byte == expected) {
            return Err(Doubt::Garbled);
        }
        let Some(header) = bytes.get(..startup::HEADER.length) else { return Ok(None) };
        let private = startup::LENGTH.read(header).unwrap_or_default() as usize;
        if private > MOST_PRIVATE {
            return Err(Doubt::Garbled);
        }
        if bytes.len() < header.len() + private {
            return Ok(None);
        }
        way.has_started = true;
        // Either side may ask for CRCs; then both use them. Markers are for the one who asks.
        self.has_crc |= startup::CRC.read(header) == Some(1);
        self.ways[1 - from].has_markers |= startup::MARKERS.read(header) == Some(1);
        Ok(Some((kind, Crc::Unused, header.len() + private)))
    }
}

/// The unit behind the start-up: length, DDP segment, padding to a multiple of four, CRC.
fn unit(bytes: &[u8], has_crc: bool) -> Result<Option<(Kind, Crc, usize)>, Doubt> {
    let Some(length) = mpa::LENGTH.read(bytes) else { return Ok(None) };
    let padded = (2 + length as usize).next_multiple_of(4);
    // Less than the shortest header: nobody sends that.
    if length < 14 {
        return Err(Doubt::Garbled);
    }
    let Some(unit) = bytes.get(..padded + 4) else { return Ok(None) };
    let is_tagged = unit[2] & 0x80 != 0;
    if !is_tagged && (length as usize) < untagged::HEADER.length {
        return Err(Doubt::Garbled);
    }
    let (covered, sum) = unit.split_at(padded);
    let crc = match has_crc {
        false => Crc::Unused,
        true if sum == crc32c::of(covered).to_le_bytes() => Crc::Ok,
        true => Crc::Bad,
    };
    Ok(Some((Kind::Rdmap(unit[3] & 0x0f), crc, unit.len())))
}

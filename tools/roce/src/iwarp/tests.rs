use super::*;
use crate::tcp::Segment;
use crate::LinkType;

const CLIENT: ([u8; 4], u16, u32) = ([10, 0, 0, 2], 40_000, 1000);
const SERVER: ([u8; 4], u16, u32) = ([10, 0, 0, 1], 7471, 0xffff_fff0);

/// An Ethernet frame with a TCP segment from one side, whose first byte has this number in its stream.
fn frame(from: ([u8; 4], u16, u32), at: u32, payload: &[u8]) -> Vec<u8> {
    let to = if from == CLIENT { SERVER } else { CLIENT };
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0]);
    frame.extend((40 + payload.len() as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    frame.extend(from.0);
    frame.extend(to.0);
    frame.extend(from.1.to_be_bytes());
    frame.extend(to.1.to_be_bytes());
    frame.extend(from.2.wrapping_add(at).to_be_bytes());
    frame.extend(to.2.to_be_bytes());
    frame.extend([0x50, 0x10, 0, 0, 0, 0, 0, 0]);
    frame.extend(payload);
    frame
}

fn see(streams: &mut Streams, frame: &[u8]) -> Option<Brought> {
    streams.see(&Segment::read(LinkType::ETHERNET, frame).unwrap(), frame)
}

fn names(brought: &Brought) -> Vec<&'static str> {
    brought.units.iter().map(|unit| unit.kind.name()).collect()
}

fn startup(key: &[u8; 16], flags: u8) -> Vec<u8> {
    [&key[..], &[flags | 0x10, 2, 0, 4, 0, 3, 0, 5]].concat()
}

/// A unit with its padding and CRC.
fn unit(ddp: &[u8]) -> Vec<u8> {
    let mut bytes = (ddp.len() as u16).to_be_bytes().to_vec();
    bytes.extend(ddp);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes.extend(crc32c::of(&bytes).to_le_bytes());
    bytes
}

fn send(text: &[u8]) -> Vec<u8> {
    unit(&[&[0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0], text].concat())
}

/// A connection that is past its start-up, and where each stream goes on.
fn connected(flags: u8) -> Streams {
    let mut streams = Streams::default();
    let request = see(&mut streams, &frame(CLIENT, 0, &startup(REQUEST, flags))).unwrap();
    assert_eq!((names(&request), request.units[0].reads()), (vec!["MPA Request"], Some([3, 5])));
    let reply = see(&mut streams, &frame(SERVER, 0, &startup(REPLY, flags))).unwrap();
    assert_eq!((names(&reply), reply.from_client, reply.sequence), (vec!["MPA Reply"], false, 0));
    streams
}
const AFTER: u32 = 24;

#[test]
fn units_are_found_wherever_segments_end() {
    let write = unit(&[&[0xc1, 0x40, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0x20, 0][..], b"12345"].concat());
    let all = [send(b"hello"), write, send(&[7; 3000])].concat();
    for size in [1, 7, 64, 1448, all.len()] {
        let (mut streams, mut found, mut at) = (connected(0), Vec::new(), AFTER);
        for piece in all.chunks(size) {
            let brought = see(&mut streams, &frame(CLIENT, at, piece)).unwrap();
            assert_eq!(brought.doubt, None);
            at += piece.len() as u32;
            found.extend(brought.units);
        }
        let kinds: Vec<_> = found.iter().map(|unit| (unit.kind.name(), unit.payload().len())).collect();
        assert_eq!(kinds, [("RDMAP Send", 5), ("RDMAP Write", 5), ("RDMAP Send", 3000)], "{size}");
        assert_eq!(found[0].queued(), Some([0, 1, 0]));
        assert_eq!((found[1].place(), found[1].is_last()), (Some((0x102, 0x2000)), true));
        assert!(found.iter().all(|unit| unit.crc == Crc::Unused));
    }
}

#[test]
fn a_unit_knows_where_it_is_in_its_frame() {
    let mut streams = connected(0);
    let (one, two) = (send(b"one"), send(b"two"));
    let first = frame(CLIENT, AFTER, &[&one[..], &two[..10]].concat());
    let brought = see(&mut streams, &first).unwrap();
    assert_eq!((brought.units[0].start, brought.begun), (Some(54), 10));
    assert_eq!(first[54..54 + one.len()], brought.units[0].bytes[..]);
    let brought = see(&mut streams, &frame(CLIENT, AFTER + one.len() as u32 + 10, &two[10..])).unwrap();
    assert_eq!((brought.units[0].start, brought.units[0].payload()), (None, &b"two"[..]));
}

#[test]
fn the_crc_is_checked_where_one_side_has_asked_for_it() {
    const WANTS_CRC: u8 = 0x40;
    let mut bad = send(b"hello");
    bad[22] ^= 1;
    for (bytes, crc) in [(send(b"hello"), Crc::Ok), (bad, Crc::Bad)] {
        assert_eq!(see(&mut connected(WANTS_CRC), &frame(CLIENT, AFTER, &bytes)).unwrap().units[0].crc, crc);
        assert_eq!(see(&mut connected(0), &frame(CLIENT, AFTER, &bytes)).unwrap().units[0].crc, Crc::Unused);
    }
}

#[test]
fn what_comes_again_and_what_comes_after_a_gap_is_told_from_the_rest() {
    let mut streams = connected(0);
    let (one, two) = (send(b"one"), send(b"two"));
    let (first, second) = (AFTER, AFTER + one.len() as u32);
    let after_gap = see(&mut streams, &frame(CLIENT, second, &two)).unwrap();
    assert_eq!((names(&after_gap), after_gap.doubt), (vec![], Some(Doubt::Gap)));
    assert_eq!(names(&see(&mut streams, &frame(CLIENT, first, &one)).unwrap()), ["RDMAP Send"]);
    let again = see(&mut streams, &frame(CLIENT, first, &one)).unwrap();
    assert!(again.again && again.units.is_empty() && again.doubt.is_none());
    // TCP may send the old and the new in one.
    let both = see(&mut streams, &frame(CLIENT, first, &[one, two].concat())).unwrap();
    assert_eq!((names(&both), both.again, both.units[0].payload()), (vec!["RDMAP Send"], false, &b"two"[..]));
}

#[test]
fn what_cannot_be_told_is_said_to_be_so_and_nothing_is_made_up() {
    // A length that is less than a header's; a recording that is cut; markers; another key.
    let mut streams = connected(0);
    let doubt = |brought: Option<Brought>| brought.and_then(|brought| brought.doubt);
    assert_eq!(doubt(see(&mut streams, &frame(CLIENT, AFTER, &[0, 3, 0x41, 0x43]))), Some(Doubt::Garbled));
    assert_eq!(doubt(see(&mut streams, &frame(CLIENT, AFTER + 4, &send(b"hello")))), Some(Doubt::Garbled));
    let whole = frame(CLIENT, AFTER, &send(b"hello"));
    assert_eq!(doubt(see(&mut connected(0), &whole[..whole.len() - 1])), Some(Doubt::Cut));
    assert_eq!(doubt(see(&mut connected(0x80), &whole)), Some(Doubt::Markers));
    // Without its MPA Request a connection is TCP and no more.
    assert_eq!(see(&mut Streams::default(), &whole), None);
    let mut other = Streams::default();
    see(&mut other, &frame(CLIENT, 0, &startup(REQUEST, 0)));
    assert_eq!(doubt(see(&mut other, &frame(SERVER, 0, b"HTTP/1.1 400 Bad Request"))), Some(Doubt::Garbled));
}

#[test]
fn nothing_is_too_strange_to_be_read() {
    let mut state = 1u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    for length in 0..600 {
        let (mut streams, mut at) = (connected(0x40), AFTER);
        for _ in 0..4 {
            let mut bytes: Vec<u8> = (0..length).map(|_| random()).collect();
            // Mostly short units, so that they end.
            bytes.iter_mut().step_by(31).for_each(|byte| *byte = 0);
            let brought = see(&mut streams, &frame(CLIENT, at, &bytes)).unwrap();
            for unit in &brought.units {
                let _ = (unit.headers(), unit.payload(), unit.place(), unit.queued(), unit.wanted(), unit.error());
                let _ = (unit.invalidated(), unit.reads(), unit.is_last());
            }
            at += length;
        }
    }
}

#[test]
fn the_headers_of_a_read_request_and_of_a_terminate() {
    let mut streams = connected(0);
    let untagged =
        |opcode: u8, queue: u8| [[0x41, 0x40 | opcode, 0, 0, 0, 0, 0, 0, 0, queue, 0, 0, 0, 1, 0, 0, 0, 0]].concat();
    let asked =
        [&[0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 8][..], &[0, 0, 0, 60], &[0, 0, 0, 7], &[0, 0, 0, 0, 0, 0, 0, 6]].concat();
    let read = unit(&[untagged(1, 1), asked].concat());
    let terminate = unit(&[untagged(7, 2), vec![0x01, 0x02, 0, 0]].concat());
    let brought = see(&mut streams, &frame(CLIENT, AFTER, &[read, terminate].concat())).unwrap();
    assert_eq!(brought.units[0].wanted(), Some((60, (7, 6), (9, 8))));
    let [layer, kind, code] = brought.units[1].error().unwrap();
    assert_eq!((terminate::layer(layer), terminate::error(layer, kind, code)), ("RDMAP", "access rights violation"));
}

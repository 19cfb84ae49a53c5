//! Captures in every variant of the two formats are read; damaged ones are refused with the offset.

use crate::files::{self, frames, Recorded};
use roce::LinkType;
use testkit::frames::conversation;

fn u32s(big: bool, values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| if big { value.to_be_bytes() } else { value.to_le_bytes() }).collect()
}

fn pcap(big: bool, magic: u32, link: u32) -> Vec<u8> {
    let mut bytes = u32s(big, &[magic, 0, 0, 0, 65535, link]);
    bytes.extend(u32s(big, &[7, 5, 3, 100]));
    bytes.extend([1, 2, 3]);
    bytes.extend(u32s(big, &[8, 6, 0, 0]));
    bytes
}

#[test]
fn pcap_in_both_byte_orders_and_both_units() {
    for big in [false, true] {
        for (magic, unit) in [(0xa1b2_c3d4, 1000), (0xa1b2_3c4d, 1)] {
            let raw =
                |ns, data: &[u8]| Recorded { link: LinkType::RAW, time_ns: Some(ns), ..Recorded::of(data.to_vec()) };
            let first = Recorded { length: 100, ..raw(7_000_000_000 + 5 * unit, &[1, 2, 3]) };
            assert_eq!(frames(&pcap(big, magic, 101)), [first, raw(8_000_000_000 + 6 * unit, &[])]);
        }
    }
}

/// A pcapng block; `body` is filled up to a multiple of four bytes.
fn block(big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let length = body.len() as u32 + 12;
    [u32s(big, &[kind, length]), body, u32s(big, &[length])].concat()
}

fn section(big: bool) -> Vec<u8> {
    block(big, 0x0a0d_0d0a, &u32s(big, &[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]))
}

fn u16s(big: bool, values: &[u16]) -> Vec<u8> {
    values.iter().flat_map(|value| if big { value.to_be_bytes() } else { value.to_le_bytes() }).collect()
}

fn interface(big: bool, link: u16, snap_length: u32, options: &[u8]) -> Vec<u8> {
    block(big, 1, &[u16s(big, &[link, 0]), u32s(big, &[snap_length]), options.to_vec()].concat())
}

fn enhanced(big: bool, interface: u32, ticks: u64, data: &[u8]) -> Vec<u8> {
    let length = data.len() as u32;
    let head = u32s(big, &[interface, (ticks >> 32) as u32, ticks as u32, length, length + 9]);
    block(big, 6, &[head, data.to_vec()].concat())
}

#[test]
fn pcapng_in_both_byte_orders_with_every_clock() {
    for big in [false, true] {
        let resolution = |value: u8| [u16s(big, &[9, 1]), vec![value, 0, 0, 0]].concat();
        let offset = [u16s(big, &[14, 8]), if big { 10u64.to_be_bytes() } else { 10u64.to_le_bytes() }.to_vec()];
        let bytes = [
            section(big),
            interface(big, 1, 0, &[]),
            interface(big, 113, 0, &resolution(9)),
            interface(big, 276, 0, &resolution(0x80 | 10)),
            interface(big, 101, 0, &offset.concat()),
            block(big, 5, &[0; 12]), // statistics: skipped
            enhanced(big, 0, 3_000_001, &[1]),
            enhanced(big, 1, 3_000_001, &[2, 3]),
            enhanced(big, 2, 1536, &[4, 5, 6, 7]),
            enhanced(big, 3, 1_000_000, &[]),
        ]
        .concat();
        let packets = frames(&bytes);
        let told: Vec<_> = packets.iter().map(|packet| (packet.link.0, packet.time_ns.unwrap())).collect();
        assert_eq!(told, [(1, 3_000_001_000), (113, 3_000_001), (276, 1_500_000_000), (101, 11_000_000_000)]);
        assert_eq!((packets[2].data.as_slice(), packets[2].length), (&[4, 5, 6, 7][..], 13));
    }
}

#[test]
fn a_second_section_may_have_another_byte_order_and_begins_anew() {
    let first = [section(false), interface(false, 1, 0, &[]), enhanced(false, 0, 1, &[1])].concat();
    let second = [section(true), interface(true, 101, 2, &[])].concat();
    let simple = block(true, 3, &[u32s(true, &[5]), vec![8, 9]].concat());
    let expected = Recorded { link: LinkType::RAW, length: 5, ..Recorded::of(vec![8, 9]) };
    assert_eq!(frames(&[first, second, simple].concat())[1], expected);
}

/// Runs to the end and returns the message of the error.
fn failure(bytes: &[u8]) -> String {
    files::read(bytes).unwrap_err().to_string()
}

#[test]
fn errors_name_the_byte() {
    assert!(failure(b"").contains("too short"));
    assert!(failure(b"hello world").contains("byte 0"));
    assert!(failure(&[0x1f, 0x8b, 8, 0]).contains("`gzip -d`"));
    let good = pcap(false, 0xa1b2_c3d4, 1);
    assert!(failure(&good[..20]).contains("file header that begins at byte 0"));
    assert!(failure(&good[..30]).contains("packet header that begins at byte 24"));
    assert!(failure(&good[..42]).contains("packet that begins at byte 24"));
    let mut huge = good.clone();
    huge[32..36].fill(0xff);
    assert_eq!(failure(&huge), "the file is damaged at byte 24: a packet cannot have 4294967295 bytes");

    let start = [section(false), interface(false, 1, 0, &[])].concat();
    let at = start.len();
    let with = |block: Vec<u8>| failure(&[start.clone(), block].concat());
    assert!(with(enhanced(false, 1, 0, &[])).contains(&format!("byte {at}: a packet of interface 1")));
    assert!(with(block(false, 6, &[0; 4])).contains("too short"));
    assert!(with(block(false, 6, &u32s(false, &[0, 0, 0, 500, 500]))).contains("500 bytes of packet"));
    assert!(with(u32s(false, &[6, 8, 0])).contains("cannot have 8 bytes"));
    assert!(with(u32s(false, &[6, 16, 0, 20])).contains("begins with length 16 and ends with 20"));
    assert!(with(u32s(false, &[6, 0xffff_fffc])).contains(&format!("byte {at}")));
    assert!(with(interface(false, 1, 0, &[9, 0, 1, 0, 99, 0, 0, 0])).contains("10^-99"));
}

#[test]
fn any_cut_of_a_file_is_an_error_or_ends_between_blocks() {
    let mut whole = [section(false), interface(false, 1, 0, &[])].concat();
    let mut ends = vec![section(false).len(), whole.len()];
    for frame in conversation() {
        whole.extend(enhanced(false, 0, 1, &frame));
        ends.push(whole.len());
    }
    for cut in 0..whole.len() {
        assert_eq!(files::read(&whole[..cut]).is_ok(), ends.contains(&cut), "{cut}");
    }
    assert_eq!(frames(&whole).len(), 15);
}

//! Captures in every variant of the two formats are read; damaged ones are refused with the offset.

use crate::frames;
use roce::LinkType;
use run::capture::{Error, Reader};
use run::pcapng::{Section, Writer};

type Packet = (Option<u64>, LinkType, Vec<u8>, usize, Option<String>);

fn read(bytes: &[u8]) -> Result<Vec<Packet>, Error> {
    let mut reader = Reader::new(bytes)?;
    let mut packets = Vec::new();
    while let Some(record) = reader.next()? {
        assert_eq!(record.number, packets.len() as u64 + 1);
        let comment = record.comment.map(String::from);
        packets.push((record.time_ns, record.link, record.data.to_vec(), record.length, comment));
    }
    Ok(packets)
}

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
            let packets = read(&pcap(big, magic, 101)).unwrap();
            let first = (Some(7_000_000_000 + 5 * unit), LinkType::RAW, vec![1, 2, 3], 100, None);
            assert_eq!(packets[0], first);
            assert_eq!(packets[1].0, Some(8_000_000_000 + 6 * unit));
            assert_eq!(packets.len(), 2);
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
        let packets = read(&bytes).unwrap();
        let times: Vec<u64> = packets.iter().map(|packet| packet.0.unwrap()).collect();
        assert_eq!(times, [3_000_001_000, 3_000_001, 1_500_000_000, 11_000_000_000]);
        let links: Vec<u16> = packets.iter().map(|packet| packet.1 .0).collect();
        assert_eq!(links, [1, 113, 276, 101]);
        assert_eq!((packets[2].2.as_slice(), packets[2].3), (&[4, 5, 6, 7][..], 13));
    }
}

#[test]
fn a_second_section_may_have_another_byte_order_and_begins_anew() {
    let first = [section(false), interface(false, 1, 0, &[]), enhanced(false, 0, 1, &[1])].concat();
    let second = [section(true), interface(true, 101, 2, &[])].concat();
    let simple = block(true, 3, &[u32s(true, &[5]), vec![8, 9]].concat());
    let packets = read(&[first, second, simple].concat()).unwrap();
    assert_eq!(packets[1], (None, LinkType::RAW, vec![8, 9], 5, None));
}

#[test]
fn what_the_writer_writes_is_read_back() {
    let section = Section { comment: Some("a story"), application: Some("test"), ..Section::default() };
    let mut writer = Writer::new(Vec::new(), LinkType::ETHERNET, &section).unwrap();
    writer.packet(1_700_000_000_123_456_789, &[1, 2, 3, 4, 5], Some("step 1 · client")).unwrap();
    writer.cut_packet(0, 5, &[6; 8], 90, None).unwrap();
    let packets = read(&writer.into_inner().unwrap()).unwrap();
    let comment = Some("step 1 · client".to_string());
    let first = (Some(1_700_000_000_123_456_789), LinkType::ETHERNET, vec![1, 2, 3, 4, 5], 5, comment);
    assert_eq!(packets, [first, (Some(5), LinkType::ETHERNET, vec![6; 8], 90, None)]);
}

/// Runs to the end and returns the message of the error.
fn failure(bytes: &[u8]) -> String {
    read(bytes).unwrap_err().to_string()
}

#[test]
fn errors_name_the_byte() {
    assert!(failure(b"").contains("too short"));
    assert!(failure(b"hello world").contains("byte 0"));
    assert!(failure(&[0x1f, 0x8b, 8, 0]).contains("gunzip"));
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
    for frame in frames::conversation() {
        whole.extend(enhanced(false, 0, 1, &frame));
        ends.push(whole.len());
    }
    for cut in 0..whole.len() {
        assert_eq!(read(&whole[..cut]).is_ok(), ends.contains(&cut), "{cut}");
    }
    assert_eq!(read(&whole).unwrap().len(), 15);
}

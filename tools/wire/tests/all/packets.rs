//! Packets built from the layouts decode to what was put in.

use roce::icrc::Icrc;
use roce::{Frame, LinkType, Other, Packet};
use run::words::summary;
use testkit::frames;
use testkit::frames::*;

fn roce(frame: &[u8]) -> Packet<'_> {
    decode(LinkType::ETHERNET, frame)
}

fn decode(link: LinkType, frame: &[u8]) -> Packet<'_> {
    match Frame::decode(link, frame) {
        Frame::Roce(packet) => packet,
        Frame::Other(other) => panic!("{other:?}"),
    }
}

fn other(link: LinkType, frame: &[u8]) -> Other {
    match Frame::decode(link, frame) {
        Frame::Roce(packet) => panic!("{}", packet.name()),
        Frame::Other(other) => other,
    }
}

/// What the columns of the table say of a packet is compared with tshark in agreement.rs; here is the rest.
#[test]
fn each_kind_of_packet_in_words() {
    let write = [reth(0x7fff_1234_5678, 0xabcd, 17), vec![0xfe, 0xed, 0, 1]].concat();
    let xrc = [&[0, 0, 0, 0x44][..], &reth(0x1000, 5, 3), &[0, 0, 0, 9]].concat();
    let flush = [vec![0, 0, 0, 0x12], reth(0x1000, 5, 64)].concat();
    let answer = [aeth(0x1f, 1), 66u64.to_be_bytes().to_vec()].concat();
    let service = 0x0111_1d2fu64.to_be_bytes();
    let data = |opcode, headers: &[u8], payload: &[u8]| frame(CLIENT, SERVER, opcode, 0x22, 1, headers, payload);
    #[rustfmt::skip] // A table.
    let cases = [
        (data(0x0b, &write, &[7; 17]), "RC RDMA Write Only Immediate",
            "RDMA Write Only Immediate  len 17  va 0x7fff12345678  rkey 0xabcd  imm 0xfeed0001"),
        (data(0x13, &atomic_eth(0x1000, 5, 77, 66), &[]), "RC Compare Swap",
            "Compare Swap  va 0x1000  rkey 0x5  if 0x42 then 0x4d"),
        (data(0x12, &answer, &[]), "RC Atomic Acknowledge", "Atomic Acknowledge  was 0x42  msn 1"),
        (data(0x17, &[0, 0, 0x12, 0x34], b"bye"), "RC Send Only Invalidate",
            "Send Only Invalidate  len 3  invalidates rkey 0x1234"),
        (data(0x64, &deth(0x33), b"hi"), "UD Send Only", "UD Send Only  len 2  from qp 0x33 to qp 0x22"),
        (data(0x81, &[0; 16], &[]), "CNP", "CNP"),
        (data(0xab, &xrc, b"abc"), "XRC RDMA Write Only Immediate",
            "XRC RDMA Write Only Immediate  len 3  va 0x1000  rkey 0x5  imm 0x00000009"),
        (data(0x1c, &flush, &[]), "RC Flush", "Flush  len 64  va 0x1000  rkey 0x5"),
        (data(0x1d, &reth(0x1000, 5, 8), &[7; 8]), "RC Atomic Write", "Atomic Write  len 8  va 0x1000  rkey 0x5"),
        (data(0x15, &[], &[]), "Unknown opcode", "Unknown opcode 0x15"),
        (cm_frame(SERVER, CLIENT, 0x12, &[(0, &SERVER_ID), (4, &CLIENT_ID), (10, &[0, 28]), (84, b"no")]), "ConnectReject",
            "REJ (ConnectReject)  reason 28: consumer reject  private data of 2 bytes or more"),
        (cm_frame(CLIENT, SERVER, 0x17, &[(0, &CLIENT_ID), (8, &service)]), "ServiceIDResolutionRequest",
            "SIDR_REQ (ServiceIDResolutionRequest)  port 7471"),
        (cm_frame(SERVER, CLIENT, 0x18, &[(0, &CLIENT_ID), (4, &[2]), (8, &[0, 0, 0x22])]), "ServiceIDResolutionResponse",
            "SIDR_REP (ServiceIDResolutionResponse)  qp 0x22  status 2: rejected by the service provider"),
        (cm_frame(CLIENT, SERVER, 0x19, &[(0, &CLIENT_ID), (4, &SERVER_ID), (64, b"path")]), "LoadAlternatePath",
            "LAP (LoadAlternatePath)  private data of 4 bytes or more"),
        (cm_frame(CLIENT, SERVER, 0x1b, &[]), "Unknown CM message", "Unknown CM message (Unknown CM message)"),
    ];
    for (bytes, name, words) in cases {
        let packet = roce(&bytes);
        assert_eq!((packet.name(), summary(&packet, true).as_str()), (name, words));
    }
    assert_eq!(roce(&data(0x1c, &flush, &[])).flush(), Some((1, 2)));
    assert!(roce(&data(0x04, &[], &[])).bth.ack_req);
}

#[test]
fn a_repeated_reply_does_not_begin_the_numbers_anew() {
    let mut frames = conversation();
    let (reply, write) = (frames[1].clone(), frames[3].clone());
    frames.splice(5..5, [reply, write]);
    let mut lookout = run::sighting::Lookout::default();
    let seen: Vec<_> = frames.iter().map(|frame| lookout.live(None, frame).seen.unwrap()).collect();
    assert!(seen.iter().all(|seen| seen.connection == 0));
    let numbers: Vec<_> = seen[3..8].iter().map(|seen| (seen.psn, seen.again)).collect();
    let expected = [(Some(0), false), (Some(1), false), (None, true), (Some(0), true), (Some(1), false)];
    assert_eq!(numbers, expected);
    assert_eq!(lookout.live(None, &frames[4]).src_qp(), Some(CLIENT_QP));
}

#[test]
fn every_link_type_leads_to_the_same_packet() {
    let v4 = ip(CLIENT, SERVER, &transport(0x04, 0x22, 5, &[], b"hello"));
    let v6 = ip("fe80::2", "fe80::1", &transport(0x04, 0x22, 5, &[], b"hello"));
    for ip in [&v4, &v6] {
        let ethertype = if ip[0] == 0x45 { [8, 0] } else { [0x86, 0xdd] };
        let after = |header: &[u8]| [header, &ethertype[..], &ip[..]].concat();
        let cases = [
            (LinkType::ETHERNET, after(&[0; 12])),
            (LinkType::ETHERNET, after(&[&[0u8; 12][..], &[0x81, 0, 0, 7]].concat())),
            (LinkType::ETHERNET, after(&[&[0u8; 12][..], &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 9]].concat())),
            (LinkType::LINUX_SLL, after(&[0; 14])),
            (LinkType::LINUX_SLL2, [&ethertype[..], &[0; 18], &ip[..]].concat()),
            (LinkType::LINUX_SLL2, [&[0x81, 0][..], &[0; 20], &ethertype, ip].concat()),
            (LinkType::NULL, [&[2, 0, 0, 0], &ip[..]].concat()),
            (LinkType::LOOP, [&[0, 0, 0, 2], &ip[..]].concat()),
            (LinkType::RAW, ip.clone()),
        ];
        for (link, frame) in cases {
            let packet = decode(link, &frame);
            assert_eq!((packet.bth.psn, packet.payload()), (5, &b"hello"[..]), "{link:?}");
            assert_eq!(packet.icrc(), Icrc::Ok, "{link:?}");
        }
    }
}

#[test]
fn ip_options_and_extension_headers_are_skipped() {
    let transport = transport(0x04, 0x22, 5, &[], b"hello");
    let udp = [frames::udp_header(8 + transport.len() + 4), transport].concat();
    let mut v4 = ipv4_header([10, 0, 0, 2], [10, 0, 0, 1], &[1; 8], udp.len() + 4);
    v4.extend(&udp);
    v4.extend(roce::icrc::compute(&v4, 28).unwrap().to_le_bytes());
    assert_eq!(decode(LinkType::IPV4, &v4).icrc(), Icrc::Ok);

    // Hop-by-hop options, then a fragment header of a packet in one piece, then UDP.
    let extensions = [[44, 0, 1, 4, 0, 0, 0, 0], [17, 0, 0, 0, 0, 0, 0, 9]].concat();
    let mut v6 = vec![0x60, 0, 0, 0, 0, (extensions.len() + udp.len() + 4) as u8, 0, 64];
    v6.extend([[0xfe; 16], [0xfd; 16]].concat());
    v6.extend(&extensions);
    v6.extend(&udp);
    v6.extend(roce::icrc::compute(&v6, 56).unwrap().to_le_bytes());
    assert_eq!(decode(LinkType::IPV6, &v6).payload(), b"hello");
    assert_eq!(decode(LinkType::IPV6, &v6).icrc(), Icrc::Ok);
    v6[48 + 3] = 1; // more fragments follow
    assert_eq!(other(LinkType::IPV6, &v6), Other::RoceFragment);
    v6[48 + 2] = 1; // and others came before
    assert_eq!(other(LinkType::IPV6, &v6), Other::Fragment);
}

#[test]
fn what_is_not_a_whole_roce_packet_is_named() {
    let good = frame(CLIENT, SERVER, 0x04, 0x22, 5, &[], b"hello");
    let changed = |at: usize, value: u8| {
        let mut frame = good.clone();
        frame[at] = value;
        other(LinkType::ETHERNET, &frame)
    };
    assert_eq!(changed(20, 0x20), Other::RoceFragment); // more fragments
    assert_eq!(changed(21, 0x01), Other::Fragment); // offset
    assert_eq!((changed(23, 6), changed(23, 1)), (Other::TCP, Other::Protocol(1)));
    assert_eq!(changed(37, 1), Other::Port(4609));
    assert_eq!(changed(39, 23), Other::Short); // UDP length
    assert_eq!(changed(13, 6), Other::Arp);
    assert_eq!(other(LinkType::ETHERNET, &[&good[..12], &[0x89, 0x15]].concat()), Other::RoceV1);
    assert_eq!(other(LinkType(9), &good), Other::Link(LinkType(9)));
}

#[test]
fn a_snap_length_leaves_what_was_recorded() {
    let whole = frame(CLIENT, SERVER, 0x0a, 0x22, 5, &reth(0x1000, 7, 100), &[9; 100]);
    for length in 0..whole.len() {
        match Frame::ethernet(&whole[..length]) {
            Frame::Other(reason) => assert!(length < 14 + 20 + 8 + 12 && reason == Other::Cut, "{length}"),
            Frame::Roce(packet) => {
                assert_eq!(packet.icrc(), Icrc::Cut);
                assert_eq!(packet.payload_length(), 100);
                assert_eq!(packet.dma_length().is_some(), length >= 14 + 20 + 8 + 12 + 16);
                assert_eq!(packet.payload().len(), length.saturating_sub(70).min(100));
            }
        }
    }
    assert_eq!(roce(&whole).icrc(), Icrc::Ok);
}

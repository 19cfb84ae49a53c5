//! Packets built from the layouts decode to what was put in.

use crate::frames;
use crate::frames::*;
use roce::cm::{Kind, Service};
use roce::icrc::Icrc;
use roce::{Frame, LinkType, Other, Packet};
use run::words::summary;

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

#[test]
fn a_write_with_immediate() {
    let headers = [reth(0x7fff_1234_5678, 0xabcd, 17), vec![0xfe, 0xed, 0, 1]].concat();
    let bytes = frame(CLIENT, SERVER, 0x0b, 0x22, 99, &headers, &[7; 17]);
    let packet = roce(&bytes);
    assert_eq!(packet.name(), "RC RDMA Write Only Immediate");
    assert_eq!(packet.datagram.src.to_string(), CLIENT);
    assert_eq!((packet.bth.dest_qp, packet.bth.psn, packet.bth.pad_cnt), (0x22, 99, 3));
    assert!(packet.bth.ack_req && !packet.bth.se);
    let remote = packet.remote().unwrap();
    assert_eq!((remote.va, remote.r_key), (0x7fff_1234_5678, 0xabcd));
    assert_eq!(packet.dma_length(), Some(17));
    assert_eq!(packet.immediate(), Some(0xfeed_0001));
    assert_eq!((packet.payload(), packet.payload_length()), (&[7; 17][..], 17));
    assert_eq!(packet.icrc(), Icrc::Ok);
    assert_eq!(
        summary(&packet, true),
        "RDMA Write Only Immediate  len 17  va 0x7fff12345678  rkey 0xabcd  imm 0xfeed0001"
    );
}

#[test]
fn atomics_and_their_answer() {
    let bytes = frame(CLIENT, SERVER, 0x13, 0x22, 1, &atomic_eth(0x1000, 5, 77, 66), &[]);
    let packet = roce(&bytes);
    assert_eq!(packet.remote().map(|remote| (remote.va, remote.r_key)), Some((0x1000, 5)));
    assert_eq!(packet.atomic_operands(), Some((77, 66)));
    assert_eq!(packet.dma_length(), None);
    let answer = [aeth(0x1f, 1), 66u64.to_be_bytes().to_vec()].concat();
    let bytes = frame(SERVER, CLIENT, 0x12, 0x11, 1, &answer, &[]);
    assert_eq!(roce(&bytes).atomic_original(), Some(66));
    assert_eq!(roce(&bytes).aeth().unwrap().msn, 1);
}

#[test]
fn invalidate_and_datagrams_and_congestion() {
    let bytes = frame(CLIENT, SERVER, 0x17, 0x22, 1, &[0, 0, 0x12, 0x34], b"bye");
    assert_eq!(roce(&bytes).invalidated_key(), Some(0x1234));
    let bytes = frame(CLIENT, SERVER, 0x64, 0x22, 1, &[0x11, 0x11, 0x11, 0x11, 0, 0, 0, 0x33], b"hi");
    assert_eq!((roce(&bytes).src_qp(), roce(&bytes).name()), (Some(0x33), "UD Send Only"));
    let bytes = frame(SERVER, CLIENT, 0x81, 0x11, 0, &[0; 16], &[]);
    assert_eq!((roce(&bytes).name(), roce(&bytes).payload_length()), ("CNP", 0));
}

#[test]
fn what_newer_devices_send() {
    let headers = [&[0, 0, 0, 0x44][..], &reth(0x1000, 5, 3), &[0, 0, 0, 9]].concat();
    let bytes = frame(CLIENT, SERVER, 0xab, 0x22, 1, &headers, b"abc");
    let packet = roce(&bytes);
    assert_eq!((packet.name(), packet.immediate()), ("XRC RDMA Write Only Immediate", Some(9)));
    assert_eq!((packet.remote().unwrap().va, packet.payload()), (0x1000, &b"abc"[..]));
    let bytes = frame(CLIENT, SERVER, 0x1c, 0x22, 1, &[vec![0, 0, 0, 0x12], reth(0x1000, 5, 64)].concat(), &[]);
    let packet = roce(&bytes);
    assert_eq!((packet.name(), summary(&packet, true)), ("RC Flush", "Flush  len 64  va 0x1000  rkey 0x5".into()));
    assert_eq!((packet.flush(), packet.remote().unwrap().r_key), (Some((1, 2)), 5));
    let bytes = frame(CLIENT, SERVER, 0x1d, 0x22, 1, &reth(0x1000, 5, 8), &[7; 8]);
    assert_eq!((roce(&bytes).name(), roce(&bytes).payload()), ("RC Atomic Write", &[7; 8][..]));
    let bytes = frame(CLIENT, SERVER, 0x15, 0x22, 1, &[], &[]);
    assert_eq!(summary(&roce(&bytes), true), "Unknown opcode 0x15");
}

#[test]
fn the_other_messages_of_the_connection_manager() {
    let service = 0x0111_1d2fu64.to_be_bytes();
    let bytes = cm_frame(CLIENT, SERVER, 0x17, &[(0, &CLIENT_ID), (8, &service)]);
    let message = roce(&bytes).cm().unwrap();
    assert_eq!(
        (message.kind, message.local_id(), message.remote_id()),
        (Kind::ServiceRequest, Some(0xc101_0203), None)
    );
    assert_eq!(message.service().unwrap().to_string(), "RDMA_PS_UDP, port 7471");
    let bytes = cm_frame(SERVER, CLIENT, 0x18, &[(0, &CLIENT_ID), (4, &[2]), (8, &[0, 0, 0x22])]);
    let message = roce(&bytes).cm().unwrap();
    assert_eq!((message.local_id(), message.remote_id()), (None, Some(0xc101_0203)));
    assert_eq!((message.sidr_status(), message.local_qpn()), (Some(2), Some(0x22)));
    let bytes = cm_frame(CLIENT, SERVER, 0x19, &[(0, &CLIENT_ID), (4, &SERVER_ID), (64, b"path")]);
    let message = roce(&bytes).cm().unwrap();
    assert_eq!((message.kind.short(), message.remote_id()), ("LAP", Some(0x5104_0506)));
    assert!(message.private_data().starts_with(b"path"));
    let bytes = cm_frame(CLIENT, SERVER, 0x1b, &[(0, &CLIENT_ID)]);
    assert_eq!((roce(&bytes).name(), roce(&bytes).cm().unwrap().local_id()), ("Unknown CM message", None));
}

#[test]
fn a_repeated_reply_does_not_begin_the_numbers_anew() {
    let mut frames = conversation();
    let (reply, write) = (frames[1].clone(), frames[3].clone());
    frames.splice(5..5, [reply, write]);
    let mut tracker = roce::track::Tracker::default();
    let seen: Vec<_> = frames.iter().map(|frame| tracker.see(&roce(frame)).unwrap()).collect();
    assert!(seen.iter().all(|seen| seen.connection == 0));
    let numbers: Vec<_> = seen[3..8].iter().map(|seen| (seen.psn, seen.again)).collect();
    let expected = [(Some(0), false), (Some(1), false), (None, true), (Some(0), true), (Some(1), false)];
    assert_eq!(numbers, expected);
    assert_eq!(tracker.src_qp(&roce(&frames[4]), Some(seen[4])), Some(CLIENT_QP));
}

#[test]
fn every_packet_of_a_conversation_has_the_right_icrc() {
    assert!(conversation().iter().all(|frame| roce(frame).icrc() == Icrc::Ok));
}

#[test]
fn a_connect_request_tells_all_it_holds() {
    let frames = conversation();
    let packet = roce(&frames[0]);
    let message = packet.cm().unwrap();
    assert_eq!(message.kind, Kind::ConnectRequest);
    assert_eq!(message.service().and_then(Service::port), Some(7471));
    assert_eq!((message.local_id(), message.remote_id()), (Some(0xc101_0203), None));
    assert_eq!((message.local_qpn(), message.starting_psn()), (Some(CLIENT_QP), Some(SERVER_PSN)));
    assert_eq!(message.ip_cm().unwrap().len(), 36);
    assert_eq!(message.private_data().len(), 56);
    assert!(message.private_data().starts_with(b"knock"));
}

#[test]
fn a_reject_says_why() {
    let body: &[(usize, &[u8])] = &[(0, &SERVER_ID), (4, &CLIENT_ID), (10, &[0, 28]), (84, b"no")];
    let bytes = cm_frame(SERVER, CLIENT, 0x12, body);
    let packet = roce(&bytes);
    assert_eq!((packet.name(), packet.cm().unwrap().reason()), ("ConnectReject", Some(28)));
    assert_eq!(
        summary(&packet, false),
        "REJ (ConnectReject)  reason 28: consumer reject  private data of 2 bytes or more"
    );
    assert_eq!(packet.cm().unwrap().private_data().len(), 148);
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
    assert_eq!(changed(20, 0x20), Other::Fragment); // more fragments
    assert_eq!(changed(21, 0x01), Other::Fragment); // offset
    assert_eq!((changed(23, 6), changed(23, 1)), (Other::Tcp, Other::Foreign)); // ICMP
    assert_eq!(changed(37, 1), Other::Foreign); // another port
    assert_eq!(changed(39, 23), Other::Short); // UDP length
    assert_eq!(changed(13, 6), Other::Arp);
    assert_eq!(other(LinkType::ETHERNET, &[&good[..12], &[0x89, 0x15]].concat()), Other::RoceV1);
    assert_eq!(other(LinkType(9), &good), Other::Foreign);
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

#[test]
fn any_changed_bit_spoils_the_icrc_unless_routers_may_change_it() {
    let whole = ip(CLIENT, SERVER, &transport(0x04, 0x22, 5, &[], b"hello"));
    for bit in 0..whole.len() * 8 {
        let mut changed = whole.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let Frame::Roce(packet) = Frame::decode(LinkType::IPV4, &changed) else { continue };
        let variant = matches!(bit / 8, 1 | 8 | 10 | 11 | 26 | 27 | 32);
        let lengths = matches!(bit / 8, 0 | 2 | 3 | 24 | 25);
        if !lengths {
            assert_eq!(packet.icrc() == Icrc::Ok, variant, "byte {}", bit / 8);
        }
    }
}

//! RoCE inside a tunnel is the same RoCE: same columns as tshark's, same words as without, and the tunnel is named.

use crate::exercise::everything;
use crate::files::{file, root, text, wire, written, Piece, Recorded};
use roce::icrc::Icrc;
use roce::link::tunnels;
use roce::{Frame, LinkType, Other};
use run::capture::Reader;
use std::path::PathBuf;
use testkit::frames::{aeth, conversation, ethernet, ip, transport};
use testkit::tshark::agree;
use testkit::wrapped::{apart, tagged, Wrap, WRAPS};
use wire::compare::{self, Capture, Verdict};
use wire::explain::{explain, Explanation};

/// Turns a frame into another one.
type Way<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;

fn explained(file: &[u8]) -> Explanation {
    explain(&mut Reader::new(file).unwrap()).unwrap()
}

/// The frames of a file, each wrapped, in their times.
fn file_of(frames: impl IntoIterator<Item = Recorded>, wrap: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    written(frames.into_iter().map(|frame| {
        assert_eq!(frame.link, LinkType::ETHERNET);
        let data = wrap(&frame.data);
        let length = frame.length + data.len() - frame.data.len();
        Piece::Frame(Recorded { data, length, ..frame })
    }))
}

fn case(name: &str) -> PathBuf {
    root().join("tools/wire/tests/all/cases").join(name)
}

fn conversations() -> [Vec<Recorded>; 2] {
    let v6 = |payload: &[u8]| ip("fe80::2", "fe80::1", &transport(0x04, 0x22, 5, &[], payload));
    let answer = ip("fe80::1", "fe80::2", &transport(0x11, 0x11, 5, &aeth(0x62, 1), &[]));
    let six = [ethernet(&v6(b"hello")), ethernet(&answer)];
    [conversation(), six.to_vec()].map(|frames| frames.into_iter().map(Recorded::of).collect())
}

#[test]
fn every_tunnel_is_explained_in_the_same_words_and_named() {
    for plain in conversations() {
        let (expected, none) = apart(&explained(&file_of(plain.clone(), <[u8]>::to_vec)));
        assert_eq!(none, "");
        for Wrap { name, wrap, .. } in WRAPS {
            let inner_tag: &[&[u8]] = &[&[0x81, 0, 0, 7]];
            let outer_tags: &[&[u8]] = &[&[0x88, 0xa8, 0, 7], &[0x81, 0, 0, 9]];
            let old_tag: &[&[u8]] = &[&[0x92, 0, 0, 7]];
            let ways: [Way; 4] =
                [wrap, &|frame| wrap(&tagged(frame, inner_tag)), &|frame| tagged(&wrap(frame), outer_tags), &|frame| {
                    tagged(&wrap(&tagged(frame, inner_tag)), old_tag)
                }];
            for way in ways {
                let (words, tunnel) = apart(&explained(&file_of(plain.clone(), way)));
                assert_eq!(words, expected, "{name}");
                assert_eq!(tunnel, format!("Note: {} packets inside {name}.", plain.len()));
            }
        }
    }
}

#[test]
fn the_columns_of_every_tunnel_agree_with_tshark() {
    let mut all = Vec::new();
    for (i, plain) in conversations().into_iter().enumerate() {
        for (n, Wrap { wrap, .. }) in WRAPS.iter().enumerate().filter(|(_, wrap)| wrap.tshark_knows) {
            all.push((file(&format!("wrapped-{i}-{n}.pcapng"), &file_of(plain.clone(), wrap)), plain.len()));
        }
    }
    std::thread::scope(|scope| {
        for some in all.chunks(all.len().div_ceil(2)) {
            scope.spawn(move || some.iter().for_each(|(path, count)| assert_eq!(agree(path), *count)));
        }
    });
}

#[test]
fn show_compare_and_play_read_them_too_and_show_names_the_tunnel() {
    let [plain, _] = conversations();
    let count = plain.len();
    let wrap = WRAPS[0].wrap;
    let (bare, wrapped) = (file_of(plain.clone(), <[u8]>::to_vec), file_of(plain, wrap));
    let [left, right] =
        [&bare, &wrapped].map(|file| Capture::read(&mut Reader::new(file.as_slice()).unwrap()).unwrap());
    let report = compare::compare(&left, &right);
    assert_eq!(report.verdict(), Verdict::Same, "{report}");
    let path = file("in-vxlan.pcapng", &wrapped);
    let ladder = wire("show", &path, &[]);
    assert!(text(&ladder.stdout).ends_with(&format!("{count} RoCEv2 packets\n{count} packets inside VXLAN, VNI 42\n")));
    let bytes = wire("show", &path, &["--packet", "4"]);
    let first = text(&bytes.stdout);
    assert!(first.contains("10.0.0.2 -> 10.0.0.1, inside VXLAN, VNI 42\n"), "{first}");
    assert!(first.contains("Link layer and VXLAN, VNI 42, 64 bytes\n"), "{first}");
    let json = explained(&wrapped).to_json();
    assert_eq!(json["inside"]["VXLAN, VNI 42"], count);
    everything(&wrapped);
}

#[test]
fn recorded_tunnels_show_the_refusal() {
    let plain = std::fs::read(case("nak_plain.pcap")).unwrap();
    let (expected, _) = apart(&explained(&plain));
    assert!(expected.contains("was refused: remote access"), "{expected}");
    for (name, tunnel) in [
        ("nak_in_vxlan.pcap", "VXLAN, VNI "),
        ("nak_in_erspan2.pcap", "ERSPAN type II, session "),
        ("nak_in_gre.pcap", "GRE"),
    ] {
        let (words, named) = apart(&explained(&std::fs::read(case(name)).unwrap()));
        assert_eq!(words, expected, "{name}");
        assert!(named.starts_with(&format!("Note: 2 packets inside {tunnel}")), "{named}");
    }
}

/// A NIC doesn't look into tunnels either, and whoever asks for the outer datagram gets it.
#[test]
fn only_whoever_reads_captures_looks_inside() {
    let inner = conversation().remove(3);
    let frame = (WRAPS[0].wrap)(&inner);
    assert_eq!(roce::link::datagram(LinkType::ETHERNET, &frame).unwrap().dst_port, 4789);
    let Frame::Roce(packet) = Frame::ethernet(&frame) else { panic!() };
    assert!(packet.datagram.is_tunnelled && packet.icrc() == Icrc::Ok);
    assert_eq!(tunnels(LinkType::ETHERNET, &frame).to_string(), "VXLAN, VNI 42");
}

#[test]
fn a_bomb_of_tunnels_ends_after_a_few() {
    let packet = conversation().remove(3);
    for Wrap { name, wrap, .. } in WRAPS {
        let mut frame = packet.clone();
        for depth in 1..60 {
            frame = wrap(&frame);
            let is_roce = matches!(Frame::ethernet(&frame), Frame::Roce(_));
            assert!(!is_roce || depth <= 4, "{name} at {depth}");
            if name.starts_with("VXLAN, VNI 42") && !name.contains("inside") && depth > 4 {
                assert!(matches!(Frame::ethernet(&frame), Frame::Other(Other::Nested)), "{name} at {depth}");
            }
            if frame.len() > 8000 {
                break;
            }
        }
    }
}

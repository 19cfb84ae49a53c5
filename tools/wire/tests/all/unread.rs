//! What isn't read is named, with its number and what to do; and nothing is said to have gone well of what wasn't seen.

use crate::files::{root, written, Piece, Recorded};
use roce::{Frame, LinkType};
use run::capture::Reader;
use testkit::frames::{aeth, conversation, ethernet, frame, ip, reth, transport, CLIENT, SERVER};
use testkit::wrapped::{tagged, WRAPS};
use wire::explain::explain;

fn told(file: &[u8]) -> String {
    explain(&mut Reader::new(file).unwrap()).unwrap().text(usize::MAX)
}

fn of(link: u16, frames: &[Vec<u8>]) -> Vec<u8> {
    let frames = frames.iter().map(|frame| Recorded { link: LinkType(link), ..Recorded::of(frame.clone()) });
    written(frames.map(Piece::Frame))
}

fn case(name: &str) -> String {
    told(&std::fs::read(root().join("tools/wire/tests/all/cases").join(name)).unwrap())
}

/// A header in front of each frame of a conversation.
fn headed(header: &[u8], skipped: usize) -> Vec<Vec<u8>> {
    conversation().iter().map(|frame| [header, &frame[skipped..]].concat()).collect()
}

#[test]
fn headers_of_recorders_are_read() {
    let plain = told(&of(1, &conversation()));
    let ppi = |link: u8, skipped| headed(&[0, 0, 12, 0, link, 0, 0, 0, 9, 9, 9, 9], skipped);
    let erf = |kind: u8, more: &[u8], skipped| {
        headed(&[&[1, 0, 0, 0, 2, 0, 0, 0, kind, 4, 0, 90, 0, 0, 0, 74][..], more].concat(), skipped)
    };
    for (link, frames) in [
        (192, ppi(1, 0)),
        (192, ppi(101, 14)),
        (12, headed(&[], 14)),
        (197, erf(2, &[0, 0], 0)),
        (197, erf(0x82, &[0x8a, 0, 0, 0, 0, 0, 0, 0, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0], 0)),
        (197, erf(22, &[], 14)),
    ] {
        assert_eq!(told(&of(link, &frames)), plain, "link type {link}");
    }
    for tag in [
        &[0x92, 0, 0, 7][..],
        &[0x89, 0x26, 0, 1, 0, 1],
        &[0x89, 0x3f, 0, 1, 0, 1, 0, 1],
        &[0x89, 0x09, 1, 1, 0, 1, 0, 7],
    ] {
        let frames: Vec<Vec<u8>> = conversation().iter().map(|frame| tagged(frame, &[tag])).collect();
        assert_eq!(told(&of(1, &frames)), plain, "{tag:02x?}");
    }
    // A recorder's header inside another one is no packet.
    let inside: Vec<u8> = [0u8, 0, 8, 0, 192, 0, 0, 0].repeat(1000);
    assert!(
        matches!(Frame::decode(LinkType::PPI, &inside), Frame::Other(other) if other.to_string() == "link type 192 (PPI)")
    );
}

#[test]
fn what_is_not_read_is_named_with_its_number() {
    let erf = |kind: u8| vec![[&[0; 8][..], &[kind, 0, 0, 60, 0, 0, 0, 40], &[7; 60]].concat()];
    let ethertype = |high: u8, low: u8| vec![[&[2; 12][..], &[high, low], &[0; 50]].concat()];
    let protocol = |number: u8| {
        let mut packet = ip(CLIENT, SERVER, &transport(0x04, 0x22, 5, &[], b"hello"));
        packet[9] = number;
        vec![ethernet(&packet)]
    };
    for (link, frames, words) in [
        (105, vec![vec![8; 60]; 2], "Note: link type 105 (802.11) is not read (2 frames)"),
        (209, vec![vec![8; 60]], "Note: link type 209 is not read (1 frame)"),
        (197, erf(5), "Note: ERF type 5 is not read (1 frame)"),
        (197, erf(21), "Note: 1 frame is native InfiniBand, which has no Ethernet, IP or UDP"),
        (247, vec![vec![0; 60]; 3], "Note: 3 frames are native InfiniBand, which has no Ethernet, IP or UDP"),
        (1, ethertype(0x88, 0xe5), "1 EtherType 0x88e5 (MACsec, which may be encrypted)"),
        (1, ethertype(0x77, 0x77), "1 EtherType 0x7777"),
        (1, protocol(50), "1 IP protocol 50 (ESP, which is encrypted)"),
        (1, protocol(201), "1 IP protocol 201"),
    ] {
        let text = told(&of(link, &frames));
        assert!(text.starts_with("There is no RoCEv2 packet"), "{text}");
        assert!(text.contains(words), "{words}: {text}");
    }
    let text = case("nak_rocev1.pcap");
    assert!(text.contains("2 frames are RoCEv1 (EtherType 0x8915)") && text.contains("default_roce_mode"), "{text}");
}

/// Each packet with payload in two pieces.
fn fragmented(frames: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    for frame in frames {
        let (head, body) = (frame[..34].to_vec(), &frame[34..]);
        if body.len() < 100 {
            pieces.push(frame);
            continue;
        }
        for (i, part) in body.chunks(64).enumerate() {
            let mut head = head.clone();
            let offset = (i * 8) as u16 | if (i + 1) * 64 < body.len() { 0x2000 } else { 0 };
            head[16..18].copy_from_slice(&(20 + part.len() as u16).to_be_bytes());
            head[20..22].copy_from_slice(&offset.to_be_bytes());
            pieces.push([&head, part].concat());
        }
    }
    pieces
}

#[test]
fn ip_fragments_are_counted_and_nobody_is_judged_by_what_they_carried() {
    let write = |psn: u32| frame(CLIENT, SERVER, 0x0a, 0x22, psn, &reth(0x1000, 7, 100), &[9; 100]);
    let send = |psn: u32| frame(CLIENT, SERVER, 0x04, 0x22, psn, &[], b"short");
    let ack = |psn: u32| frame(SERVER, CLIENT, 0x11, 0x11, psn, &aeth(0x1f, 1), &[]);
    // The short ones alone look like gaps, and like a message without an answer.
    let frames =
        vec![send(1), ack(1), write(2), ack(2), send(3), write(4), ack(4), write(5), send(3), send(3), send(3)];
    let text = told(&of(1, &fragmented(frames)));
    assert!(text.contains("frames are IP fragments, and 3 of RoCEv2 packets begin in them"), "{text}");
    assert!(text.contains("can't be told: packets came as IP fragments"), "{text}");
    for word in ["fault", "lost", "not RoCEv2: ", "Nothing that this capture shows"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
    // A refusal that's there to be read is still a refusal.
    let refused = vec![send(1), frame(SERVER, CLIENT, 0x11, 0x11, 1, &aeth(0x62, 0), &[]), write(2)];
    let text = told(&of(1, &fragmented(refused)));
    assert!(text.contains("was refused: remote access error"), "{text}");
    // Fragments of others say nothing about RoCE.
    let mut other = fragmented(vec![write(2)]);
    other.iter_mut().for_each(|frame| frame[23] = 6);
    let text = told(&of(1, &[other, conversation()].concat()));
    assert!(text.contains("IP fragments, and none of them is the beginning of a RoCEv2 packet"), "{text}");
    assert!(text.contains("was refused"), "{text}");
}

#[test]
fn answers_that_are_cut_before_they_say_which_are_no_good_news() {
    let cut = |frames: &[Vec<u8>], to: usize| {
        let cut = frames
            .iter()
            .map(|frame| Recorded { data: frame[..to.min(frame.len())].to_vec(), ..Recorded::of(frame.clone()) });
        written(cut.map(Piece::Frame))
    };
    let write = frame(CLIENT, SERVER, 0x0a, 0x22, 1, &reth(0x1000, 7, 100), &[9; 100]);
    let refusal = frame(SERVER, CLIENT, 0x11, 0x11, 1, &aeth(0x62, 0), &[]);
    let plain = [write.clone(), refusal.clone()];
    let vlan = plain.clone().map(|frame| tagged(&frame, &[&[0x81, 0, 0, 7]]));
    let vxlan = plain.clone().map(|frame| (WRAPS[0].wrap)(&frame));
    for (frames, to) in [(&plain, 54), (&vlan, 58), (&vxlan, 104)] {
        let text = told(&cut(frames, to));
        assert!(
            text.contains(&format!("1 answer ends before the AETH, because this capture was cut after {to} bytes")),
            "{text}"
        );
        assert!(text.contains("can't be told: answers are cut"), "{text}");
        assert!(!text.contains("Nothing that"), "{text}");
        let text = told(&cut(frames, to + 4));
        assert!(text.contains("was refused: remote access error") && !text.contains("can't be told"), "{text}");
    }
    assert!(case("nak_cut_at_bth.pcap").contains("1 answer ends before the AETH"));
    let text = told(&cut(&plain, 40));
    assert!(
        text.contains("2 frames are cut so short that we can't see what they are") && text.contains("-s 0"),
        "{text}"
    );
}

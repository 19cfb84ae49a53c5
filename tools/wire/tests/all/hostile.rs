//! Whatever the bytes: no panic. The inputs are good captures with bits changed, pieces cut out, and noise.

use crate::exercise::everything;
use crate::files::{all_bundled, capture, root};
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use roce::link::tunnels;
use roce::{Frame, LinkType};
use run::capture::Reader;
use run::files::files;
use run::words::summary;
use std::path::Path;
use testkit::frames;
use testkit::wrapped::{Wrap, WRAPS};
use wire::explain::explain;

/// The same numbers in every run.
fn random() -> TestRng {
    TestRng::deterministic_rng(RngAlgorithm::ChaCha)
}

/// Changes a few bytes, cuts some out, or shortens.
fn damage(random: &mut TestRng, bytes: &mut Vec<u8>) {
    for _ in 0..=random.random_range(0..4) {
        let at = random.random_range(0..bytes.len().max(1));
        match random.random_range(0..4) {
            0 => bytes.truncate(at.max(1)),
            1 => drop(bytes.drain(at..(at + random.random_range(0..40)).min(bytes.len()))),
            2 => bytes.iter_mut().skip(at).take(4).for_each(|byte| *byte = 0xff),
            _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = random.random()),
        }
    }
}

/// What `make fuzz` does for hours, for a second: the bundled captures and one of our own, damaged.
#[test]
fn damaged_files() {
    let mut random = random();
    let bundled = all_bundled().into_iter().map(|path| (std::fs::read(path).unwrap(), 300_000));
    for (good, bytes) in bundled.chain([(capture(frames::conversation()), 2_500_000)]) {
        everything(&good);
        for _ in 0..(bytes / good.len()).clamp(1, 500) {
            let mut bytes = good.clone();
            damage(&mut random, &mut bytes);
            everything(&bytes);
        }
    }
}

/// What is said of any bytes is bounded by them: each connection has a packet, each packet a frame, each frame a header of its own.
fn explained(bytes: &[u8]) {
    let Ok(told) = Reader::new(bytes).and_then(|mut reader| explain(&mut reader)) else { return };
    assert!(told.connections.len() as u64 <= told.packets && told.packets <= told.frames, "{told:?}");
    assert!(told.frames as usize * 12 <= bytes.len(), "{} frames in {} bytes", told.frames, bytes.len());
    let is_there = |frame: &u64| (1..=told.frames).contains(frame);
    assert!(told.findings().all(|finding| finding.frames.iter().all(is_there)), "{told}");
    let (text, json) = (told.text(usize::MAX), told.to_json().to_string());
    assert!(text.len().max(json.len()) <= 10_000 + 64 * bytes.len(), "{} of {} bytes", json.len(), bytes.len());
}

#[test]
fn ten_thousand_damaged_captures_and_a_thousand_of_noise_are_explained() {
    let mut random = random();
    let is_capture = |path: &Path| path.extension().is_some_and(|extension| extension == "pcapng");
    let folders = ["captures", "captures/changes"].map(|folder| files(&root().join(folder), is_capture).unwrap());
    let all = folders.iter().flatten();
    let mut good: Vec<Vec<u8>> =
        all.map(|path| std::fs::read(path).unwrap()).filter(|file| file.len() < 100_000).collect();
    good.push(capture(frames::conversation()));
    for round in 0..10_000 {
        let mut bytes = good[round % good.len()].clone();
        damage(&mut random, &mut bytes);
        explained(&bytes);
    }
    for round in 0..1000 {
        // Half of them begin as a capture does.
        let head = [&[][..], &good[0][..200]][round % 2].to_vec();
        let noise = (0..random.random_range(0..4000)).map(|_| random.random::<u8>());
        explained(&head.into_iter().chain(noise).collect::<Vec<u8>>());
    }
}

#[test]
fn damaged_frames_in_good_files() {
    let mut random = random();
    let good = frames::conversation();
    for _ in 0..500 {
        let start = random.random_range(0..good.len() - 3);
        let mut frames = good[start..start + 3].to_vec();
        frames.iter_mut().for_each(|frame| damage(&mut random, frame));
        everything(&capture(frames));
    }
}

#[test]
fn noise_behind_every_link_type() {
    let mut random = random();
    for round in 0..20_000 {
        let link = LinkType([0, 1, 12, 101, 108, 113, 192, 197, 228, 229, 247, 276, 9][round % 13]);
        let mut frame: Vec<u8> = (0..random.random_range(0..120)).map(|_| random.random()).collect();
        // Noise rarely looks like IP; help it.
        if let Some(first) = frame.first_mut() {
            *first = [0x45, 0x60, 0x4f, 0x00][random.random_range(0..4)];
        }
        if let Frame::Roce(packet) = Frame::decode(link, &frame) {
            let _ = (summary(&packet, true), packet.icrc(), packet.payload());
        }
    }
}

#[test]
fn damaged_tunnels() {
    let mut random = random();
    let good = frames::conversation();
    for round in 0..20 * WRAPS.len() {
        let wrap = WRAPS[round % WRAPS.len()].wrap;
        let mut some: Vec<Vec<u8>> = good[round % 10..][..3].iter().map(|frame| wrap(frame)).collect();
        some.iter_mut().for_each(|frame| damage(&mut random, frame));
        everything(&capture(some));
    }
    // Damage in the outer headers alone, where the walk decides what comes next; and every length.
    for Wrap { wrap, .. } in WRAPS {
        let whole = wrap(&good[3]);
        for _ in 0..2000 {
            let mut frame = whole.clone();
            frame[random.random_range(12..80)] = random.random();
            if let Frame::Roce(packet) = Frame::ethernet(&frame) {
                let _ = (summary(&packet, true), packet.icrc(), packet.payload(), tunnels(LinkType::ETHERNET, &frame));
            }
        }
        for length in 0..whole.len() {
            let _ = Frame::ethernet(&whole[..length]);
        }
    }
}

#[test]
fn every_operation_code_at_every_length() {
    for opcode in 0..=255 {
        let whole = frames::frame("10.0.0.1", "10.0.0.2", opcode, 1, 2, &[], &[7; 300]);
        for length in 40..whole.len() {
            if let Frame::Roce(packet) = Frame::ethernet(&whole[..length]) {
                let _ = (summary(&packet, true), packet.name(), packet.icrc(), packet.payload());
            }
        }
        everything(&capture([whole]));
    }
}

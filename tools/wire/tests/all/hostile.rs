//! Whatever the bytes: no panic. The inputs are good captures with bits changed, pieces cut out, and noise.

use crate::exercise::everything;
use crate::files::{all_bundled, capture};
use crate::frames;
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use roce::{Frame, LinkType};
use run::words::summary;

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
        let link = LinkType([0, 1, 101, 108, 113, 228, 229, 276, 9][round % 9]);
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

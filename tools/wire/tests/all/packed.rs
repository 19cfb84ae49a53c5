//! Compressed captures are read as they come, to where they're good, and in little memory. What isn't read is named.

use crate::exercise::everything;
use crate::files::{capture, file, root, scratch, text, wire};
use lz4_flex::frame::{BlockMode, FrameEncoder, FrameInfo};
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use run::capture::Events;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use testkit::frames::conversation;
use wire::explain::{explain, Explanation};
use wire::packed::reader;

/// By the program `zstd`, which set-up gets for the lab.
fn zstd(bytes: &[u8], arguments: &[&str]) -> Vec<u8> {
    let mut command = Command::new("zstd");
    command.args(["-q", "-c"]).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("zstd is installed: `make test` gets it, and so does `apt install zstd`");
    let mut input = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(bytes).unwrap());
        child.wait_with_output().unwrap().stdout
    })
}

fn lz4(bytes: &[u8], mode: BlockMode) -> Vec<u8> {
    let mut info = FrameInfo::new();
    info.block_mode = mode;
    (info.content_checksum, info.block_checksums) = (true, mode == BlockMode::Linked);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn explained(bytes: &[u8]) -> Result<Explanation, String> {
    reader(bytes).and_then(|mut reader| explain(&mut reader)).map_err(|error| format!("{error:#}"))
}

/// All frames, as they're kept.
fn kept(bytes: &[u8]) -> Vec<Vec<u8>> {
    let events = Events::most(reader(bytes).unwrap(), usize::MAX);
    events.to_end().unwrap();
    events.packets().map(|sighting| sighting.data.to_vec()).collect()
}

fn long() -> Vec<u8> {
    capture(std::iter::repeat(conversation()).take(800).flatten())
}

#[test]
fn compressed_captures_are_read_as_if_they_were_not() {
    let plain = long();
    let expected = explained(&plain).unwrap().to_string();
    let (first, second) = plain.split_at(plain.len() / 3);
    for (what, bytes) in [
        ("zstd -1", zstd(&plain, &["-1"])),
        ("zstd -19 --long", zstd(&plain, &["-19", "--long=24"])),
        ("zstd without checksum", zstd(&plain, &["--no-check"])),
        ("zstd in two frames", [zstd(first, &[]), zstd(second, &[])].concat()),
        ("pzstd", [&[0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 9, 9, 9, 9][..], &zstd(&plain, &[])].concat()),
        ("lz4 in linked blocks", lz4(&plain, BlockMode::Linked)),
        ("lz4 in single blocks", lz4(&plain, BlockMode::Independent)),
        ("lz4 in two frames", [lz4(first, BlockMode::Linked), lz4(second, BlockMode::Independent)].concat()),
    ] {
        assert!(bytes.len() < plain.len() / 2, "{what}");
        assert_eq!(explained(&bytes).unwrap().to_string(), expected, "{what}");
        assert!(kept(&bytes) == kept(&plain), "{what}");
    }
    let cases = root().join("tools/wire/tests/all/cases");
    let expected = explained(&std::fs::read(cases.join("nak_plain.pcap")).unwrap()).unwrap().to_string();
    for name in ["nak.pcap.zst", "nak.pcap.lz4"] {
        assert_eq!(explained(&std::fs::read(cases.join(name)).unwrap()).unwrap().to_string(), expected, "{name}");
    }
}

#[test]
fn what_comes_before_the_end_of_a_cut_file_is_read() {
    let plain = long();
    let frames = explained(&plain).unwrap().frames;
    for (what, bytes) in [("zstd", zstd(&plain, &["-1"])), ("lz4", lz4(&plain, BlockMode::Linked))] {
        let told = explained(&bytes[..bytes.len() * 9 / 10]).unwrap();
        assert!(told.frames > frames / 4 && told.frames < frames, "{what}: {} of {frames}", told.frames);
        let note = format!("the {what} file ends too early; what came before is good");
        assert!(told.notes.iter().any(|text| text.contains(&note)), "{:?}", told.notes);
        // Also where it's cut between two blocks, or in a number.
        for length in (0..200).map(|i| i * bytes.len() / 200).chain(bytes.len() - 20..bytes.len()) {
            match explained(&bytes[..length]) {
                Ok(told) => assert!(
                    told.notes.iter().any(|text| text.contains("too early") || text.contains("ends inside")),
                    "{what} {length}: {told}"
                ),
                Err(error) => assert!(
                    error.contains("too early") || error.contains("too short") || error.contains("ends inside"),
                    "{what} {length}: {error}"
                ),
            }
        }
    }
}

#[test]
fn damaged_compression_ends_in_words() {
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let plain = capture(std::iter::repeat(conversation()).take(30).flatten());
    for good in [
        zstd(&plain, &["-1"]),
        zstd(&plain, &["-19"]),
        lz4(&plain, BlockMode::Linked),
        lz4(&plain, BlockMode::Independent),
    ] {
        for _ in 0..400 {
            let mut bytes = good.clone();
            let at = random.random_range(4..bytes.len());
            bytes[at] = random.random();
            let _ = explained(&bytes);
        }
        let mut bytes = good.clone();
        *bytes.last_mut().unwrap() ^= 1;
        let told = explained(&bytes).unwrap();
        assert!(told.notes.iter().any(|text| text.contains("is damaged")), "{:?}", told.notes);
        everything(&bytes);
    }
    // A window of 2 GB: nobody's machine must have that.
    let error = explained(&[0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0, 0, 0, 0]).unwrap_err();
    assert!(error.contains("zstd -d --long=31"), "{error}");
}

/// A quarter of a gigabyte of nothing in a few kilobytes, in a block that's skipped.
#[test]
fn a_bomb_takes_no_memory() {
    let good = capture(conversation());
    let mut plain = good.clone();
    plain.extend([[0xad, 0x0b, 0, 0], (256u32 << 20).to_le_bytes()].concat());
    plain.resize(plain.len() + (256 << 20) - 8, 0);
    let frames = explained(&good).unwrap().frames;
    for (name, bytes) in [("bomb.zst", zstd(&plain, &[])), ("bomb.lz4", lz4(&plain, BlockMode::Linked))] {
        assert!(bytes.len() < 4 << 20);
        let path = file(name, &bytes);
        let limited = "ulimit -v 150000; exec \"$0\" explain --json \"$1\"";
        let output = Command::new("sh").args(["-c", limited, env!("CARGO_BIN_EXE_wire")]).arg(&path).output().unwrap();
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        assert_eq!(told["frames"], frames);
    }
}

#[test]
fn other_formats_are_named_with_the_next_step() {
    let mut erf = vec![0, 0, 0, 0, 0x80, 0x5a, 0x5a, 0x60, 2, 4, 0, 76, 0, 0, 0, 60];
    erf.resize(76, 0);
    for (bytes, what) in [
        (&b"\xfd7zXZ\0"[..], "compressed by xz: `xz -d`"),
        (b"BZh91AY&SY", "compressed by bzip2: `bzip2 -d`"),
        (b"PK\x03\x04....", "compressed by zip: `unzip`"),
        (b"7z\xbc\xaf\x27\x1c", "compressed by 7-Zip: `7z x`"),
        (b"\x1f\x9d\x90....", "compressed by compress: `uncompress`"),
        (b"\x02\x21\x4c\x18....", "compressed by lz4: `lz4 -d`"),
        (b"snoop\0\0\0\0\0\0\x02", "a snoop file: `editcap -F pcap FILE NEW`"),
        (b"\x34\xcd\xb2\xa1\x02\0\x04\0", "a pcap file of modified form (by a patched libpcap): `editcap -F pcap"),
        (&erf, "a file of ERF records (Endace): `editcap -F pcap"),
        (b"12:00:00.0 IP 10.0.0.1.4791 > 10.0.0.2.4791", "begins with text"),
        (b"\xde\xad\xbe\xef and more", "unknown bytes de ad be ef"),
    ] {
        let error = explained(bytes).unwrap_err();
        assert!(error.contains(what), "{what}: {error}");
    }
}

/// What editcap makes of a capture of ours, and what it says about what we name, is what we say.
#[test]
fn editcap_makes_a_capture_of_a_snoop_file() {
    let folder = scratch("formats");
    let [plain, snoop, again] = ["plain.pcapng", "file.snoop", "again.pcap"].map(|name| folder.join(name));
    std::fs::write(&plain, capture(conversation())).unwrap();
    let editcap = |format: &str, from: &Path, to: &Path| {
        assert!(Command::new("editcap").args(["-F", format]).args([from, to]).status().unwrap().success());
    };
    editcap("snoop", &plain, &snoop);
    let output = wire("explain", &snoop, &[]);
    assert!(
        output.status.code() == Some(2) && text(&output.stderr).contains("a snoop file: `editcap -F pcap"),
        "{output:?}"
    );
    editcap("pcap", &snoop, &again);
    assert_eq!(wire("explain", &again, &[]).stdout, wire("explain", &plain, &[]).stdout);
}

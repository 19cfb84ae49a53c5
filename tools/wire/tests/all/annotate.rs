//! `wire annotate`: a learner's capture with the lesson's steps in it.

use crate::files::{bundled, scratch, wire};
use roce::LinkType;
use run::capture::Reader;
use run::pcapng::{Section, Writer};
use std::fs;
use std::path::Path;

/// A learner's capture of lesson 04: other addresses, no comments but on the first frame, which is ARP.
fn own_capture() -> Vec<u8> {
    let mut reader = Reader::new(fs::File::open(bundled("04_rdma_write")).unwrap()).unwrap();
    let mut writer = Writer::new(Vec::new(), LinkType::ETHERNET, &Section::default()).unwrap();
    // A comment that the lab wrote stays, another one gives way.
    let mut comment = ["mine", "", "lab: delayed", "old"].into_iter();
    while let Some(record) = reader.next().unwrap() {
        let mut frame = record.data.to_vec();
        if frame[12..14] == [8, 0] {
            for address in [26, 30] {
                frame[address..address + 3].copy_from_slice(&[192, 0, 2]);
            }
        }
        writer.packet(record.time_ns.unwrap(), &frame, comment.next()).unwrap();
    }
    writer.into_inner().unwrap()
}

/// The comment of each frame, and whether time and bytes are those of the original.
fn comments(file: &Path, original: &[u8]) -> Vec<String> {
    let mut before = Reader::new(original).unwrap();
    let mut after = Reader::new(fs::File::open(file).unwrap()).unwrap();
    let mut comments = Vec::new();
    while let Some(record) = after.next().unwrap() {
        let same = before.next().unwrap().unwrap();
        assert_eq!((record.time_ns, record.data, record.length), (same.time_ns, same.data, same.length));
        comments.push(record.comment.unwrap_or_default().to_owned());
    }
    assert!(before.next().unwrap().is_none());
    comments
}

#[test]
fn a_capture_from_elsewhere_gets_the_steps_of_its_lesson() {
    let folder = scratch("annotate");
    let (file, original) = (folder.join("own.pcapng"), own_capture());
    fs::write(&file, &original).unwrap();
    let output = wire("annotate", &file, &["--story", "04"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8(output.stdout)
        .unwrap()
        .contains("own-annotated.pcapng: 11 packets of the story 04, 0 others"));
    let comments = comments(&folder.join("own-annotated.pcapng"), &original);
    assert_eq!(comments[..2], ["mine", ""]);
    for (step, comment) in (1..).zip(&comments[2..]) {
        assert!(comment.starts_with(&format!("Step {step}: The ")), "{comment}");
        assert_eq!(comment.ends_with("] lab: delayed"), step == 1, "{comment}");
    }
}

#[test]
fn packets_of_another_lesson_are_named_and_say_so() {
    let folder = scratch("annotate-other");
    let (file, original) = (folder.join("own.pcapng"), own_capture());
    fs::write(&file, &original).unwrap();
    let output = wire("annotate", &file, &["--story", "03_metadata_exchange", "-o", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("frame 10: the client's RC RDMA Write Only is not part of the story"), "{told}");
    let comments = comments(&file, &original);
    assert_eq!(
        comments[9],
        "Not in the story 03: expected no more of this side after step 4: The client tells where its memory is"
    );
    assert!(comments[11].starts_with("Step 8: The client hangs up"), "{comments:?}");
}

#[test]
fn what_cannot_be_annotated_leaves_no_file() {
    let folder = scratch("annotate-errors");
    let (good, cut) = (folder.join("good.pcapng"), folder.join("cut.pcapng"));
    let capture = own_capture();
    fs::write(&good, &capture).unwrap();
    fs::write(&cut, &capture[..capture.len() - 7]).unwrap();
    for (file, story, what) in [
        (&good, "4", "there is no story `4`; there are 01, 02, 03, 03-private-data, 04, 04-multi-packet"),
        (&cut, "04", "the file ends inside the block that begins at byte"),
        (&folder.join("none.pcapng"), "04", "No such file"),
    ] {
        let out = folder.join("out.pcapng");
        let output = wire("annotate", file, &["--story", story, "-o", out.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(2));
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(what), "{error}");
        assert!(!out.exists());
    }
}

#[test]
fn each_kind_of_interface_is_described_anew() {
    let folder = scratch("annotate-links");
    let (mixed, out) = (folder.join("mixed.pcapng"), folder.join("out.pcapng"));
    let mut two_sections = own_capture();
    let mut raw = Writer::new(Vec::new(), LinkType::RAW, &Section::default()).unwrap();
    raw.packet(0, &[0x45; 60], None).unwrap();
    two_sections.extend(raw.into_inner().unwrap());
    fs::write(&mixed, two_sections).unwrap();
    let output = wire("annotate", &mixed, &["--story", "04", "-o", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let mut reader = Reader::new(fs::File::open(out).unwrap()).unwrap();
    let mut links = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        links.push(record.link);
    }
    assert_eq!((links.len(), links[12], links[13]), (14, LinkType::ETHERNET, LinkType::RAW));
}

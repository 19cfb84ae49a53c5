//! `wire annotate`: a learner's capture with the lesson's steps in it.

use crate::files::{bundled, frames, scratch, text, wire, written, Piece, Recorded};
use roce::LinkType;
use std::fs;

/// A learner's capture of lesson 04: other addresses, no comments but on the first frame, which is ARP.
fn own_capture() -> Vec<u8> {
    // A comment that the lab wrote stays, another one gives way.
    let mut comment = ["mine", "", "lab: delayed", "old"].into_iter();
    let own = frames(&fs::read(bundled("04_rdma_write")).unwrap()).into_iter().map(|mut frame| {
        if frame.data[12..14] == [8, 0] {
            for address in [26, 30] {
                frame.data[address..address + 3].copy_from_slice(&[192, 0, 2]);
            }
        }
        Piece::Frame(Recorded { node: None, ..frame.with(comment.next()) })
    });
    written(own)
}

/// The comment of each frame; all else is that of the original.
fn comments(file: &[u8], original: &[u8]) -> Vec<String> {
    let (before, after) = (frames(original), frames(file));
    let bare = |all: &[Recorded]| all.iter().map(|one| one.clone().with(None)).collect::<Vec<_>>();
    assert_eq!(bare(&before), bare(&after));
    after.into_iter().map(|frame| frame.comment.unwrap_or_default()).collect()
}

#[test]
fn a_capture_from_elsewhere_gets_the_steps_of_its_lesson() {
    let folder = scratch("annotate");
    let (file, original) = (folder.join("own.pcapng"), own_capture());
    fs::write(&file, &original).unwrap();
    let output = wire("annotate", &file, &["--story", "04"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text(&output.stdout).contains("own-annotated.pcapng: 11 packets of the story 04, 0 others"));
    let comments = comments(&fs::read(folder.join("own-annotated.pcapng")).unwrap(), &original);
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
    let told = text(&output.stdout);
    assert!(told.contains("frame 10: the client's RC RDMA Write Only is not part of the story"), "{told}");
    let comments = comments(&fs::read(&file).unwrap(), &original);
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
        let error = text(&output.stderr);
        assert!(error.contains(what), "{error}");
        assert!(!out.exists());
    }
}

#[test]
fn each_kind_of_interface_is_described_anew() {
    let folder = scratch("annotate-links");
    let (mixed, out) = (folder.join("mixed.pcapng"), folder.join("out.pcapng"));
    let raw = Recorded { link: LinkType::RAW, ..Recorded::of(vec![0x45; 60]) };
    let two_sections = [own_capture(), written([Piece::Frame(raw)])].concat();
    fs::write(&mixed, two_sections).unwrap();
    let output = wire("annotate", &mixed, &["--story", "04", "-o", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let links: Vec<LinkType> = frames(&fs::read(out).unwrap()).iter().map(|frame| frame.link).collect();
    assert_eq!((links.len(), links[12], links[13]), (14, LinkType::ETHERNET, LinkType::RAW));
}

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

/// What `wire annotate` does with a file, and writes beside it or in its place: exit status, what is printed, and the new file.
fn annotated(name: &str, file: &[u8], story: &str, in_place: bool) -> (Option<i32>, String, Option<Vec<u8>>) {
    let folder = scratch(name);
    let (own, beside) = (folder.join("own.pcapng"), folder.join("own-annotated.pcapng"));
    fs::write(&own, file).unwrap();
    let place = if in_place { &["-o", own.to_str().unwrap()][..] } else { &[] };
    let output = wire("annotate", &own, &[&["--story", story], place].concat());
    let told = text(&[output.stdout, output.stderr].concat()).to_owned();
    (output.status.code(), told, fs::read(if in_place { own } else { beside }).ok())
}

#[test]
fn a_capture_from_elsewhere_gets_the_steps_of_its_lesson() {
    let original = own_capture();
    let (status, told, file) = annotated("annotate", &original, "04", false);
    assert!(status == Some(0) && told.contains("own-annotated.pcapng: 11 packets of the story 04, 0 others"), "{told}");
    let comments = comments(&file.unwrap(), &original);
    assert_eq!(comments[..2], ["mine", ""]);
    for (step, comment) in (1..).zip(&comments[2..]) {
        assert!(comment.starts_with(&format!("Step {step}: The ")), "{comment}");
        assert_eq!(comment.ends_with("] lab: delayed"), step == 1, "{comment}");
    }
}

#[test]
fn packets_of_another_lesson_are_named_and_say_so() {
    let original = own_capture();
    let (status, told, file) = annotated("annotate-other", &original, "03_metadata_exchange", true);
    let unexpected = "frame 10: the client's RC RDMA Write Only is not part of the story";
    assert!(status == Some(1) && told.contains(unexpected), "{told}");
    let comments = comments(&file.unwrap(), &original);
    assert_eq!(
        comments[9],
        "Not in the story 03: expected no more of this side after step 4: The client tells where its memory is"
    );
    assert!(comments[11].starts_with("Step 8: The client hangs up"), "{comments:?}");
}

#[test]
fn what_cannot_be_annotated_leaves_no_file() {
    let capture = own_capture();
    for (file, story, what) in [
        (&capture[..], "4", "there is no story `4`; there are 01, 02, 03, 03-private-data, 04, 04-multi-packet"),
        (&capture[..capture.len() - 7], "04", "the file ends inside the block that begins at byte"),
    ] {
        let (status, told, written) = annotated("annotate-errors", file, story, false);
        assert!(status == Some(2) && told.contains(what) && written.is_none(), "{told}");
    }
}

#[test]
fn each_kind_of_interface_is_described_anew() {
    let raw = Recorded { link: LinkType::RAW, ..Recorded::of(vec![0x45; 60]) };
    let two_sections = [own_capture(), written([Piece::Frame(raw)])].concat();
    let (_, told, file) = annotated("annotate-links", &two_sections, "04", true);
    let links: Vec<LinkType> = frames(&file.expect(&told)).iter().map(|frame| frame.link).collect();
    assert_eq!((links.len(), links[12], links[13]), (14, LinkType::ETHERNET, LinkType::RAW));
}

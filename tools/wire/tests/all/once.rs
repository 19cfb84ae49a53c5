//! A frame is decoded once, by whoever reads it; whatever is said of it comes from that one sighting.

use crate::files::{bundled, root};
use roce::packet::DECODED;
use run::capture::{Error, Reader};
use run::look::Style;
use run::story;
use std::fs;
use wire::compare::Capture;
use wire::play::Lesson;
use wire::show::bytes::Which;
use wire::{annotate, explain, play, show};

/// How often each frame of a run is decoded.
fn times(run: &[u8], look: impl FnOnce() -> Result<(), Error>) -> f64 {
    let (mut reader, mut frames) = (Reader::new(run).unwrap(), 0u64);
    while reader.next().unwrap().is_some() {
        frames += 1;
    }
    let before = DECODED.get();
    look().unwrap();
    (DECODED.get() - before) as f64 / frames as f64
}

#[test]
fn each_pass_decodes_a_frame_once() {
    let story = story::named("04").unwrap();
    let run = fs::read(bundled(&story.file_name())).unwrap();
    let open = || Reader::new(run.as_slice()).unwrap();
    let last = last_packet(&run);
    let lesson = Lesson::read(&root().join("lessons").join(&story.lesson)).unwrap();
    let out = &mut Vec::new();
    assert_eq!(times(&run, || show::tsv::write(&mut open(), out)), 1.0, "tsv");
    assert_eq!(times(&run, || show::bytes::write(&mut open(), Which::Frame(last), out)), 1.0, "bytes");
    assert_eq!(times(&run, || Capture::read(&mut open()).map(drop)), 1.0, "compare");
    assert_eq!(times(&run, || explain::explain(&mut open()).map(drop)), 1.0, "explain");
    let annotated = || annotate::annotate(&mut open(), &story, &Default::default()).map(drop);
    assert_eq!(times(&run, annotated), 1.0, "annotate");
    assert_eq!(times(&run, || run::plot::read(&mut open()).1), 1.0, "plot");
    let proof = || {
        story::proof::problems(&story, &run);
        Ok(())
    };
    assert_eq!(times(&run, proof), 1.0, "proof");
    // Who stands on the left is known when all was read; a run file is read a second time to be drawn.
    let ladder = || show::ladder::write(&mut open(), run::row::clients(&mut open()), Style::FILE, out);
    assert_eq!(times(&run, ladder), 2.0, "ladder");
    assert_eq!(times(&run, || run::lanes::text(&run, Style::FILE, 0..=u64::MAX).map(drop)), 2.0, "lanes");
    assert_eq!(times(&run, || run::lanes::story(&run, &story, Style::FILE).map(drop)), 2.0, "story");
    assert_eq!(times(&run, || play::run(&run, &story.file_name(), Some(&lesson)).map(drop)), 2.0, "play");
}

/// The number of the last packet.
fn last_packet(run: &[u8]) -> u64 {
    let (mut reader, mut last) = (Reader::new(run).unwrap(), 0);
    while let Some(sighting) = reader.next().unwrap() {
        last = sighting.number;
    }
    last
}

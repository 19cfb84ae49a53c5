//! A frame is decoded once, by whoever reads it; whatever is said of it comes from that one sighting.

use crate::files::{bundled, root};
use roce::packet::DECODED;
use run::capture::{Error, Events, Reader};
use run::file::Event;
use run::lanes;
use run::look::Style;
use run::sighting::Sighting;
use run::story;
use std::fs;
use wire::compare::Capture;
use wire::play::{self, Lesson};
use wire::show::bytes::Which;
use wire::{annotate, explain, show};

/// How often each frame of a run is decoded.
fn times(run: &[u8], look: impl FnOnce() -> Result<(), Error>) -> f64 {
    let frames = Events::read(run).unwrap().packets().count();
    let before = DECODED.get();
    look().unwrap();
    (DECODED.get() - before) as f64 / frames as f64
}

#[test]
fn whoever_reads_a_run_decodes_a_frame_once() {
    let story = story::named("04").unwrap();
    let run = fs::read(bundled(&story.file_name())).unwrap();
    let open = || Reader::new(run.as_slice()).unwrap();
    let read = || Events::read(run.as_slice()).unwrap();
    let last = read().packets().last().unwrap().number;
    let lesson = Lesson::read(&root().join("lessons").join(&story.lesson)).unwrap();
    let out = &mut Vec::new();
    assert_eq!(times(&run, || show::tsv::write(&mut open(), out)), 1.0, "tsv");
    assert_eq!(times(&run, || show::bytes::write(&mut open(), Which::Frame(last), out)), 1.0, "bytes");
    assert_eq!(times(&run, || show::ladder::write(&mut open(), Style::FILE, out)), 1.0, "ladder");
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
    assert_eq!(times(&run, || lanes::text(&read(), Style::FILE, 0..=u64::MAX).map(drop)), 1.0, "lanes");
    assert_eq!(times(&run, || lanes::story(&read(), &story, Style::FILE).map(drop)), 1.0, "story");
    assert_eq!(times(&run, || lanes::picture(&read(), 0..=u64::MAX).map(drop)), 1.0, "a picture of the lanes");
    assert_eq!(times(&run, || lanes::ladder(&read()).map(drop)), 1.0, "a picture of the ladder");
    // A file that has no story's name is tried with each of the lesson's.
    for name in [&story.file_name(), "mine"] {
        let page = || {
            let events = read();
            drop(play::page::page(&play::run(&events, name, Some(&lesson)), &play::page::ladder(&events)));
            Ok(())
        };
        assert_eq!(times(&run, page), 1.0, "the page of a run called {name}");
    }
    // Who has read it may do all of this, and nobody decodes anything again.
    let events = read();
    let again = || {
        explain::explained(&events);
        show::ladder::of(&events, Style::FILE, out)?;
        events.drawn();
        lanes::story(&events, &story, Style::FILE)?;
        lanes::text(&events, Style::FILE, 0..=u64::MAX).map(drop)
    };
    assert_eq!(times(&run, again), 0.0);
}

#[test]
fn what_is_kept_is_what_was_read() {
    let told = |event: &Event| match event {
        Event::Line(line) => format!("{line:?}"),
        Event::Packet(sighting) => {
            let Sighting { record, frame, seen, connection, .. } = sighting;
            let known =
                connection.map(|known| (known.ips, known.qps, known.service, known.request, known.roles, known.mtu));
            format!("{record:?} {frame:?} {seen:?} {known:?} {:?} {:?}", sighting.nvme(), sighting.iwarp())
        }
    };
    for name in [
        "04_rdma_write",
        "07_disconnect_flush",
        "11_datagrams",
        "20_congestion",
        "protocols/nvme",
        "over_tcp/05_rdma_read",
    ] {
        let run = fs::read(bundled(name)).unwrap();
        let (mut reader, events) = (Reader::new(run.as_slice()).unwrap(), Events::read(run.as_slice()).unwrap());
        for kept in events.iter() {
            assert_eq!(told(&kept), told(&reader.event().unwrap().unwrap()), "{name}");
        }
        assert!(reader.event().unwrap().is_none(), "{name}");
    }
}

//! What `wire explain` says of every recording of the repository: each row was read beside its ladder. Faults that the wire makes
//! are measured on the device (tools/device/tests/all/explain).

use run::capture::Reader;
use run::files::{files, name, root};
use std::collections::BTreeSet;
use wire::explain::{explain, Blame, Cause, Cause::*, Explanation};

/// Captures in which something went wrong. In all others nothing did that a capture shows.
const WRONG: [(&str, &[Cause]); 72] = [
    ("01_cm_listen", &[Declined]),
    ("08_handle_api-calls", &[RemoteAccess]),
    ("10_going_fast-no-credits", &[NotReady]),
    ("13_ring_all_reduce", &[Declined]),
    ("20_congestion", &[Lost]),
    ("20_congestion-dcqcn", &[Congestion]),
    ("20_congestion-pfc", &[Congestion]),
    ("01-no-answer", &[Declined]),
    ("01-nobody-listens", &[Rejected]),
    ("02-lost-goodbye-answer", &[MessageLost]),
    ("02-lost-goodbye", &[MessageLost]),
    ("02-lost-reply", &[MessageLost]),
    ("02-lost-request", &[MessageLost]),
    ("02-silent-goodbye", &[MessageLost]),
    ("02-moved-queue-pair", &[Declined]),
    ("02-own-queue-pair", &[Declined]),
    ("02-rejected", &[Declined]),
    ("02-stale", &[Rejected]),
    ("03-far-too-late", &[NotReadyToTheEnd]),
    ("03-late-queue-pair", &[SilentPeer]),
    ("03-late-receive", &[NotReady]),
    ("03-lost-ack", &[AnswerLost]),
    ("03-lost-ready", &[MessageLost]),
    ("03-lost-send", &[Lost]),
    // rdma_rxe says so of a receive that is too short, too.
    ("03-no-local-write", &[RemoteOperational]),
    ("03-short-receive", &[RemoteOperational]),
    ("03-patient", &[NotReady]),
    ("03-two-timers", &[NotReadyToTheEnd]),
    ("04-corrupted", &[Damaged]),
    ("04-duplicate", &[Doubled]),
    ("04-lost-middle", &[Lost]),
    ("04-lost-write", &[Lost]),
    ("04-no-remote-write", &[RemoteAccess]),
    ("04-past-the-end", &[RemoteAccess]),
    ("04-reordered", &[Lost]),
    ("04-retries-used-up", &[SilentPeer]),
    ("04-wrong-key", &[RemoteAccess]),
    ("04-cable-cut", &[SilentPeer, Unfinished]),
    ("04-seven-retries", &[SilentPeer]),
    ("04-strangers-write", &[RemoteAccess]),
    ("04-two-ways", &[NotReadyToTheEnd]),
    ("05-late-response", &[AnswerLost]),
    ("05-lost-read-request", &[Lost]),
    ("05-lost-response-middle", &[AnswerLost]),
    ("05-lost-response", &[AnswerLost]),
    ("05-no-remote-read", &[RemoteAccess]),
    ("05-one-jumbo", &[NotReadyToTheEnd]),
    ("05-reads-not-taken", &[InvalidRequest]),
    ("06-two-modes", &[RemoteAccess]),
    ("07-echoes", &[RemoteAccess]),
    ("07-two-closers", &[Declined]),
    ("07-wrong-key", &[RemoteAccess]),
    ("08-other-mtu", &[InvalidRequest]),
    ("08-psn-ahead", &[WrongPsn]),
    ("08-psn-behind", &[Unfinished]),
    ("08-wrong-number", &[AnswersNotTaken]),
    ("08-beyond-end", &[RemoteAccess]),
    ("08-closed-pair", &[InvalidRequest]),
    ("08-late-receive", &[NotReadyToTheEnd]),
    ("08-no-permission", &[RemoteAccess]),
    ("08-no-reads", &[InvalidRequest]),
    ("08-queue-full", &[RemoteAccess]),
    ("08-strangers-answer", &[Unfinished]),
    ("08-too-early", &[NotReadyToTheEnd]),
    // rdma_rxe sends requests twice, now and then.
    ("09-killed", &[Doubled, HungUp]),
    ("09-same-number", &[Declined]),
    ("11-rc-lost", &[Lost]),
    // The members of a ring ask until the next one listens.
    ("13-cut", &[Declined, SilentPeer]),
    ("13-no-credits", &[Declined, SilentPeer, NotReadyToTheEnd, HungUp]),
    ("13-other-order", &[Declined]),
    ("13-patience", &[Declined, NotReady, Lost, AnswerLost]),
    ("13-slow", &[Declined, Lost]),
];

fn told(file: &[u8]) -> Explanation {
    explain(&mut Reader::new(file).unwrap()).unwrap()
}

#[test]
fn each_recording_is_explained() {
    let captures = root().unwrap().join("captures");
    let mut unseen: BTreeSet<&str> = WRONG.iter().map(|(name, _)| *name).collect();
    for folder in [captures.clone(), captures.join("changes")] {
        for path in files(&folder, |path| path.extension().is_some_and(|extension| extension == "pcapng")).unwrap() {
            let name = name(&path).replace(".pcapng", "");
            // A node is killed in the middle of it all: what is under way then is otherwise in each recording.
            if name == "13-killed" {
                continue;
            }
            let told = told(&std::fs::read(&path).unwrap());
            let causes: BTreeSet<Cause> = told.findings().map(|finding| finding.cause).collect();
            let wanted = WRONG.iter().find(|row| row.0 == name).map_or(&[][..], |row| row.1);
            assert_eq!(causes, wanted.iter().copied().collect(), "{name}: {told}");
            assert!(told.findings().all(|finding| !finding.frames.is_empty()), "{name}: {told}");
            unseen.remove(name.as_str());
        }
    }
    assert!(unseen.is_empty(), "there are no such captures: {unseen:?}");
}

#[test]
fn a_sentence_names_its_frames_and_what_to_do() {
    let told = told(&std::fs::read(root().unwrap().join("captures/changes/04-wrong-key.pcapng")).unwrap());
    let finding = told.findings().next().unwrap();
    assert_eq!((finding.cause, finding.blame, finding.frames.len()), (RemoteAccess, Blame::Program, 2));
    let said = told.text(usize::MAX);
    for words in ["was refused: remote access error", "look at: ", "docs/04_rdma_write.md", "rkey 0x"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_eq!(told.to_json()["connections"][0]["findings"][0]["cause"], "remote-access");
}

/// A run file has the programs' own words, and they are told with the numbers of their lines.
#[test]
fn what_programs_complain_of_is_evidence() {
    let change = |name: &str| std::fs::read(root().unwrap().join(format!("captures/changes/{name}.pcapng"))).unwrap();
    let refused = told(&change("04-wrong-key"));
    let [failed, said] = refused.connections[0].printed.as_slice() else { panic!("{refused}") };
    assert!(failed.text.contains("status=IBV_WC_REM_ACCESS_ERR") && failed.line < said.line, "{refused}");
    let sentence = format!("The client printed (frame {}): work request 3 of QP 17 completed with", said.line);
    assert!(refused.text(usize::MAX).contains(&sentence), "{refused}");

    // No packet shows a wrong lkey.
    let local = told(&change("05-no-local-write"));
    assert!(local.is_wrong() && local.findings().next().is_none(), "{local}");
    assert!(local.connections[0].printed[0].text.contains("IBV_WC_LOC_PROT_ERR"), "{local}");

    // Of several connections of a node a queue pair's number tells which; without one it is nobody's.
    let ring = told(&change("13-cut"));
    let ends: Vec<&str> =
        ring.connections.iter().filter(|told| !told.printed.is_empty()).map(|told| &*told.heading).collect();
    assert!(ends.len() >= 2 && ends.iter().all(|heading| heading.contains("qp 0x1")), "{ring}");
    assert!(ring
        .printed
        .iter()
        .all(|printed| printed.who.starts_with("a program on client-") || printed.who.ends_with("server")));

    // The same packets without the lines.
    let packets = told(&of_sender(&change("05-no-local-write"), 2));
    assert!(!packets.is_wrong() && packets.printed.is_empty(), "{packets}");
}

#[test]
fn a_note_says_why_the_run_itself_failed_or_that_nothing_was_recorded() {
    let notes = |file: &[u8]| told(file).notes;
    let failed = std::fs::read(root().unwrap().join("captures/changes/01-nobody-listens.pcapng")).unwrap();
    let note = "the run itself failed: the client ended 30 s ago with the server still running (frame 37)";
    assert_eq!(notes(&failed), [note]);

    let mut empty = Vec::new();
    run::recorder::Recorder::begin(&mut empty, "lab", &["server", "client"]).unwrap();
    let [note] = &notes(&empty)[..] else { panic!("one note") };
    assert!(note.starts_with("nothing was recorded"), "{note}");
}

#[test]
fn how_fast_it_went_is_told() {
    for (name, one_at_a_time) in [("10_going_fast", true), ("10_going_fast-depth-16", false)] {
        let capture = std::fs::read(root().unwrap().join(format!("captures/{name}.pcapng"))).unwrap();
        let heading = &told(&capture).connections[0].heading;
        assert!(heading.contains("packets had an answer after "), "{heading}");
        assert_eq!(heading.contains("up to 1 waited at a time"), one_at_a_time, "{heading}");
    }
}

/// With the packets of one side alone nobody is blamed for the other's silence. Who says no, or asks for a packet again, is heard,
/// though.
#[test]
fn one_direction_is_known_as_such() {
    for (name, _) in WRONG.iter().filter(|(name, _)| ["02", "03", "04", "05", "06", "07", "09"].contains(&&name[..2])) {
        let capture = std::fs::read(root().unwrap().join(format!("captures/changes/{name}.pcapng"))).unwrap();
        for sender in [1, 2] {
            let told = told(&of_sender(&capture, sender));
            let said_by_itself = [
                Unfinished,
                Damaged,
                Overtaken,
                Doubled,
                SentAgain,
                Declined,
                Rejected,
                NotReady,
                Lost,
                RemoteAccess,
                InvalidRequest,
                RemoteOperational,
            ];
            let blamed: Vec<Cause> =
                told.findings().map(|finding| finding.cause).filter(|cause| !said_by_itself.contains(cause)).collect();
            assert!(blamed.is_empty(), "{name}, of 10.47.91.{sender}: {told}");
        }
    }
}

/// A plain capture of what one machine of the lab has sent.
fn of_sender(capture: &[u8], sender: u8) -> Vec<u8> {
    let mut reader = Reader::new(capture).unwrap();
    let mut file: Vec<u8> =
        [0xa1b2_3c4d, 4 << 16 | 2, 0, 0, 1 << 16, 1].into_iter().flat_map(u32::to_le_bytes).collect();
    while let Some(record) = reader.next().unwrap() {
        // Ethernet, then IPv4 with its source.
        if record.data.get(26..30) == Some(&[10, 47, 91, sender]) {
            let (time, length) = (record.time_ns.unwrap(), record.data.len() as u32);
            let words = [(time / 1_000_000_000) as u32, (time % 1_000_000_000) as u32, length, length];
            file.extend(words.into_iter().flat_map(u32::to_le_bytes));
            file.extend(record.data);
        }
    }
    file
}

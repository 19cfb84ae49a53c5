//! The stories are true: of the sources, and of the bundled captures with their log lines. Each check is shown to fail on
//! an error planted on purpose.

use crate::edit::{Frames, CM};
use crate::files::{self, bundled, packet, root, written, Piece, Recorded};
use run::capture::Reader;
use run::sighting::Lookout;
use run::story::{self, proof, Act, Story};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use testkit::ran::Check;

/// The bundled capture of a story.
fn recording(story: &Story) -> Vec<u8> {
    fs::read(bundled(&story.file_name())).unwrap()
}

#[test]
fn every_story_has_a_recording_and_every_recording_a_story() {
    let mut expected = BTreeSet::from(
        ["README.md", "changes", "install-profile.sh", "met", "over_tcp", "printed", "protocols", "wireshark-profile"]
            .map(String::from),
    );
    for story in story::bundled().unwrap() {
        expected.insert(format!("{}.pcapng", story.file_name()));
        expected.insert(format!("{}.txt", story.file_name()));
    }
    let names = fs::read_dir(root().join("captures")).unwrap();
    let found: BTreeSet<String> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(found, expected);
}

/// The NIC of this course stood in the place of one machine's driver, and all four programs ended well.
#[test]
fn the_ring_in_which_a_nic_of_this_course_met_the_kernels_came_to_its_end() {
    let file = root().join("captures/met/13_ring_all_reduce.pcapng");
    let met = Check::read(&file, ());
    for node in ["server", "client", "client-2", "client-3"] {
        assert_eq!(met.node(node).exit, Some(0), "{node}");
    }
    assert_eq!((met.packets_named("ReadyToUse"), met.packets_named("RC RDMA Write Only Immediate")), (4, 24));
    let bytes = fs::read(&file).unwrap();
    let times = |text: &str| bytes.windows(text.len()).filter(|part| *part == text.as_bytes()).count();
    assert_eq!((times("rmmod rdma_rxe"), times("device-mine-nic run --address 10.47.91.2 --")), (1, 1));
}

#[test]
fn every_recording_tells_its_story_and_every_packet_its_step() {
    for story in story::bundled().unwrap() {
        let (name, recording) = (story.file_name(), recording(&story));
        assert_eq!(proof::problems(&story, &recording), [""; 0], "{name}");
        let (mut follow, mut reader) = (story.follow(), Reader::new(recording.as_slice()).unwrap());
        while let Some(sighting) = reader.next().unwrap() {
            let comment = sighting.packet().map(|packet| follow.packet(&sighting, packet).unwrap().comment());
            // What the lab did to a packet comes after that.
            let told = sighting.comment.and_then(|comment| comment.split(" lab: ").next());
            assert_eq!(told, comment.as_deref(), "{name}");
        }
    }
}

/// What a step says about the sources and is not so.
fn source_problems(act: &Act, lesson: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    let places = [lesson.join("src"), lesson.to_path_buf()];
    let source = places.iter().find_map(|place| fs::read_to_string(place.join(&act.file)).ok()).unwrap_or_default();
    // A function may have lifetimes.
    let source = source.replace("<'a>(", "(");
    for needed in [format!("fn {}(", act.stage), format!("stage(\"{}\")", act.stage)] {
        if !source.contains(&needed) {
            problems.push(format!("{} has no `{needed}`", act.file));
        }
    }
    let sources = [lesson.join("src"), root().join("common/src")].map(|folder| text(&folder)).concat();
    let words: BTreeSet<&str> = sources.split(|c: char| c != '_' && !c.is_alphanumeric()).collect();
    for call in act.calls.iter().filter(|call| !words.contains(call.as_str())) {
        problems.push(format!("neither the lesson nor common calls {call}"));
    }
    problems
}

/// All sources at or below a path.
fn text(path: &Path) -> String {
    match fs::read_dir(path) {
        Ok(folder) => folder.map(|entry| text(&entry.unwrap().path())).collect(),
        Err(_) => fs::read_to_string(path).unwrap(),
    }
}

#[test]
fn every_step_names_a_function_and_calls_that_exist() {
    for story in story::bundled().unwrap() {
        let lesson = root().join("lessons").join(&story.lesson);
        for step in &story.steps {
            let problems = source_problems(&step.act, &lesson);
            assert_eq!(problems, [""; 0], "{} step {}", story.file_name(), step.number);
        }
    }
}

#[test]
fn a_stage_or_call_that_does_not_exist_is_found() {
    let story = story::named("04").unwrap();
    let lesson = root().join("lessons").join(&story.lesson);
    let good = &story.steps[7].act;
    assert_eq!((good.stage.as_str(), source_problems(good, &lesson).len()), ("write", 0));
    let renamed = Act { stage: "rite".into(), ..good.clone() };
    assert_eq!(source_problems(&renamed, &lesson).len(), 2);
    let moved = Act { file: "server.rs".into(), ..good.clone() };
    assert_eq!(source_problems(&moved, &lesson).len(), 2);
    let miscalled = Act { calls: vec!["ibv_post".into()], ..good.clone() };
    assert_eq!(source_problems(&miscalled, &lesson), ["neither the lesson nor common calls ibv_post"]);
}

/// The steps of a capture's packets, or the first packet that has none.
fn steps(story: &str, capture: &Frames) -> Result<Vec<usize>, String> {
    let story = story::named(story).unwrap();
    let (mut follow, mut lookout) = (story.follow(), Lookout::default());
    let mut step = |number, data| {
        let mut sighting = lookout.live(None, data);
        sighting.record.number = number;
        let step = follow.packet(&sighting, sighting.packet()?);
        Some(step.map(|step| step.number).map_err(|e| e.to_string()))
    };
    (1..).zip(&capture.0).filter_map(|(number, frame)| step(number, &frame.data)).collect()
}

#[test]
fn another_mtu_fewer_acks_and_repetitions_keep_their_steps() {
    let one_packet = Frames::bundled("04_rdma_write");
    assert_eq!(steps("04", &one_packet).unwrap(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    let three_packets = Frames::bundled("04_rdma_write-multi-packet");
    assert_eq!(steps("04", &three_packets).unwrap(), [1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 9, 10, 11]);
    let fewer_acks = one_packet.clone().without("RC Acknowledge");
    assert_eq!(steps("04", &fewer_acks).unwrap(), [1, 2, 3, 4, 6, 7, 8, 9, 10, 11]);
    let [first, middle, last] = ["First", "Middle", "Last"].map(|part| format!("RC RDMA Write {part}"));
    let again = [&first, &middle, &last].map(|name| three_packets.copy(name)).to_vec();
    let behind = three_packets.find(&last) + 1;
    let repeated = three_packets.insert(behind, again).again("ConnectRequest", 1);
    assert_eq!(steps("04", &repeated).unwrap(), [1, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8, 8, 8, 9, 10, 11]);
    // The client's number for the connection is its own in its messages, and the peer's in the server's.
    let numbers = [
        ("ConnectRequest", 0),
        ("ReadyToUse", 0),
        ("DisconnectRequest", 0),
        ("ConnectReply", 4),
        ("DisconnectReply", 4),
    ];
    let second = numbers.into_iter().fold(one_packet.clone(), |second, (name, at)| second.flip(name, CM + at, 1));
    let two_clients = Frames([one_packet.0, second.0].concat());
    assert_eq!(steps("04", &two_clients).unwrap(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11].repeat(2));
}

#[test]
fn a_packet_of_another_story_is_named_with_what_was_expected() {
    let write = Frames::bundled("04_rdma_write");
    let late = Frames(write.0[write.find("ConnectReply") + 1..].to_vec());
    for (story, capture, told) in [
        (
            "03",
            write,
            "the client's RC RDMA Write Only is not part of the story; expected no more of this side after step 4",
        ),
        (
            "06",
            Frames::bundled("06_send_recv_state_machine-read"),
            "RDMA Read Request is not part of the story; expected RC RDMA Write (step ",
        ),
        ("02", Frames::bundled("01_cm_listen"), ": the server's ConnectReject is not part"),
        ("04", late, "expected a ConnectRequest first"),
    ] {
        let error = steps(story, &capture).unwrap_err();
        assert!(error.contains(told), "{error}");
    }
}

/// The problems of lesson 04's recording after a change.
fn problems(change: impl FnOnce(&mut Vec<Piece>)) -> String {
    let story = story::named("04").unwrap();
    let mut pieces = files::read(&recording(&story)).unwrap();
    change(&mut pieces);
    proof::problems(&story, &written(pieces)).join("\n")
}

/// Where the frame with the WRITE is.
fn write(pieces: &[Piece]) -> usize {
    let is_it = |frame: &Recorded| packet(&frame.data).is_some_and(|packet| packet.name() == "RC RDMA Write Only");
    pieces.iter().position(|piece| matches!(piece, Piece::Frame(frame) if is_it(frame))).unwrap()
}

/// Where the first line with this text is.
fn line(pieces: &[Piece], text: &str) -> usize {
    pieces.iter().position(|piece| matches!(piece, Piece::Line(line) if line.text.contains(text))).unwrap()
}

#[test]
fn a_recording_that_lacks_or_adds_a_packet_is_found() {
    assert_eq!(problems(|_| ()), "");
    let lacks = problems(|pieces| drop(pieces.remove(write(pieces))));
    assert!(lacks.contains("no packet belongs to step 8: The client writes"), "{lacks}");
    let last = |change: fn(&mut Recorded)| {
        problems(|pieces| {
            let mut frames = pieces.iter_mut().rev().filter_map(|piece| match piece {
                Piece::Frame(frame) => Some(frame),
                Piece::Line(_) => None,
            });
            change(frames.next().unwrap());
        })
    };
    let damaged = last(|frame| frame.data[60] ^= 1);
    assert!(damaged.contains("has a wrong ICRC"), "{damaged}");
    let turned = last(|frame| frame.node = Some("client".into()));
    assert!(turned.contains("is from the server, and recorded as from client"), "{turned}");
    let foreign = Recorded::of([[2; 12].as_slice(), &[0x86, 0xdd], &[0; 46]].concat()).from("client");
    let foreign = problems(|pieces| pieces.insert(3, Piece::Frame(foreign)));
    assert!(foreign.contains("frame 4 is foreign traffic"), "{foreign}");
    assert!(proof::problems(&story::named("04").unwrap(), b"")[0].contains("too short"));
}

#[test]
fn a_recording_that_lacks_or_misplaces_a_log_line_is_found() {
    let lacks = problems(|pieces| drop(pieces.remove(line(pieces, "ibv_post_send RDMA_WRITE"))));
    assert_eq!(lacks, "step 8: the client's log has no `ibv_post_send RDMA_WRITE` in write");
    let running = problems(|pieces| drop(pieces.remove(line(pieces, "exit status 0"))));
    assert_eq!(running.matches("did not end with exit status 0").count(), 1, "{running}");
    let late = problems(|pieces| {
        let packet = pieces.remove(write(pieces));
        pieces.insert(line(pieces, "ibv_post_send RDMA_WRITE"), packet);
    });
    assert_eq!(late, "step 8: the log line `ibv_post_send RDMA_WRITE` stands after the packet that it causes");
}

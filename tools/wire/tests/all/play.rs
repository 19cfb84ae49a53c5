//! What the player shows: at given moments of bundled captures the code's line, what the log says, the packet's fields, states
//! and memory; and captures that are of no lesson, without a log, hostile, empty, cut, long.

use crate::files::{self, packet, root, written, Piece, Recorded};
use roce::Packet;
use run::capture::{Events, Reader};
use run::file::Line;
use run::said::{number, value};
use run::source::Source;
use serde_json::Value;
use std::collections::BTreeMap;
use wire::play::{self, page, Lesson, Run};
use wire::show::parts::parts;

fn capture(name: &str) -> Vec<u8> {
    std::fs::read(files::bundled(name)).unwrap()
}

fn events(file: &[u8]) -> Events {
    Events::read(file).unwrap()
}

/// A capture of no lesson.
fn own(file: &[u8]) -> Played {
    Played::of(&play::run(&events(file), "my", None))
}

/// A run as the player has it.
struct Played(Value);

impl Played {
    fn of(run: &Run) -> Played {
        Played(serde_json::from_str(&run.json()).unwrap())
    }

    /// A bundled run, or one like it, read with its lesson.
    fn lesson(name: &str, file: &[u8]) -> Played {
        let lesson = Lesson::read(&root().join("lessons").join(name.split('-').next().unwrap())).unwrap();
        Played::of(&play::run(&events(file), name, Some(&lesson)))
    }

    fn bundled(name: &str) -> Played {
        Played::lesson(name, &capture(name))
    }

    fn events(&self) -> &Vec<Value> {
        self.0["events"].as_array().unwrap()
    }

    /// All changes of this kind, `qp` or `memory`, in their order.
    fn changes(&self, kind: &'static str) -> impl Iterator<Item = &Value> {
        self.events().iter().flat_map(move |event| event[kind].as_array().into_iter().flatten())
    }

    /// The first event of this node with that in its text, or the first packet of a step.
    fn find(&self, node: &str, text: &str) -> &Value {
        let is_it = |event: &&Value| {
            let name = self.0["nodes"][number_of(&event["node"])].as_str().unwrap();
            let told = format!("{} {} {}", event["tag"].as_str().unwrap_or(""), event["text"], event["notes"]);
            name.starts_with(node) && told.contains(text)
        };
        self.events().iter().find(is_it).unwrap_or_else(|| panic!("{node} has no {text}"))
    }

    /// The file and the line of code that an event points to, and whether just that line acts.
    fn code(&self, event: &Value) -> (&str, &str, bool) {
        let file = &self.0["files"][number_of(&event["code"][0])];
        let line = file[1].as_str().unwrap().lines().nth(number_of(&event["code"][1]) - 1).unwrap();
        (file[0].as_str().unwrap(), line.trim(), event["code"][2].as_bool().unwrap())
    }
}

fn number_of(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

/// The bytes that a change of memory takes from its packet.
fn moved(event: &Value, change: usize) -> Vec<u8> {
    let [from, len] = ["from", "len"].map(|key| number_of(&event["memory"][change][key]));
    let hex = &event["bytes"].as_str().unwrap()[from * 2..(from + len) * 2];
    (0..len).map(|i| u8::from_str_radix(&hex[i * 2..i * 2 + 2], 16).unwrap()).collect()
}

/// A bundled capture of lesson 04 whose log says where the lines with a text come from: file, number, what is there.
fn telling(places: &[(&str, &str, usize, &str)]) -> Vec<u8> {
    let mut pieces = files::read(&capture("04_rdma_write")).unwrap();
    for piece in &mut pieces {
        let Piece::Line(line) = piece else { continue };
        let place = places.iter().find(|(words, ..)| line.words().contains(words));
        line.source = place.map(|(_, file, number, text)| {
            let (file, text) = (format!("lessons/04_rdma_write/src/{file}"), (*text).to_owned());
            Source { file, line: *number, text }
        });
    }
    written(pieces)
}

#[test]
fn log_lines_lead_to_the_line_that_acts() {
    let write = "resources.qp.post_send(&SendWr::rdma_write(source, 0..source.len(), theirs))";
    let file = telling(&[
        // Numbers of another day.
        ("rdma_connect responder", "client.rs", 1, "id.connect(&CONN_PARAM)?;"),
        ("rdma_accept", "server.rs", 7, "what is not there any more();"),
        ("rdma_destroy_qp", "main.rs", 9999, "let _stage = stage(\"teardown\");"),
        ("opcode=RDMA_WRITE", "by_hand/memory.rs", 1, write),
        ("ibv_alloc_pd", "main.rs", 84, ""),
    ]);
    let run = Played::lesson("04_rdma_write", &file);
    let acts = |node, text| run.code(run.find(node, text));
    let connect = ("client.rs", "id.connect(&CONN_PARAM)?;", true);
    assert_eq!(acts("client", "rdma_connect responder"), connect);
    assert_eq!(acts("client", "ConnectRequest"), connect, "the packet, too");
    let begin = ("main.rs", "let _stage = stage(\"teardown\");", false);
    assert_eq!(acts("server", "rdma_destroy_qp"), begin, "a drop has no caller");
    assert_eq!(acts("client", "WR: wr_id=3 opcode=RDMA_WRITE"), ("memory.rs", write, true));
    for nowhere in ["rdma_accept", "ibv_alloc_pd", "exit status 0"] {
        assert!(run.find("server", nowhere).get("code").is_none(), "{nowhere}");
    }
}

#[test]
fn every_packet_of_every_lesson_has_the_code_that_caused_it() {
    for story in run::story::bundled().unwrap() {
        let name = story.file_name();
        let run = Played::bundled(&name);
        for piece in files::read(&capture(&name)).unwrap() {
            let Piece::Line(Line { number, source: Some(source), .. }) = piece else { continue };
            let event = run.events().iter().find(|event| event["n"] == number);
            let is_there = event.map_or(true, |event| event.get("code").is_some());
            assert!(is_there, "{name}: not in the lesson of today: {source:?}: make record lesson={}", story.number());
        }
        for event in run.events().iter().filter(|event| event.get("to").is_some()) {
            let note = event["notes"][0].as_str().unwrap();
            let number: usize = note["Step ".len()..note.find(':').unwrap()].parse().unwrap();
            let step = &story.steps[number - 1];
            assert_eq!(event["device"].as_bool().unwrap_or(false), step.device, "{note}");
            // A program that dies sends, too: no line of it, but the function's end.
            let exact = event["code"][2].as_bool().unwrap_or_else(|| panic!("{name}: {note}: no code"));
            assert!(exact || step.act.log.contains("destroy"), "{name}: {note}: {:?}", run.code(event));
        }
    }
}

#[test]
fn a_write_moves_bytes_from_memory_to_memory() {
    let run = Played::bundled("04_rdma_write");
    let write = run.find("client", "RDMA Write Only");
    assert!(write["notes"][0].as_str().unwrap().ends_with("The client writes into the server's memory"));
    assert_eq!(write["memory"].as_array().unwrap().len(), 2);
    for (place, node, read) in [(0, "client", true), (1, "server", false)] {
        let metadata = run.find(node, "our metadata")["text"].as_str().unwrap();
        let address = value(metadata, "addr").unwrap();
        let is_it =
            |change: &&Value| change["what"] == "region" && change["node"] == place && change["addr"] == address;
        let (region, change) = (run.changes("memory").find(is_it).unwrap(), &write["memory"][place]);
        assert_eq!((&change["region"], &change["at"], &change["read"]), (&region["region"], &0.into(), &read.into()));
        assert_eq!(moved(write, place), b"One side writes, and the other side's processor never knows.");
        // The SEND before it told that, and landed in the receive that was posted for it.
        let send = run.find("server", "Send Only");
        let posted = &run.find("client", "MR: addr")["memory"][0];
        assert_ne!(send["memory"][1]["region"], posted["region"], "the first region is what will be written");
        assert!(node == "client" || moved(send, 1)[..8] == number(metadata, "addr").unwrap().to_be_bytes());
    }
}

#[test]
fn a_message_of_several_packets_fills_its_region_piece_by_piece() {
    let run = Played::bundled("04_rdma_write-multi-packet");
    let is_part = |event: &&Value| event["tag"].as_str().is_some_and(|tag| tag.starts_with("RDMA Write "));
    let parts = run.events().iter().filter(is_part);
    let at: Vec<_> = parts.map(|event| (number_of(&event["memory"][1]["at"]), moved(event, 1).len())).collect();
    assert_eq!(at, [(0, 1024), (1024, 1024), (2048, 452)]);
    let run = Played::bundled("05_rdma_read");
    let answer = run.find("server", "RDMA Read Response Only");
    assert!(!moved(answer, 0).is_empty() && moved(answer, 0) == moved(answer, 1));
    assert_eq!([0, 1].map(|place| &answer["memory"][place]["read"]), [true, false]);
}

#[test]
fn a_write_with_a_wrong_key_changes_no_memory_and_atomics_do() {
    let run = Played::bundled("08_handle_api-calls");
    let refused = run.find("client", "Step 15");
    assert!(refused["memory"].as_array().into_iter().flatten().all(|change| change["read"] == true), "{refused}");
    let run = Played::bundled("09_parameter_server");
    let answers = run.events().iter().filter(|event| event["tag"] == "Atomic Acknowledge");
    let counter: Vec<_> = answers.take(3).map(|event| event["memory"][0]["hex"].as_str().unwrap()).collect();
    assert_eq!(counter, ["8000000000000000", "0001000000000000", "8001000000000000"]);
}

#[test]
fn states_of_queue_pairs_follow_the_log() {
    let run = Played::bundled("04_rdma_write");
    let states = |node: usize| {
        let of = run.changes("qp").filter(|state| state["node"] == node);
        let mut of: Vec<_> = of.map(|state| state["state"].as_str().unwrap()).collect();
        of.dedup();
        of
    };
    // What the connection manager's messages tell is between what the log tells.
    assert_eq!(states(0), ["INIT", "RTS", "left RTS", "ERR", ""]);
    assert_eq!(states(1), ["INIT", "RTR or RTS", "RTS", "left RTS", "ERR", ""]);
    let run = Played::bundled("08_handle_api");
    let rtr = &run.find("client", "state=RTR")["qp"][0];
    assert!(rtr["state"] == "RTR" && rtr["implied"] == false, "{rtr}");
}

#[test]
fn fields_are_those_of_wire_show() {
    let player = Played::bundled("04_rdma_write");
    let file = capture("04_rdma_write");
    let mut reader = Reader::new(file.as_slice()).unwrap();
    while let Some(record) = reader.next().unwrap() {
        let Some(packet) = packet(record.data) else { continue };
        let event = player.events().iter().find(|event| event["n"] == record.number).unwrap();
        let (shown, parts) = (event["parts"].as_array().unwrap(), parts(&record, &packet));
        assert_eq!(shown.len(), parts.len());
        for (shown, part) in shown.iter().zip(parts) {
            let layout = &player.0["layouts"][number_of(&shown[0])];
            assert!(layout["title"] == part.title && layout["start"] == part.start, "{layout}");
            let about = shown[1].as_array().unwrap().chunks(2).map(|pair| [&pair[0], &pair[1]].map(number_of));
            let about: BTreeMap<usize, usize> = about.map(|[place, text]| (place, text)).collect();
            for (place, value) in part.values.iter().enumerate() {
                let field = &layout["fields"][place];
                assert!(field[0] == value.name && field[1] == value.bit, "{field}");
                let text = about.get(&place).map_or("", |text| player.0["texts"][*text].as_str().unwrap());
                match field[3].as_str().unwrap() {
                    "text" if text.is_empty() => assert!(value.value.is_empty() && value.meaning.is_empty()),
                    "text" => assert_eq!(text, format!("{}\t{}", value.value, value.meaning)),
                    way => assert_eq!((way == "hex", text), (value.value.starts_with("0x"), value.meaning.as_str())),
                }
            }
        }
    }
}

fn line(node: &str, text: &str) -> Piece {
    Piece::Line(Line { node: node.into(), program: node.into(), text: text.into(), ..Line::default() })
}

#[test]
fn a_hostile_capture_cannot_write_into_the_page() {
    let text = "</script><script>alert(1)</script><!-- & \u{2028}";
    let turned = "\u{202e}\u{2067}\u{200f}revres\u{1b}[31m";
    let said = ["ibv_reg_mr access=A|B", "MR: addr=0x10 len=16 lkey=0x1 rkey=0x2", "QP: qpn=1 state=INIT x=y"];
    let said = said.map(|words| line(turned, &format!("[1 #0001 stage{turned}] INFO  {words}{turned}")));
    let frame = Piece::Frame(Recorded::of(vec![0; 60]).from(turned));
    let file = written([vec![frame, line(text, text)], said.to_vec()].concat());
    let file = events(&file);
    let run = play::run(&file, &format!("{text}{turned}"), None);
    assert_eq!(Played::of(&run).events()[0]["text"], text, "nothing is lost");
    let page = |run: &Run| page::page(run, &page::ladder(&file));
    let written = page(&run);
    let scripts = (written.matches("<script").count(), written.matches("</script").count());
    assert_eq!(scripts, (2, 2), "the data and the player");
    assert!(!written.contains("alert(1)<") && !written.contains("<b>"));
    let found: Vec<_> = written.chars().filter(|c| turned[..9].contains(*c) || *c == '\u{1b}').collect();
    assert!(found.is_empty() && run.json().contains("revres"), "{found:?}");
    assert!(written.contains("default-src 'none'") && !written.contains("unsafe"));
    let nonce = |page: &str| page.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap().to_owned();
    assert_eq!(written.matches(&format!("nonce=\"{}\"", nonce(&written))).count(), 2, "the style and the player");
    assert_ne!(nonce(&written), nonce(&page(&run)), "nobody knows it beforehand");
}

/// The frames of lesson 04's run without its log, each with what `comment` says about it.
fn frames(comment: impl Fn(&Packet) -> Option<&'static str>) -> Vec<Piece> {
    let frames = files::frames(&capture("04_rdma_write")).into_iter();
    let told = frames.map(|frame| {
        let comment = packet(&frame.data).and_then(|packet| comment(&packet));
        Piece::Frame(Recorded { node: None, ..frame.with(comment) })
    });
    told.collect()
}

#[test]
fn captures_without_a_log_tell_what_their_packets_imply() {
    let own = own(&written(frames(|_| None)));
    assert_eq!((&own.0["title"], own.0["files"].as_array().unwrap().len()), (&"my".into(), 0));
    let reply = &own.find("server", "ConnectReply")["qp"][0];
    assert!(reply["state"] == "RTR or RTS" && reply["implied"] == true, "{reply}");
    let write = own.find("client", "RDMA Write Only");
    assert!(write["memory"][0]["what"] == "region" && write["memory"][0]["len"] == 60, "{write}");
    assert_eq!(moved(write, 1).len(), 60);
}

#[test]
fn a_packet_that_is_lost_writes_nothing() {
    let lose = |packet: &Packet| packet.name().contains("RDMA Write").then_some("lab: dropped by the rule `drop 1st`");
    let own = own(&written(frames(lose)));
    let write = own.find("client", "RDMA Write Only");
    assert!(write["notes"][0].as_str().unwrap().starts_with("lab: dropped"));
    assert!(write["memory"].as_array().unwrap().iter().all(|change| change["what"] == "region"), "{}", write["memory"]);
}

#[test]
fn what_is_left_out_is_said() {
    let file = capture("04_rdma_write");
    let left_out = |file: &[u8]| own(file).0["left_out"].as_str().unwrap().to_owned();
    assert!(left_out(&file).contains("2 ARP"));
    assert!(left_out(&file[..file.len() - 5]).contains("the file ends inside"));
    assert!(own(&written([])).events().is_empty());
    let is_packet = |piece: &Piece| matches!(piece, Piece::Frame(frame) if packet(&frame.data).is_some());
    let many = frames(|_| None).into_iter().cycle().filter(is_packet);
    let many = own(&written(many.take(10_000)));
    assert_eq!(many.events().len(), 3000);
    let left_out = many.0["left_out"].as_str().unwrap();
    assert!(left_out.contains("only the first 3000 events are shown, and 7000 more"), "{left_out}");
}

#[test]
fn each_event_says_what_it_is_for_and_a_run_opens_where_its_lesson_adds_something() {
    for story in run::story::bundled().unwrap() {
        let name = story.file_name();
        let run = Played::bundled(&name);
        let text = |event: &Value| run.0["texts"][number_of(&event["why"])].as_str().unwrap().to_owned();
        for event in run.events() {
            let (said, why) = (event["text"].as_str().unwrap(), text(event));
            assert!(why.ends_with('.'), "{name}: {event}");
            let is_call =
                ["ibv_", "rdma_", "CM event", "MR:", "QP:", "WC:"].iter().any(|begin| said.starts_with(begin));
            assert!(!is_call || why != "What the program says about itself.", "{name}: {said}");
        }
        let steps: Vec<_> = run.events().iter().filter(|event| event["begins"] == true).collect();
        for (number, step) in story.steps.iter().enumerate() {
            let note = format!("Step {}: {}", number + 1, step.title);
            let begun = steps.iter().find(|event| event["notes"][0] == *note);
            let begun = begun.unwrap_or_else(|| panic!("{name}: {note} begins nowhere"));
            assert!(begun.get("to").is_some() || begun["text"].as_str().unwrap().contains(&step.act.log), "{begun}");
        }
        let opens = &run.events()[number_of(&run.0["opens"]) - 1];
        let stage = opens["stage"].as_str().unwrap_or("");
        let shows = story
            .shows
            .iter()
            .any(|shown| ["client", "server", "client-1"].iter().any(|node| shown.is_of(node, stage)));
        assert!(shows || opens.get("to").is_some(), "{name}: {opens}");
    }
    let bare = own(&capture("04_rdma_write"));
    assert!(bare.events()[number_of(&bare.0["opens"]) - 1]["tag"].as_str().unwrap().contains("ConnectRequest"));
}

#[test]
fn what_a_packet_is_labelled_with_is_what_the_states_show() {
    let mut labels = 0;
    for story in run::story::bundled().unwrap() {
        let run = Played::bundled(&story.file_name());
        let mut states = BTreeMap::new();
        for event in run.events() {
            for state in event["qp"].as_array().into_iter().flatten() {
                states.insert((number_of(&state["node"]), number_of(&state["qpn"])), state["state"].as_str().unwrap());
            }
            let text = event["text"].as_str().unwrap();
            let told = [
                ("QP is in RTR or RTS", &["RTR or RTS", "RTS"][..]),
                ("both QPs are in RTS", &["RTS"]),
                // What is destroyed has left it as well.
                ("QP leaves RTS", &["left RTS", "ERR", ""]),
            ];
            let Some((words, right)) = told.iter().find(|(words, _)| text.ends_with(words)) else { continue };
            let ends = [number_of(&event["node"]), number_of(&event["to"])];
            for node in &ends[..if words.starts_with("both") { 2 } else { 1 }] {
                let shown = states.iter().filter(|((of, _), _)| of == node).map(|(_, state)| *state);
                assert!(shown.clone().any(|state| right.contains(&state)), "{}: {event}", story.file_name());
            }
            labels += 1;
        }
    }
    assert!(labels > 40, "{labels}");
}

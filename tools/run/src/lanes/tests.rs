//! What is drawn where.
#![allow(clippy::unwrap_used)] // A test may end with a panic.

use super::*;
use crate::pcapng::{Section, Writer};
use crate::sighting::{Record, Sighting};
use crate::story;
use roce::{Frame, LinkType};

fn line(node: &str, text: &str) -> Line {
    Line { number: 7, time_us: 12_345, node: node.into(), program: "x".into(), text: text.into(), ..Line::default() }
}

fn lanes(width: usize, nodes: &[&str]) -> Lanes {
    Lanes::new(nodes, Style { width, color: false })
}

fn draw(lanes: &mut Lanes, node: &str, text: &str) -> String {
    lanes.event(&Event::Line(line(node, text)))
}

/// An ACK as it crosses the wire: Ethernet, IPv4, UDP to port 4791, BTH, AETH, ICRC.
fn acknowledge(from: u8, to: u8) -> Vec<u8> {
    let mut frame = vec![0; 14 + 20 + 8 + 12 + 4 + 4];
    frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    frame[17] = 48;
    frame[23] = 17;
    (frame[29], frame[33]) = (from, to);
    frame[36..38].copy_from_slice(&4791u16.to_be_bytes());
    frame[39] = 28;
    frame[42] = 0x11;
    frame[53] = 7;
    frame
}

fn sent<'a>(node: &'a str, data: &'a [u8], comment: Option<&'a str>) -> Event<'a> {
    let (link, length) = (LinkType::ETHERNET, data.len());
    let record = Record { number: 9, node: Some(node), time_ns: Some(14_000_000), link, data, length, comment };
    let frame = Frame::ethernet(data);
    Event::Packet(Sighting { record, frame, seen: None, connection: None, nvme: None, iwarp: None })
}

/// What else is drawn for two nodes, captures/*.txt shows: `make check` compares it.
#[test]
fn lost_packets_and_long_lines_are_in_their_lane() {
    let mut lanes = lanes(100, &["server", "client"]);
    let text = "word ".repeat(30) + &"x".repeat(100);
    for row in draw(&mut lanes, "server", &text).lines() {
        assert!(row.chars().count() <= 100 && row.chars().nth(56) == Some('│'), "{row}");
    }
    let ack = lanes.event(&sent("server", &acknowledge(1, 2), Some("Step 9: It came [device] lab: dropped by x")));
    assert!(ack.starts_with("   9     1.7  ✕───"), "{ack}");
    assert!(ack.contains("  Step 9: It came\n") && ack.contains("  lab: dropped by x\n"), "{ack}");
    assert_eq!(lanes.event(&sent("client", &[0; 60], None)), "");
}

#[test]
fn a_narrow_terminal_and_many_nodes_get_one_column() {
    let mut narrow = lanes(60, &["client", "server"]);
    assert_eq!(narrow.heading(), "72 columns would show the two programs side by side.\n");
    assert_eq!(draw(&mut narrow, "client", "hello"), "   7     0.0  client  hello\n");
    assert!(draw(&mut narrow, "server", &"long ".repeat(40)).lines().all(|row| row.chars().count() <= 60));
    let mut many = lanes(100, &["server", "worker-1", "worker-2"]);
    let ack = acknowledge(2, 1);
    assert!(many.event(&sent("worker-2", &ack, None)).contains("  worker-2  ─▶ 0.0.0.1  Acknowledge"));
    let _ = many.event(&sent("server", &acknowledge(1, 2), None));
    assert!(many.event(&sent("worker-2", &ack, None)).contains("  worker-2  ─▶ server  Acknowledge"));
}

#[test]
fn the_tag_gives_the_color_and_a_text_cannot() {
    let mut lanes = Lanes::new(&["client", "server"], Style { width: 60, color: true });
    let row = draw(&mut lanes, "client", "[12:00:00.123 #0007 accept] ERR   x\u{1b}[32m");
    assert!(row.contains("\u{1b}[31m") && !row.contains("\u{1b}[32m"), "{row:?}");
}

#[test]
fn wrapping_prefers_spaces_and_bars() {
    assert_eq!(wrap("access=LOCAL_WRITE|REMOTE_READ", 20), ["access=LOCAL_WRITE|", "    REMOTE_READ"]);
    assert_eq!(wrap("no spaces", 7), ["no", "    spa", "    ces"]);
    assert_eq!(wrap("status=IBV_WC_REM_ACCESS_ERR", 27), ["status=IBV_WC_REM_ACCESS_", "    ERR"]);
}

#[test]
fn a_picture_holds_no_more_than_what_is_drawn() {
    let mut writer = Writer::new(Vec::new(), &Section::default()).unwrap();
    let nodes = ["server", "client"].map(|name| writer.interface(LinkType::ETHERNET, Some(name)).unwrap());
    for text in ["[12:00:00.123 #0001 knock] DATA  first", "[12:00:00.124 #0002 knock] ERR   <script>&\u{1b}[31m"] {
        writer.line(&line("client", text)).unwrap();
    }
    let ack = acknowledge(1, 2);
    writer.packet(nodes[0], 13_000_000, &ack, ack.len(), Some("lab: dropped <b>")).unwrap();
    let run = writer.into_inner().unwrap();
    let (svg, words) = picture(&Events::read(&run[..]).unwrap(), 2..=3).unwrap();
    // The part tells the stage itself, though the line before it has the same.
    assert!(
        svg.contains(">[knock] <tspan class=\"err\">ERR</tspan> ") && svg.contains("&lt;script>&amp;[31m"),
        "{svg}"
    );
    assert!(!svg.contains("<script>") && !svg.contains("<b>") && !svg.contains('\u{1b}') && !svg.contains("first"));
    assert!(svg.contains("arrow trouble") && words.contains("3 server to client: Acknowledge"), "{words}");
}

#[test]
fn the_ladder_of_any_capture_has_its_two_machines() {
    let mut writer = Writer::new(Vec::new(), &Section::default()).unwrap();
    let interface = writer.interface(LinkType::ETHERNET, None).unwrap();
    for (from, to, comment) in [(1, 2, "Step 8: A & B write [client: ibv_post_send]"), (2, 1, "a comment of my own")] {
        let ack = acknowledge(from, to);
        writer.packet(interface, 0, &ack, ack.len(), Some(comment)).unwrap();
    }
    let (svg, words) = ladder(&Events::read(&writer.into_inner().unwrap()[..]).unwrap()).unwrap();
    assert!(svg.contains(">0.0.0.2<") && svg.contains(">0.0.0.1<") && !svg.contains("client 0"), "{svg}");
    assert!(svg.contains(">Step 8: A &amp; B write<") && !svg.contains("my own"), "{svg}");
    // Each arrow points to the receiver.
    assert!(svg.contains("M856 58H102") && svg.contains("M102 "), "{svg}");
    assert!(
        words.starts_with("1 0.0.0.1 to 0.0.0.2: Acknowledge") && words.contains("2 0.0.0.2 to 0.0.0.1"),
        "{words}"
    );
}

/// A bundled capture as its story.
fn told(name: &str, width: usize) -> String {
    let path = format!("{}/../../captures/{name}.pcapng", env!("CARGO_MANIFEST_DIR"));
    let run = std::fs::read(path).unwrap();
    super::story(&Events::read(&run[..]).unwrap(), &story::named(name).unwrap(), Style { width, color: false }).unwrap()
}

/// Below the lanes stand some six lines of how it ended.
#[test]
fn a_lesson_is_told_in_few_lines_with_a_heading_for_every_step() {
    for story in story::bundled().unwrap() {
        let (name, text) = (story.file_name(), told(&story.file_name(), 100));
        let most = if story.number() < "08" { 62 } else { 84 } + if story.variant == story::MAIN { 0 } else { 10 };
        assert!(text.lines().count() <= most, "{name}: {}\n{text}", text.lines().count());
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{name}\n{text}");
        for step in &story.steps {
            let heading = format!("{:>2}  {}", step.number, step.title);
            let is_it = |line: &&str| line.get(14..).is_some_and(|line| line.starts_with(&heading));
            assert_eq!(text.lines().filter(is_it).count(), 1, "{name}: {heading}\n{text}");
        }
    }
}

#[test]
fn what_a_lesson_adds_stands_open_and_trouble_is_never_folded() {
    let text = told("04_rdma_write", 100);
    for shown in [
        "[write] DATA  ibv_post_send RDMA_WRITE",
        "RDMA Write Only  psn +1",
        "DATA  WC: wr_id=3",
        "the memory holds 60",
    ] {
        assert_eq!(text.matches(shown).count(), 1, "{shown}\n{text}");
    }
    for folded in ["rdma_create_id", "CM event", "Send Only  psn", "Step 8:"] {
        assert!(!text.contains(folded), "{folded}\n{text}");
    }
    let text = told("07_disconnect_flush-puzzle", 100);
    assert!(text.contains("ERR"), "{text}");
}

//! The second wire: runs of lesson 05 and others with RDMA inside TCP, recorded in the lab on Linux 6.1's siw.

use crate::files::{root, text};
use roce::iwarp::{Crc, Kind};
use run::capture::{Events, Reader};
use run::lanes::{self, Style};
use std::path::{Path, PathBuf};
use testkit::tshark;
use wire::compare::{compare, Capture, Report, Verdict};
use wire::{play, show};

/// The run that the page shows.
const BUNDLED: &str = "captures/over_tcp/05_rdma_read.pcapng";
/// The run in which a piece of a long WRITE is lost.
const GAP: &str = "captures/over_tcp/05_rdma_read-lost.pcapng";

fn case(name: &str) -> PathBuf {
    root().join("tools/wire/tests/all/cases/iwarp").join(name)
}

fn bundled() -> PathBuf {
    root().join(BUNDLED)
}

fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

/// The units that end in the frames of a file, each with C or S for the side that sent it.
fn units(path: &Path) -> Vec<String> {
    let bytes = bytes(path);
    let (mut reader, mut found) = (Reader::new(bytes.as_slice()).unwrap(), Vec::new());
    while let Some(sighting) = reader.next().unwrap() {
        if let Some(brought) = sighting.iwarp() {
            let side = if brought.from_client { 'C' } else { 'S' };
            found.extend(brought.units.iter().map(|unit| format!("{side} {}", unit.kind.name())));
        }
    }
    found
}

fn compared(mine: &Path, reference: &Path) -> Report {
    let [mine, reference] = [mine, reference].map(|path| {
        let bytes = bytes(path);
        Capture::read(&mut Reader::new(bytes.as_slice()).unwrap()).unwrap()
    });
    compare(&mine, &reference)
}

fn ladder(path: &Path) -> String {
    let bytes = bytes(path);
    let open = || Reader::new(bytes.as_slice()).unwrap();
    let (mut out, style) = (Vec::new(), Style { width: usize::MAX, ..Style::FILE });
    show::ladder::write(&mut open(), style, &mut out).unwrap();
    text(&out).to_owned()
}

#[test]
fn lesson_05_has_the_same_operations_over_tcp() {
    let expected = [
        "C MPA Request",
        "S MPA Reply",
        "C RDMAP Send",
        "S RDMAP Send",
        "C RDMAP Write",
        "C RDMAP Read Request",
        "S RDMAP Read Response",
    ];
    assert_eq!(units(&bundled()), expected);
}

/// tshark is an independent decoder: it agrees on each field of each unit, also where units are longer than segments, where there
/// are CRCs, and where a device says why it ends the connection.
#[test]
fn every_field_agrees_with_tshark() {
    let mut files = vec![bundled()];
    files.extend(std::fs::read_dir(case("")).unwrap().map(|entry| entry.unwrap().path()));
    assert!(files.len() > 4, "{files:?}");
    for file in files {
        println!("{}: {} units agree", file.display(), tshark::iwarp::agree(&file));
    }
}

/// A module that was built to ask for CRCs made this one: the kernel at the other end found them right, and so do we.
#[test]
fn every_crc_of_a_run_with_crcs_fits() {
    let bytes = bytes(&case("crc.pcapng"));
    let (mut reader, mut fits) = (Reader::new(bytes.as_slice()).unwrap(), 0);
    while let Some(sighting) = reader.next().unwrap() {
        for unit in sighting.iwarp().iter().flat_map(|brought| &brought.units) {
            let expected = if matches!(unit.kind, Kind::Rdmap(_)) { Crc::Ok } else { Crc::Unused };
            assert_eq!(unit.crc, expected, "frame {}", sighting.number);
            fits += usize::from(unit.crc == Crc::Ok);
        }
    }
    assert_eq!(fits, 9);
}

#[test]
fn what_is_shown_names_units_tags_and_what_tcp_does() {
    let told = ladder(&bundled());
    for part in [
        "── MPA Request ─",
        "RDMAP Write ─",
        "len 60  to 0x",
        "TCP ACK",
        "TCP FIN",
        "TCP segments of iWARP; not shown:",
    ] {
        assert!(told.contains(part), "no {part}: {told}");
    }
    let dropped = ladder(&case("lost-write.pcapng"));
    assert!(dropped.contains("sent again"), "{dropped}");

    let run = bytes(&bundled());
    let events = Events::read(&run[..]).unwrap();
    let drawn = lanes::text(&events, Style::FILE, 0..=u64::MAX).unwrap();
    assert!(drawn.contains("RDMAP Read Response") && drawn.contains("ibv_post_send RDMA_READ"), "{drawn}");
    let played = play::run(&events, "run", None).json();
    assert!(
        played.contains("\"RDMAP Write\"") && played.contains("Direct Data Placement, tagged"),
        "the player has it"
    );
}

/// What the exercise `lessons/05_rdma_read/changes/tcp.md` asks about this run, and what it explains. A new recording has other numbers.
#[test]
fn a_write_with_a_gap_is_completed_before_the_gap_is_closed() {
    let run = bytes(&root().join(GAP));
    let style = Style { width: 400, ..Style::FILE };
    let drawn = lanes::text(&Events::read(&run[..]).unwrap(), style, 0..=u64::MAX).unwrap();
    let word = |line: &str, before: &str| {
        line.split(before).nth(1).and_then(|rest| rest.split_whitespace().next()).map(str::to_owned)
    };
    let lines = |part: &str| drawn.lines().filter(|line| line.contains(part)).collect::<Vec<_>>();
    let frame = |line: &str| line.split_whitespace().next().unwrap().parse::<u64>().unwrap();
    let to = |line: &str| u64::from_str_radix(&word(line, "  to 0x").unwrap(), 16).unwrap();

    let [first, lost, next, _] = lines("RDMAP Write  seq")[..] else { panic!("{drawn}") };
    assert!(lost.contains('✕'), "{lost}");
    assert_eq!(to(next) - to(first), 2856);

    // The ACK of everything, and that of the first segment, before which the WRITE is complete.
    let acks = lines(" TCP ACK  ack +");
    let counts: Vec<_> = acks.iter().map(|line| (frame(line), word(line, "  ack +").unwrap())).collect();
    let first_with = |ack: &str| counts.iter().find(|(_, count)| count == ack).unwrap().0;
    let [request, again] = ["RDMAP Read Request", "sent again"].map(|part| lines(part)[0]);
    assert_eq!(word(request, "  seq +").unwrap(), "5144");
    assert_eq!(first_with("5196"), 134);
    assert!(frame(request) < frame(again) && frame(again) < 134, "{drawn}");
    assert_eq!(counts.iter().filter(|(at, _)| (frame(request)..frame(again)).contains(at)).count(), 2, "{counts:?}");
    let done = frame(lines("opcode=IBV_WC_RDMA_WRITE")[0]);
    assert!(done == 117 && done < first_with("1512"), "{drawn}");

    let tag = word(lines("RDMAP Read Response")[0], "  stag ").unwrap();
    let of_memory: Vec<&str> =
        drawn.lines().filter(|line| line.contains(" ibv_reg_mr ") || line.contains(" MR: ")).collect();
    let at = of_memory.iter().position(|line| line.contains(&format!("lkey={tag}"))).unwrap();
    assert!(of_memory[at - 1].contains("len=5000 access=LOCAL_WRITE"), "{of_memory:#?}");
    assert!(!of_memory[at - 1].contains("REMOTE"), "{of_memory:#?}");
}

/// Lengths are in the fields where a reader looks for them, also if a message takes several segments.
#[test]
fn a_frame_is_shown_byte_by_byte() {
    let told = ladder(&bundled());
    let number =
        told.lines().find(|line| line.contains("RDMAP Read Request")).unwrap().split_whitespace().next().unwrap();
    let (bytes, mut out) = (bytes(&bundled()), Vec::new());
    let which = number.parse().unwrap();
    show::bytes::write(&mut Reader::new(bytes.as_slice()).unwrap(), which, &mut out).unwrap();
    let shown = text(&out);
    for part in [
        "RDMAP Read Request, 10.47.91.2 -> 10.47.91.1",
        "TCP  Transmission Control Protocol, 20 bytes",
        "ULPDU_Length             46",
        "Opcode                   0x1                 RDMAP Read Request",
        "RDMARDSZ                 60                  bytes wanted",
        "nobody asked for CRCs, so it says nothing",
    ] {
        assert!(shown.contains(part), "no {part}: {shown}");
    }
    assert!(!shown.contains("ICRC"), "{shown}");
}

/// What the page says of siw of Linux 6.1: it answers a READ of memory that's open for WRITEs alone.
#[test]
fn a_read_without_a_right_to_it_is_answered() {
    let file = case("no-remote-read.pcapng");
    let read: Vec<String> = units(&file).into_iter().filter(|unit| unit.contains("Read")).collect();
    assert_eq!(read, ["C RDMAP Read Request", "S RDMAP Read Response"]);
    let bytes = bytes(&file);
    let (mut reader, mut opened) = (Reader::new(bytes.as_slice()).unwrap(), Vec::new());
    while let Some(line) = reader.line().unwrap() {
        opened.extend(line.text.split_once("access=").filter(|_| line.node == "server").map(|(_, to)| to.to_owned()));
    }
    assert!(opened.iter().any(|to| to.contains("REMOTE_WRITE")), "{opened:?}");
    assert!(!opened.iter().any(|to| to.contains("REMOTE_READ")), "{opened:?}");
}

#[test]
fn runs_of_one_wire_are_compared_and_of_two_are_not() {
    let same = compared(&bundled(), &bundled());
    assert_eq!((same.verdict(), same.to_string().lines().count()), (Verdict::Same, 1), "{same}");
    // What the wire has lost and TCP has sent again is not the programs' doing.
    assert_eq!(compared(&case("lost-write.pcapng"), &bundled()).verdict(), Verdict::Same);
    let longer = compared(&case("long.pcapng"), &bundled());
    assert_eq!(longer.verdict(), Verdict::Different);
    assert!(longer.to_string().contains("RDMAP Write, has 5000 bytes in yours, and 60 in the reference"), "{longer}");
    let refused = compared(&case("wrong-key.pcapng"), &bundled());
    assert_eq!(refused.verdict(), Verdict::Different, "{refused}");
    for (mine, reference) in [
        (bundled(), root().join("captures/05_rdma_read.pcapng")),
        (root().join("captures/05_rdma_read.pcapng"), bundled()),
    ] {
        let report = compared(&mine, &reference);
        assert_eq!(report.verdict(), Verdict::Unreadable);
        assert!(report.to_string().contains("compare runs of one wire"), "{report}");
    }
}

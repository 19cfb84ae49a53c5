//! Our reading of iWARP beside tshark's, field by field, in each frame in which a unit ends.

use roce::iwarp::headers::{crc, enhanced, mpa, read, startup, tagged, terminate_control, untagged};
use roce::iwarp::{Kind, Unit};
use run::capture::Reader;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// A field of ours, by header and name, and tshark's.
#[rustfmt::skip] // A table.
const FIELDS: &[(&str, &str, &str)] = &[
    (startup::HEADER.title, "Markers", "iwarp_mpa.marker_flag"),
    (startup::HEADER.title, "CRC", "iwarp_mpa.crc_flag"),
    (startup::HEADER.title, "Rejected", "iwarp_mpa.rej_flag"),
    (startup::HEADER.title, "Revision", "iwarp_mpa.rev"),
    (startup::HEADER.title, "PD_Length", "iwarp_mpa.pdlength"),
    (mpa::HEADER.title, "ULPDU_Length", "iwarp_mpa.ulpdulength"),
    (crc::HEADER.title, "CRC", "iwarp_mpa.crc"),
    (tagged::HEADER.title, "Tagged", "iwarp_ddp.tagged_flag"),
    (untagged::HEADER.title, "Tagged", "iwarp_ddp.tagged_flag"),
    (tagged::HEADER.title, "Last", "iwarp_ddp.last_flag"),
    (untagged::HEADER.title, "Last", "iwarp_ddp.last_flag"),
    (tagged::HEADER.title, "DV", "iwarp_ddp.dv"),
    (untagged::HEADER.title, "DV", "iwarp_ddp.dv"),
    (tagged::HEADER.title, "RV", "iwarp_rdma.version"),
    (untagged::HEADER.title, "RV", "iwarp_rdma.version"),
    (tagged::HEADER.title, "Opcode", "iwarp_rdma.opcode"),
    (untagged::HEADER.title, "Opcode", "iwarp_rdma.opcode"),
    (tagged::HEADER.title, "STag", "iwarp_ddp.stag"),
    (tagged::HEADER.title, "TO", "iwarp_ddp.tagged_offset"),
    (untagged::HEADER.title, "QN", "iwarp_ddp.qn"),
    (untagged::HEADER.title, "MSN", "iwarp_ddp.msn"),
    (untagged::HEADER.title, "MO", "iwarp_ddp.mo"),
    (read::HEADER.title, "SinkSTag", "iwarp_rdma.sinkstag"),
    (read::HEADER.title, "SinkTO", "iwarp_rdma.sinkto"),
    (read::HEADER.title, "RDMARDSZ", "iwarp_rdma.rdmardsz"),
    (read::HEADER.title, "SrcSTag", "iwarp_rdma.srcstag"),
    (read::HEADER.title, "SrcTO", "iwarp_rdma.srcto"),
    (terminate_control::HEADER.title, "Layer", "iwarp_rdma.term_layer"),
    (terminate_control::HEADER.title, "HdrCt_M", "iwarp_rdma.term_hdrct_m"),
    (terminate_control::HEADER.title, "HdrCt_D", "iwarp_rdma.hdrct_d"),
    (terminate_control::HEADER.title, "HdrCt_R", "iwarp_rdma.hdrct_r"),
];
/// tshark has a field of its own for a CRC that it has checked.
const SUMS: &[&str] = &["iwarp_mpa.crc", "iwarp_mpa.crc_check"];
/// tshark has one for each layer, of which a Terminate has one. Which error it is.
const KINDS: &[&str] =
    &["iwarp_rdma.term_etype_rdma", "iwarp_rdma.term_etype_ddp", "iwarp_rdma.term_etype_llp", "iwarp_rdma.term_etype"];
const CODES: &[&str] = &[
    "iwarp_rdma.term_errcode_rdma",
    "iwarp_rdma.term_errcode_ddp_tagged",
    "iwarp_rdma.term_errcode_ddp_untagged",
    "iwarp_rdma.term_errcode_llp",
    "iwarp_rdma.term_errcode",
];

/// Of a frame: each field of tshark's that it has, with the values of its units one after the other.
type Frames = BTreeMap<u64, BTreeMap<String, Vec<u64>>>;

fn number(text: &str) -> u64 {
    match text {
        "True" => 1,
        "False" => 0,
        hex if hex.starts_with("0x") => u64::from_str_radix(&hex[2..], 16).unwrap(),
        decimal => decimal.parse().unwrap(),
    }
}

fn tshark(capture: &Path) -> Frames {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(capture).args(["-Y", "iwarp_mpa", "-T", "fields", "-E", "occurrence=a"]);
    let more = KINDS.iter().chain(CODES).map(|name| (*name).to_owned());
    let more = more.chain(SUMS.iter().map(|name| (*name).to_owned()));
    let mut names: Vec<String> = FIELDS.iter().map(|(.., name)| (*name).to_owned()).chain(more).collect();
    names.sort_unstable();
    names.dedup();
    command.args(["-e", "frame.number"]).args(names.iter().flat_map(|name| ["-e", name]));
    let output = command.output().expect("tshark is installed: `make test` gets it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let frame = |line: &str| {
        let mut values = line.split('\t');
        let frame = values.next().unwrap().parse().unwrap();
        let of_field = |text: &str| text.split(',').filter(|value| !value.is_empty()).map(number).collect::<Vec<_>>();
        let fields = names.iter().cloned().zip(values.map(of_field)).filter(|(_, values)| !values.is_empty());
        (frame, fields.collect())
    };
    text.lines().map(frame).collect()
}

/// Our fields of a unit, under tshark's names.
fn of_unit(unit: &Unit) -> Vec<(String, u64)> {
    let mut headers = unit.headers();
    if matches!(unit.kind, Kind::Rdmap(_)) {
        headers.push((unit.bytes.len() - crc::HEADER.length, &crc::HEADER));
    }
    let mut found = Vec::new();
    for (start, header) in headers.into_iter().filter(|(_, header)| header.title != enhanced::HEADER.title) {
        for field in header.fields {
            let theirs = FIELDS.iter().find(|(title, name, _)| (*title, *name) == (header.title, field.name));
            let value = field.read(&unit.bytes[start..]);
            found.extend(theirs.zip(value).map(|((.., name), value)| ((*name).to_owned(), value)));
        }
    }
    if let Some([_, kind, code]) = unit.error() {
        found.extend([("iwarp_rdma.etype".to_owned(), kind.into()), ("iwarp_rdma.code".to_owned(), code.into())]);
    }
    found
}

/// Compares one capture, every frame in which a unit ends and every field; returns how many units it has.
pub fn agree(capture: &Path) -> usize {
    let (mut units, mut ours) = (0, Frames::new());
    let mut reader = Reader::new(std::fs::File::open(capture).unwrap()).unwrap();
    while let Some(sighting) = reader.next().unwrap() {
        for unit in sighting.iwarp().iter().flat_map(|brought| &brought.units) {
            units += 1;
            for (name, value) in of_unit(unit) {
                ours.entry(sighting.number).or_default().entry(name).or_default().push(value);
            }
        }
    }
    let mut theirs = tshark(capture);
    for fields in theirs.values_mut() {
        for (group, one) in [(SUMS, SUMS[0]), (KINDS, "iwarp_rdma.etype"), (CODES, "iwarp_rdma.code")] {
            let found = group.iter().find_map(|name| fields.remove(*name));
            fields.extend(found.map(|values| (one.to_owned(), values)));
        }
    }
    let frames = |frames: &Frames| frames.keys().copied().collect::<Vec<_>>();
    assert_eq!(frames(&ours), frames(&theirs), "{}: frames in which units end", capture.display());
    for (frame, expected) in theirs {
        assert_eq!(ours[&frame], expected, "{}: frame {frame}", capture.display());
    }
    units
}

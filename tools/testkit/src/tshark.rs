//! Our table beside tshark's, column by column. tshark 4.0 or newer is an independent decoder.

use run::capture::Reader;
use std::path::Path;
use std::process::Command;
use wire::show;

/// tshark's fields, in the order of its columns.
const FIELDS: &[&str] = &[
    "frame.number",
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "infiniband.bth.opcode",
    "infiniband.bth.destqp",
    "infiniband.bth.psn",
    "infiniband.bth.a",
    "infiniband.bth.padcnt",
    "infiniband.reth.va",
    "infiniband.reth.r_key",
    "infiniband.reth.dmalen",
    "infiniband.aeth.syndrome",
    "infiniband.aeth.msn",
    "infiniband.immdt",
    "infiniband.mad.attributeid",
    "infiniband.cm.req",
    "infiniband.cm.rep",
    "infiniband.cm.rep.remotecommid",
    "infiniband.cm.rtu.localcommid",
    "infiniband.cm.rtu.remotecommid",
    "infiniband.cm.rej.localcommid",
    "infiniband.cm.rej.remotecommid",
    "infiniband.cm.dreq.localcommid",
    "infiniband.cm.dreq.remotecommid",
    "infiniband.cm.drsp.localcommid",
    "infiniband.cm.drsp.remotecommid",
    "frame.time_epoch",
    "infiniband.deth.srcqp",
    "data.len",
    "udp.length",
    "_ws.col.Info",
];

/// Dissectors that guess at the payload of a SEND and then hide it.
const GUESSERS: &[&str] = &[
    "rpcrdma_infiniband",
    "smb_direct_infiniband",
    "eth_over_ib",
    "mellanox_eoib",
    "iser_infiniband",
    "sdp_infiniband",
    "smcr_infiniband",
    "fc_infiniband",
    "lnet_ib",
    "nvme_rdma",
];

fn tshark(capture: &Path) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(capture).args(["-Y", "infiniband", "-T", "fields", "-E", "occurrence=f"]);
    for guesser in GUESSERS {
        command.args(["--disable-heuristic", guesser]);
    }
    for field in FIELDS {
        command.args(["-e", field]);
    }
    let output = command.output().expect("tshark is installed: `make test` gets it, and so does `apt install tshark`");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    table(&output.stdout)
}

fn wire(capture: &Path) -> Vec<Vec<String>> {
    let mut reader = Reader::new(std::fs::File::open(capture).unwrap()).unwrap();
    let mut text = Vec::new();
    show::tsv::write(&mut reader, &mut text).unwrap();
    let mut rows = table(&text);
    assert_eq!(rows.remove(0).join(" "), COLUMNS);
    rows
}

const COLUMNS: &str = "frame src dst opcode name destqp psn ackreq padcnt va rkey dmalen syndrome msn imm cm \
                       local_id remote_id payload_len icrc \
                       time srcqp service sidr_status";

fn table(text: &[u8]) -> Vec<Vec<String>> {
    let text = std::str::from_utf8(text).unwrap();
    text.lines().map(|line| line.split('\t').map(String::from).collect()).collect()
}

/// A number in tshark's or our notation: decimal, 0x, a truth value, or bare bytes.
fn number(text: &str) -> Option<u64> {
    match text {
        "" => None,
        "True" => Some(1),
        "False" => Some(0),
        hex if hex.starts_with("0x") => Some(u64::from_str_radix(&hex[2..], 16).unwrap()),
        decimal => Some(decimal.parse().unwrap()),
    }
}

/// What tshark says, in the columns of ours that come from it.
fn converted(theirs: &[String]) -> Vec<(&'static str, String)> {
    let get = |name: &str| {
        let at = FIELDS.iter().position(|field| *field == name).unwrap();
        theirs.get(at).map(String::as_str).unwrap_or("")
    };
    let first =
        |names: &[&str]| names.iter().map(|name| get(name)).find(|text| !text.is_empty()).unwrap_or("").to_string();
    let as_number = |name: &str| number(get(name)).map(|value| value.to_string()).unwrap_or_default();
    let id = |side: &str, others: &[&'static str]| {
        let mut names = vec![];
        for message in ["rtu", "rej", "dreq", "drsp"] {
            names.push(format!("infiniband.cm.{message}.{side}commid"));
        }
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.extend(others);
        number(&first(&names)).map(|value| value.to_string()).unwrap_or_default()
    };
    let attribute = number(get("infiniband.mad.attributeid"));
    let cm = match attribute {
        Some(0x10) => "ConnectRequest",
        Some(0x11) => "MsgRcptAck",
        Some(0x12) => "ConnectReject",
        Some(0x13) => "ConnectReply",
        Some(0x14) => "ReadyToUse",
        Some(0x15) => "DisconnectRequest",
        Some(0x16) => "DisconnectReply",
        _ => "",
    };
    // tshark counts the padding as payload, and shows no payload for a MAD.
    let pad = number(get("infiniband.bth.padcnt")).unwrap();
    let payload = match attribute {
        Some(_) => number(get("udp.length")).unwrap() - 8 - 12 - 8 - pad - 4,
        None => number(get("data.len")).unwrap_or(0).saturating_sub(pad),
    };
    let mut expected = vec![
        ("frame", as_number("frame.number")),
        ("src", first(&["ip.src", "ipv6.src"])),
        ("dst", first(&["ip.dst", "ipv6.dst"])),
        ("opcode", as_number("infiniband.bth.opcode")),
        ("destqp", as_number("infiniband.bth.destqp")),
        ("psn", as_number("infiniband.bth.psn")),
        ("ackreq", as_number("infiniband.bth.a")),
        ("padcnt", as_number("infiniband.bth.padcnt")),
        ("va", as_number("infiniband.reth.va")),
        ("rkey", as_number("infiniband.reth.r_key")),
        ("dmalen", as_number("infiniband.reth.dmalen")),
        ("syndrome", as_number("infiniband.aeth.syndrome")),
        ("msn", as_number("infiniband.aeth.msn")),
        ("imm", bytes_as_number(get("infiniband.immdt"))),
        ("cm", cm.into()),
        ("time", get("frame.time_epoch").into()),
        ("payload_len", payload.to_string()),
    ];
    // tshark does not take an MRA apart.
    if attribute != Some(0x11) {
        expected.push(("local_id", id("local", &["infiniband.cm.req", "infiniband.cm.rep"])));
        expected.push(("remote_id", id("remote", &["infiniband.cm.rep.remotecommid"])));
    }
    expected
}

fn bytes_as_number(text: &str) -> String {
    let digits = text.replace(':', "");
    u64::from_str_radix(&digits, 16).map(|value| value.to_string()).unwrap_or_default()
}

/// Compares one capture, every packet and every column; returns how many packets it has.
pub fn agree(capture: &Path) -> usize {
    let (ours, theirs) = (wire(capture), tshark(capture));
    assert_eq!(ours.len(), theirs.len(), "{}: number of packets", capture.display());
    let columns: Vec<&str> = COLUMNS.split(' ').collect();
    for (ours, theirs) in ours.iter().zip(&theirs) {
        for (column, expected) in converted(theirs) {
            let at = columns.iter().position(|name| *name == column).unwrap();
            let text = &ours[at];
            let value = match column {
                "src" | "dst" | "cm" | "time" => text.clone(),
                _ => number(text).map(|value| value.to_string()).unwrap_or_default(),
            };
            assert_eq!(value, expected, "{}: frame {}, {column}", capture.display(), ours[0]);
        }
        let info = theirs.last().unwrap();
        assert!(info.starts_with("CM: ") || info.starts_with(&ours[4]), "{} is {info}", ours[4]);
    }
    ours.len()
}

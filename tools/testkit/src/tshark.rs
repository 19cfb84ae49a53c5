//! Our table beside tshark's, column by column. tshark 4.0 or newer is an independent decoder.

pub mod iwarp;

use run::capture::Reader;
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use wire::show;

/// Our columns, each with tshark's fields for it: that which a packet has. Of a field that comes more than once it's the last one,
/// because that's the innermost packet's.
const COLUMNS: &[(&str, &[&str])] = &[
    ("frame", &["frame.number"]),
    ("src", &["ip.src"]),
    ("dst", &["ip.dst"]),
    ("opcode", &["infiniband.bth.opcode"]),
    ("destqp", &["infiniband.bth.destqp"]),
    ("psn", &["infiniband.bth.psn"]),
    (SOURCE, &["infiniband.deth.srcqp"]),
    ("ackreq", &["infiniband.bth.a"]),
    (PAD, &["infiniband.bth.padcnt"]),
    ("va", &["infiniband.reth.va"]),
    ("rkey", &["infiniband.reth.r_key"]),
    ("dmalen", &["infiniband.reth.dmalen"]),
    ("syndrome", &["infiniband.aeth.syndrome"]),
    ("msn", &["infiniband.aeth.msn"]),
    (IMM, &["infiniband.immdt"]),
    (CM, &["infiniband.mad.attributeid"]),
    ("time", &["frame.time_epoch"]),
    (LOCAL, &["rtu.localcommid", "rej.localcommid", "dreq.localcommid", "drsp.localcommid", "req", "rep"]),
    (REMOTE, &["rtu.remotecommid", "rej.remotecommid", "dreq.remotecommid", "drsp.remotecommid", "rep.remotecommid"]),
    (PAYLOAD, &["data.len"]),
    (SRC6, &["ipv6.src"]),
    (DST6, &["ipv6.dst"]),
    (PROTOCOLS, &["frame.protocols"]),
    (UDP, &["udp.length"]),
    (INFO, &["_ws.col.Info"]),
];
/// tshark's is that of the DETH; ours also knows it of connected queue pairs.
const SOURCE: &str = "srcqp";
const PAD: &str = "padcnt";
const IMM: &str = "imm";
const CM: &str = "cm";
const LOCAL: &str = "local_id";
const REMOTE: &str = "remote_id";
const PAYLOAD: &str = "payload_len";
/// Not ours, but others follow from them.
const UDP: &str = "udp";
const SRC6: &str = "src6";
const DST6: &str = "dst6";
const PROTOCOLS: &str = "protocols";
const INFO: &str = "info";

/// The CM messages, from attribute 0x10 on.
const MESSAGES: [&str; 9] = [
    "ConnectRequest",
    "MsgRcptAck",
    "ConnectReject",
    "ConnectReply",
    "ReadyToUse",
    "DisconnectRequest",
    "DisconnectReply",
    "ServiceIDResolutionRequest",
    "ServiceIDResolutionResponse",
];

/// Dissectors that guess at the payload of a SEND and then hide it.
const GUESSERS: &str =
    "rpcrdma_infiniband smb_direct_infiniband eth_over_ib mellanox_eoib iser_infiniband sdp_infiniband \
                        smcr_infiniband fc_infiniband lnet_ib nvme_rdma";

/// A packet's columns.
type Columns = HashMap<String, String>;

/// What tshark says, in our columns.
fn tshark(capture: &Path) -> Vec<Columns> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(capture).args(["-Y", "infiniband", "-T", "fields", "-E", "occurrence=l"]);
    command.args(GUESSERS.split_whitespace().flat_map(|guesser| ["--disable-heuristic", guesser]));
    for (column, fields) in COLUMNS {
        let prefix = if [LOCAL, REMOTE].contains(column) { "infiniband.cm." } else { "" };
        command.args(fields.iter().flat_map(|field| ["-e".to_owned(), format!("{prefix}{field}")]));
    }
    let output = command.output().expect("tshark is installed: `make test` gets it, and so does `apt install tshark`");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let row = |line: &str| {
        let mut values = line.split('\t');
        let mut value = |fields: &[&str]| {
            let found: Vec<&str> = fields.iter().map(|_| values.next().unwrap_or_default()).collect();
            found.into_iter().find(|value| !value.is_empty()).unwrap_or_default().to_owned()
        };
        ours(COLUMNS.iter().map(|(column, fields)| ((*column).to_owned(), value(fields))).collect())
    };
    text.lines().map(row).collect()
}

/// What tshark counts and names otherwise, as we do.
fn ours(mut row: Columns) -> Columns {
    let (pad, udp) = (number(&row[PAD]).unwrap(), number(&row.remove(UDP).unwrap()));
    // The innermost IP header decides which addresses these are.
    let (src6, dst6) = (row.remove(SRC6).unwrap(), row.remove(DST6).unwrap());
    let protocols = row.remove(PROTOCOLS).unwrap();
    if protocols.split(':').rfind(|name| name.starts_with("ip")) == Some("ipv6") {
        row.extend([("src".to_owned(), src6), ("dst".to_owned(), dst6)]);
    }
    // tshark counts the padding as payload, and shows no payload for a MAD.
    let payload = match number(&row[CM]) {
        Some(_) => udp.unwrap() - 8 - 12 - 8 - pad - 4,
        None => number(&row[PAYLOAD]).unwrap_or(0).saturating_sub(pad),
    };
    let message = number(&row[CM]).and_then(|attribute| MESSAGES.get((attribute as usize).checked_sub(0x10)?));
    // tshark does not take these apart, and has a name of its own for two.
    if message.is_some_and(|name| *name == "MsgRcptAck" || name.starts_with("Service")) {
        row.retain(|column, _| ![LOCAL, REMOTE].contains(&column.as_str()));
    }
    row.retain(|column, value| column != SOURCE || !value.is_empty());
    // Bare bytes.
    let immediate = row[IMM].replace(':', "");
    row.insert(IMM.to_owned(), if immediate.is_empty() { immediate } else { format!("0x{immediate}") });
    row.insert(CM.to_owned(), message.copied().unwrap_or_default().to_owned());
    row.insert(PAYLOAD.to_owned(), payload.to_string());
    row
}

fn wire(capture: &Path) -> Vec<Columns> {
    let mut reader = Reader::new(std::fs::File::open(capture).unwrap()).unwrap();
    let mut text = Vec::new();
    show::tsv::write(&mut reader, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let mut lines = text.lines().map(|line| line.split('\t').map(str::to_owned));
    let header: Vec<String> = lines.next().unwrap().collect();
    lines.map(|line| header.iter().cloned().zip(line).collect()).collect()
}

/// A number in tshark's or our notation: decimal, 0x, or a truth value.
fn number(text: &str) -> Option<u64> {
    match text {
        "" => None,
        "True" => Some(1),
        "False" => Some(0),
        hex if hex.starts_with("0x") => Some(u64::from_str_radix(&hex[2..], 16).unwrap()),
        decimal => Some(decimal.parse().unwrap()),
    }
}

/// Compares one capture, every packet and every column; returns how many packets it has.
pub fn agree(capture: &Path) -> usize {
    let (ours, theirs) = (wire(capture), tshark(capture));
    assert_eq!(ours.len(), theirs.len(), "{}: number of packets", capture.display());
    for (ours, mut theirs) in ours.iter().zip(theirs) {
        let (name, info) = (&ours["name"], theirs.remove(INFO).unwrap());
        // Not every version of tshark has a name for a CNP.
        let is_nameless = name == "CNP" && info.starts_with("Unknown OpCode");
        assert!(info.starts_with("CM: ") || info.starts_with(name) || is_nameless, "{name} is {info}");
        for (column, expected) in theirs {
            let same = match column.as_str() {
                "src" | "dst" | "time" | CM => ours[&column] == expected,
                _ => number(&ours[&column]) == number(&expected),
            };
            assert!(same, "{}: frame {}, {column}: {expected}", capture.display(), ours["frame"]);
        }
    }
    ours.len()
}

//! NVMe over RDMA in the bundled capture: each field agrees with tshark, each packet that belongs to a command says so, and what isn't
//! NVMe is left alone.

use crate::files::{bundled, root};
use roce::cm::Kind;
use roce::nvme::Capsule;
use run::capture::Reader;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Headers, our field, and tshark's fields for it, of which a packet has one.
const FIELDS: &[(&str, &str, &[&str])] = &[
    ("NVMe REQ", "RecordFormat", &["nvme-rdma.cm.req.recfmt"]),
    ("NVMe REQ", "QueueID", &["nvme-rdma.cm.req.qid"]),
    ("NVMe REQ", "HostReceiveQueueSize", &["nvme-rdma.cm.req.hrqsize"]),
    ("NVMe REQ", "HostSendQueueSize", &["nvme-rdma.cm.req.hsqsize"]),
    ("NVMe REQ", "ControllerID", &["nvme-rdma.cm.req.cntlid"]),
    ("NVMe REP", "RecordFormat", &["nvme-rdma.cm.rsp.recfmt"]),
    ("NVMe REP", "ControllerReceiveQueueSize", &["nvme-rdma.cm.rsp.crqsize"]),
    ("NVMe command", "Opcode", &["nvme.cmd.opc"]),
    ("NVMe command", "PSDT", &["nvme.cmd.psdt"]),
    ("NVMe command", "FUSE", &["nvme.cmd.fuse_op"]),
    ("NVMe command", "CommandIdentifier", &["nvme.cmd.cid"]),
    ("NVMe command", "NamespaceID", &["nvme.cmd.nsid"]),
    ("NVMe command", "MetadataPointer", &["nvme.cmd.mptr"]),
    ("Fabrics command", "CommandIdentifier", &["nvme.fabrics.cmd.cid"]),
    ("Fabrics command", "FabricsCommandType", &["nvme.fabrics.cmd.fctype"]),
    ("SGL1", "Address", &["nvme.cmd.sgl1.addr"]),
    ("SGL1", "Offset", &["nvme.cmd.sgl1.addr"]),
    ("SGL1", "Length", &["nvme.cmd.sgl1.len"]),
    ("SGL1", "Key", &["nvme.cmd.sgl1.key"]),
    ("SGL1", "DescriptorType", &["nvme.cmd.sgl.type"]),
    ("SGL1", "DescriptorSubType", &["nvme.cmd.sgl.subtype"]),
    ("Blocks", "StartingLBA", &["nvme.cmd.slba"]),
    // tshark adds the one.
    ("Blocks", "NumberOfBlocks", &["nvme.cmd.nlb"]),
    ("Connect", "RecordFormat", &["nvme.fabrics.cmd.connect.recfmt"]),
    ("Connect", "QueueID", &["nvme.fabrics.cmd.connect.qid"]),
    ("Connect", "SubmissionQueueSize", &["nvme.fabrics.cmd.connect.sqsize"]),
    ("Connect", "ConnectAttributes", &["nvme.fabrics.cmd.connect.cattr"]),
    ("Connect", "KeepAliveTimeout", &["nvme.fabrics.cmd.connect.kato"]),
    ("Property Get", "Attributes", &["nvme.fabrics.cmd.prop_get_set.attrib"]),
    ("Property Get", "Offset", &["nvme.fabrics.cmd.prop_get_set.offset"]),
    ("Property Set", "Attributes", &["nvme.fabrics.cmd.prop_get_set.attrib"]),
    ("Property Set", "Offset", &["nvme.fabrics.cmd.prop_get_set.offset"]),
    ("NVMe completion", "SQHeadPointer", &["nvme.cqe.sqhd"]),
    ("NVMe completion", "SQIdentifier", &["nvme.cqe.sqid"]),
    ("NVMe completion", "CommandIdentifier", &["nvme.cqe.cid"]),
    ("NVMe completion", "Status", &["nvme.cqe.status", "nvme.fabrics.cqe.sts"]),
];

fn capture() -> PathBuf {
    root().join("captures/protocols/nvme.pcapng")
}

/// By frame, what tshark says of these fields, where it has one of them.
fn tshark(names: &[&str]) -> BTreeMap<u64, Vec<Option<u64>>> {
    let mut command = Command::new("tshark");
    // It needs two passes to know that a ConnectRequest is one of NVMe.
    command.args(["-2", "-n", "-r"]).arg(capture()).args(["-T", "fields", "-E", "occurrence=f", "-e", "frame.number"]);
    command.args(names.iter().flat_map(|name| ["-e", name]));
    let output = command.output().expect("tshark is installed: `make test` gets it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    };
    let row = |line: &str| {
        let mut values = line.split('\t').map(number);
        (values.next().unwrap().unwrap(), values.collect())
    };
    String::from_utf8(output.stdout).unwrap().lines().map(row).collect()
}

/// The name of the command, if it has so much data in its capsule that a packet doesn't take it: that of an I/O queue's Connect.
fn long_capsule(capsule: &Capsule) -> Option<&'static str> {
    match capsule {
        Capsule::Command(command, bytes) => (bytes.len() == 1024).then(|| command.name()),
        Capsule::Completion(command, _) => command.map(|command| command.name()),
        _ => None,
    }
}

/// Each packet that is NVMe's: its number and what it is.
fn each(file: &[u8], mut look: impl FnMut(u64, &Capsule)) {
    let mut reader = Reader::new(file).unwrap();
    while let Some(sighting) = reader.next().unwrap() {
        if let Some(capsule) = &sighting.nvme() {
            look(sighting.number, capsule);
        }
    }
}

#[test]
fn every_field_agrees_with_tshark() {
    let mut names: Vec<&str> = FIELDS.iter().flat_map(|(_, _, theirs)| theirs.iter().copied()).collect();
    names.sort_unstable();
    names.dedup();
    let theirs = tshark(&names);
    let mut compared = BTreeMap::new();
    each(&fs::read(capture()).unwrap(), |frame, capsule| {
        for (_, header) in capsule.headers() {
            for (header, ours, of) in FIELDS.iter().filter(|(name, ..)| *name == header.name) {
                let Some(value) = capsule.field(ours) else { continue };
                let value = if *ours == "NumberOfBlocks" { value + 1 } else { value };
                let at = |name: &&str| names.iter().position(|known| known == name).unwrap();
                match of.iter().find_map(|name| theirs[&frame][at(name)]) {
                    Some(theirs) => {
                        assert_eq!(value, theirs, "frame {frame}, {header}, {ours}");
                        *compared.entry((*header, *ours)).or_insert(0) += 1;
                    }
                    // tshark 4.0 doesn't read a command that comes in more than one packet, nor the answer to it.
                    None => assert_eq!(long_capsule(capsule), Some("Connect"), "frame {frame}, {header}, {ours}"),
                }
            }
        }
    });
    let never: Vec<_> = FIELDS.iter().filter(|(header, ours, _)| !compared.contains_key(&(*header, *ours))).collect();
    assert!(never.is_empty(), "tshark never has {never:?}");
    assert!(compared.values().sum::<i32>() > 400, "{compared:?}");
}

#[test]
fn each_command_is_followed_to_its_completion() {
    let (mut open, mut done, mut queues, mut data) = (Vec::new(), Vec::new(), Vec::new(), 0);
    each(&fs::read(capture()).unwrap(), |frame, capsule| match capsule {
        Capsule::Private(Kind::ConnectRequest, _) => queues.push(capsule.field("QueueID").unwrap()),
        Capsule::Private(..) => {}
        Capsule::Command(command, _) => open.push(*command),
        Capsule::Data(command) => {
            assert!(open.contains(command), "frame {frame}: {capsule}");
            data += 1;
        }
        Capsule::Completion(command, _) => {
            let command = command.unwrap_or_else(|| panic!("frame {frame}: {capsule}"));
            let at = open.iter().position(|other| *other == command).unwrap();
            done.push(open.remove(at).name());
        }
    });
    assert_eq!(queues, [0, 1]);
    // The controller answers this one when something happens, and nothing did.
    let waiting: Vec<&str> = open.iter().map(|command| command.name()).collect();
    assert_eq!(waiting, ["Asynchronous Event Request"]);
    for name in ["Connect", "Property Get", "Property Set", "Identify", "Keep Alive", "Write", "Read"] {
        assert!(done.contains(&name), "{done:?} has no {name}");
    }
    assert!(data > 2);
}

#[test]
fn a_connection_to_another_port_is_left_alone() {
    each(&fs::read(bundled("05_rdma_read")).unwrap(), |frame, capsule| panic!("frame {frame}: {capsule}"));
}

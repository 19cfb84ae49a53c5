//! What `common` prints is what `run::said` reads: each kind of line, with the values that the packets have. And each line says
//! which line of the lesson has called for it.

use super::support::{lesson, programs, Check};
use roce::cm::Kind;
use roce::opcode::Operation;
use roce::Frame;
use run::file::{Event, Line};
use run::files;
use run::said::Said;
use std::collections::BTreeSet;
use std::fs;

/// What `common` prints that is neither a call nor what comes of one: of TCP and of names, before RDMA begins.
const PROSE: [&str; 7] =
    ["listening on ", "getaddrinfo ", "timerfd_create ", "TCP, ", "listen, TCP ", "accept, TCP", "connect, TCP "];
/// Calls that are made by a drop, which nobody calls.
const DROPS: [&str; 5] = ["destroy", "dereg", "dealloc", "close", "leave"];
/// What prints a lesson's own words.
const OWN: [&str; 5] = ["say!(", "info!(", "slow!(", "fast!(", "data!("];

/// Looks at all that the programs of a run have said.
pub fn is_understood(run: &Check, name: &str) {
    let (root, mut lines) = (files::root().unwrap(), 0);
    run.each_event(|event| {
        let Event::Line(line) = event else { return };
        if [Line::LAB, Line::DEVICE].contains(&line.program.as_str()) {
            return;
        }
        // An event that is not acknowledged by hand is dropped, too.
        let is_drop = DROPS.iter().any(|drop| line.words().contains(drop)) || line.words() == "rdma_ack_cm_event";
        let Some(source) = &line.source else {
            // What ends a program is said where it ends, in common.
            return assert!(
                is_drop || line.tag() == Some("ERR"),
                "{name}: common does not say where this comes from: {}",
                line.text
            );
        };
        let text = fs::read_to_string(root.join(&source.file)).unwrap();
        assert_eq!(source.find(&text), Some(source.line - 1), "{name}: {source:?}: {}", line.text);
        let is_begin = source.text.contains("stage(\"");
        assert!(is_drop || !is_begin, "{name}: no #[track_caller] leads to: {}", line.text);
        let is_prose = PROSE.iter().any(|prose| line.words().starts_with(prose));
        let is_known = is_prose || Said::of(line) != Said::Other(line.words());
        let is_own = OWN.iter().any(|own| source.text.contains(own));
        assert!(
            is_own || is_known,
            "{name}: tools/run/src/said.rs does not understand what common says: {}",
            line.text
        );
        lines += 1;
    });
    assert!(lines > 20, "{name}: {lines} lines");
}

/// All that [`Said`] knows of, beside what a device decides and how a failure came.
const KINDS: [&str; 9] = ["Call", "CmEvent", "Mr", "Post", "Qp", "RegMr", "Sge", "Wc", "Wr"];

#[test]
fn the_log_has_the_values_that_the_packets_have() {
    let run = lesson("04", "", "");
    let (mut kinds, mut said, mut sent) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    run.each_event(|event| match event {
        Event::Line(line) => {
            let told = Said::of(line);
            kinds.extend(format!("{told:?}").split(' ').next().map(String::from));
            match told {
                Said::Mr { addr, len, rkey, .. } => {
                    said.extend([("Mr addr", addr), ("Mr len", len), ("Mr rkey", rkey)])
                }
                Said::Post { opcode: Some("RDMA_WRITE"), len, .. } => said.extend([("Post len", len)]),
                Said::Wr { remote: Some(remote), .. } => said.extend([("Wr remote", remote)]),
                Said::Wc { status: "IBV_WC_SUCCESS", qp_num, .. } => said.extend([("Wc qp", qp_num)]),
                Said::Qp { qpn, .. } => said.extend([("Qp qpn", qpn)]),
                _ => {}
            }
        }
        Event::Packet(record) => {
            let Frame::Roce(packet) = Frame::decode(record.link, record.data) else { return };
            if packet.opcode.operation == Operation::Write {
                let (at, len) = packet.remote().zip(packet.dma_length()).unwrap();
                let (len, rkey) = (len.into(), at.r_key.into());
                sent.extend([("Mr addr", at.va), ("Mr rkey", rkey), ("Post len", len), ("Wr remote", at.va)]);
            }
            let request = packet.cm().filter(|message| message.kind == Kind::ConnectRequest);
            let qpn = request.and_then(|message| message.local_qpn()).map(u64::from);
            sent.extend(qpn.into_iter().flat_map(|qpn| [("Wc qp", qpn), ("Qp qpn", qpn)]));
        }
    });
    assert!(KINDS.iter().all(|kind| kinds.contains(*kind)), "{kinds:?} of {KINDS:?}: see tools/run/src/said.rs");
    assert!(sent.len() == 6 && sent.iter().all(|value| said.contains(value)), "{sent:?}: {said:?}");
}

#[test]
fn a_failure_says_what_came_before_it() {
    let run = lesson("04", "", "--len 9999999");
    let mut failures = Vec::new();
    run.each_event(|event| {
        let Event::Line(line) = event else { return };
        failures.extend((line.tag() == Some("ERR")).then(|| Said::of(line) == Said::StagesSoFar));
    });
    assert!(failures.contains(&true) && failures.contains(&false), "{failures:?}");
}

#[test]
fn much_may_be_printed_at_once() {
    let print = "dd if=/dev/zero bs=400000 count=1";
    programs(print, print).exits(0, 0);
}

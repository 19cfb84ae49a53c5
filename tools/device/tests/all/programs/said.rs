//! What `common` prints is what `run::said` reads: each kind of line, with the values that the packets have. And each line says
//! which line of the lesson has called for it.

use super::support::{lesson, Check, CLIENT, SERVER};
use roce::cm::Kind;
use roce::opcode::Operation;
use roce::Frame;
use run::file::{Event, Line};
use run::repository;
use run::said::Said;
use std::collections::BTreeSet;
use std::fs;

/// What `common` prints that is neither a call nor what comes of one: of TCP and of names, before RDMA begins.
const PROSE: [&str; 7] =
    ["listening on ", "getaddrinfo ", "timerfd_create ", "TCP, ", "listen, TCP ", "accept, TCP", "connect, TCP "];
/// Calls that are made by a drop, which nobody calls.
const DROPS: [&str; 4] = ["destroy", "dereg", "dealloc", "close"];
/// What prints a lesson's own words.
const OWN: [&str; 5] = ["say!(", "info!(", "slow!(", "fast!(", "data!("];

/// Looks at all that the programs of a run have said.
pub fn is_understood(run: &Check, name: &str) {
    let (root, mut lines) = (repository::root().unwrap(), 0);
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
    let (mut kinds, mut regions, mut requests, mut qps, mut events) = (BTreeSet::new(), vec![], vec![], vec![], vec![]);
    let (mut reth, mut asked) = (None, None);
    run.each_event(|event| match event {
        Event::Line(line) => {
            let (said, node) = (Said::of(line), line.node.as_str());
            let kind = format!("{said:?}");
            kinds.extend(KINDS.iter().filter(|known| kind.split(' ').next() == Some(**known)).copied());
            match said {
                Said::RegMr { access } if node == SERVER => regions.push((access.to_owned(), None)),
                Said::Mr { addr, len, rkey, .. } if node == SERVER => {
                    regions.last_mut().unwrap().1 = Some((addr, len, rkey))
                }
                Said::Post { opcode: Some("RDMA_WRITE"), wr_id, len } => requests.push((wr_id, len)),
                Said::Sge { len, .. } if node == CLIENT => assert!([16, 60].contains(&len)),
                Said::Wr { wr_id, remote: Some(remote) } => requests.push((wr_id, remote)),
                Said::Wc { wr_id, status, opcode: Some("IBV_WC_RDMA_WRITE"), qp_num } => {
                    assert_eq!(status, "IBV_WC_SUCCESS");
                    requests.push((wr_id, qp_num));
                }
                Said::Qp { qpn, state, .. } if node == CLIENT => qps.push((qpn, state.to_owned())),
                Said::CmEvent { event, status } if node == CLIENT => events.push(format!("{event} {status}")),
                _ => {}
            }
        }
        Event::Packet(record) => {
            let Frame::Roce(packet) = Frame::decode(record.link, record.data) else { return };
            if packet.opcode.operation == Operation::Write {
                reth = packet
                    .remote()
                    .zip(packet.dma_length())
                    .map(|(at, len)| (at.va, u64::from(len), u64::from(at.r_key)));
            }
            if let Some(message) = packet.cm().filter(|message| message.kind == Kind::ConnectRequest) {
                asked = message.local_qpn().map(u64::from);
            }
        }
    });
    assert!(kinds.iter().eq(KINDS.iter()), "{kinds:?} of {KINDS:?}: see tools/run/src/said.rs");
    let (va, len, rkey) = reth.unwrap();
    let written: Vec<_> = regions.iter().filter(|(access, _)| access.contains("REMOTE_WRITE")).collect();
    assert_eq!(written, [&("LOCAL_WRITE|REMOTE_WRITE|REMOTE_READ".to_owned(), Some((va, len, rkey)))]);
    let qpn = asked.unwrap();
    assert_eq!(requests, [(requests[0].0, len), (requests[0].0, va), (requests[0].0, qpn)]);
    assert!(qps.iter().all(|(of, _)| *of == qpn), "{qps:?}");
    let states: Vec<&str> = qps.iter().map(|(_, state)| state.as_str()).collect();
    assert_eq!(states, ["INIT", "INIT", "RTS", "ERR"]);
    assert_eq!(events, ["ADDR_RESOLVED 0", "ROUTE_RESOLVED 0", "ESTABLISHED 0", "DISCONNECTED 0"]);
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

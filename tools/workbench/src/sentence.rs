//! What happened in a run, and why, in one sentence.

use crate::bench::Run;
use crate::node::{Node, Posted};
use crate::script::{Operation, Request, Script, NODES};
use ::wire::explain::{Explanation, Finding};
use nic::completion::{Completion, Status};
use pair::{CLIENT, SERVER};

/// The sentence. What packets show comes from `wire explain`; how it ended for the programs, from their completions.
pub fn sentence(script: &Script, run: &Run, explanation: &Explanation) -> String {
    let cause = explanation.findings().next().map(told);
    let refusal = run.nodes.iter().find_map(failed).map(|(posted, wc)| {
        let (node, name, status) = (NODES[posted.0], posted.1.request.operation.name(), wc.status);
        format!("the {node}'s {name} ended with {} ({})", status.name(), status as u32)
    });
    let first = match (cause, refusal) {
        (Some(cause), Some(refusal)) => format!("{cause}, so {refusal}"),
        (Some(cause), None) => format!("{cause}; in the end {}", outcome(run)),
        (None, Some(refusal)) => refusal,
        (None, None) => outcome(run),
    };
    let waits = waits(script, run).map_or(String::new(), |waits| format!(", and {waits}"));
    capital(&format!("{first}{waits}."))
}

/// A finding's words, without the pieces that only tell packets apart.
fn told(finding: &Finding) -> String {
    finding.text.replace(" RC RDMA ", " ").replace(" RC ", " ")
}

/// The first request that failed, with its node: those that were flushed failed because of it.
fn failed(node: &Node) -> Option<((usize, &Posted), &Completion)> {
    let failed = node.completions.iter().map(|completed| &completed.wc);
    let mut failed = failed.filter(|wc| !matches!(wc.status, Status::Success | Status::WrFlushErr));
    failed.find_map(|wc| Some(((node.number(), node.posted.iter().find(|posted| posted.wr_id == wc.wr_id)?), wc)))
}

/// What has become of what was posted, if nothing failed.
fn outcome(run: &Run) -> String {
    let posted: Vec<(usize, &Posted)> =
        [CLIENT, SERVER].iter().flat_map(|node| run.nodes[*node].posted.iter().map(|posted| (*node, posted))).collect();
    let is_up = run.nodes.iter().all(|node| node.connection == crate::node::Connection::Up);
    let [(node, posted)] = posted[..] else {
        return match posted.len() {
            0 if is_up => {
                "the two queue pairs are connected, and neither program has asked for anything yet".to_owned()
            }
            0 => "the two queue pairs aren't connected, and nothing was sent between them".to_owned(),
            count => many(run, count),
        };
    };
    let (from, to) = (NODES[node], NODES[1 - node]);
    let Request { operation, local, signaled, .. } = &posted.request;
    let (bytes, is_done) = (local.len(), is_done(&run.nodes[node], posted));
    let flushed = run.nodes[node]
        .completions
        .iter()
        .any(|completed| (completed.wc.wr_id, completed.wc.status) == (posted.wr_id, Status::WrFlushErr));
    if flushed {
        return format!(
            "the {from}'s {} came back flushed (IBV_WC_WR_FLUSH_ERR), because its queue pair was in ERR",
            operation.name()
        );
    }
    if !is_done && *signaled {
        return format!("the {from}'s {} never completes", operation.name());
    }
    let quiet = if *signaled { "" } else { ", and no completion says so, because the request was unsignaled" };
    match operation {
        Operation::Write => format!("the {from}'s {bytes} bytes are in the {to}'s memory, and the {to}'s program heard nothing of it{quiet}"),
        Operation::WriteWithImmediate => {
            format!("the {from}'s {bytes} bytes are in the {to}'s memory, and the number that came with them completed a receive of the {to}'s{quiet}")
        }
        Operation::Read => format!("{bytes} bytes came from the {to}'s memory into the {from}'s, and the {to}'s program heard nothing of it{quiet}"),
        Operation::Send | Operation::SendWithImmediate => {
            format!("the {from}'s {bytes} bytes are where the {to}'s receive said, and both programs have a completion for them{quiet}")
        }
        Operation::FetchAdd { add } => {
            format!("the {to}'s NIC added {add} to eight bytes of its memory, and the {from} got what was there before{quiet}")
        }
        Operation::CompareSwap { .. } => {
            format!("the {to}'s NIC compared eight bytes of its memory, and the {from} got what was there before{quiet}")
        }
    }
}

fn is_done(node: &Node, posted: &Posted) -> bool {
    node.completions
        .iter()
        .any(|completed| (completed.wc.wr_id, completed.wc.status) == (posted.wr_id, Status::Success))
}

/// How many of several requests have completed.
fn many(run: &Run, count: usize) -> String {
    let is_signaled = |posted: &&Posted| posted.request.signaled;
    let of = |node: &Node| node.posted.iter().filter(is_signaled).filter(|posted| is_done(node, posted)).count();
    let (done, quiet) = run.nodes.iter().fold((0, 0), |(done, quiet), node| {
        (done + of(node), quiet + node.posted.iter().filter(|posted| !posted.request.signaled).count())
    });
    let quietly = match quiet {
        0 => String::new(),
        1 => ", and one is unsignaled, so its success says nothing".to_owned(),
        quiet => format!(", and {quiet} are unsignaled, so their success says nothing"),
    };
    match count - quiet {
        signaled if signaled == done => {
            format!("each of the {signaled} requests that ask for a completion has one{quietly}")
        }
        signaled => format!("{done} of the {signaled} requests that ask for a completion have one{quietly}"),
    }
}

/// A program that waits for ever.
fn waits(script: &Script, run: &Run) -> Option<String> {
    let call = run.waiting.iter().map(|at| (&script.calls[*at], run.made[*at])).find(|(_, made)| made.is_some())?;
    let (node, line) = (NODES[call.0.node], call.0.line);
    (!run.nodes[call.0.node].is_dead)
        .then(|| format!("the {node}'s program waits in line {line} for a completion that never comes"))
}

/// A sentence begins with a capital letter.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

//! What happened in a run, and why, in one sentence.

use crate::bench::Run;
use crate::node::{Connection, Node, Posted};
use crate::script::{peer, Operation, Request, Script, NODES};
use crate::wire::Flight;
use nic::completion::{Completion, Status};
use nic::fact::Fact;
use nic::memory::Refusal;
use pair::{CLIENT, SERVER};
use std::time::Duration;

/// The sentence.
pub fn sentence(script: &Script, run: &Run) -> String {
    let seen = Seen { script, run };
    let failed = run.nodes.iter().find_map(failed);
    let status = |wc: &Completion| format!("{} ({})", wc.status.name(), wc.status as u32);
    let first = match (seen.cause(failed.is_some()), failed, seen.refusal()) {
        (_, Some((node, posted, wc)), Some((who, why))) => {
            format!("{who} {} ({why}), so it ended with {}", request(node, posted), status(wc))
        }
        (Some(cause), Some((node, posted, wc)), _) => {
            format!("{cause}, so {} ended with {}", request(node, posted), status(wc))
        }
        (Some(cause), None, _) => format!("{cause}; in the end {}", outcome(run)),
        (None, Some((node, posted, wc)), None) => format!("{} ended with {}", request(node, posted), status(wc)),
        (None, None, _) => seen.unwritten().unwrap_or_else(|| outcome(run)),
    };
    let dead = run.nodes.iter().find(|node| node.is_dead && seen.is_spared(node));
    let dead = dead.map_or(String::new(), |node| format!(", and the {}'s machine is off by now", NODES[node.number()]));
    let waits = waits(script, run).map_or(String::new(), |waits| format!(", and {waits}"));
    capital(&format!("{first}{dead}{waits}."))
}

fn request(node: usize, posted: &Posted) -> String {
    format!("the {}'s {}", NODES[node], name(posted.request.operation))
}

/// A run.
struct Seen<'a> {
    script: &'a Script,
    run: &'a Run,
}

impl Seen<'_> {
    /// How often a node's NIC has noted this.
    fn count(&self, node: usize, fact: &str) -> usize {
        self.run.record.facts.iter().filter(|(from, noted)| *from == node && noted.name == fact).count()
    }

    /// What the first thing was that didn't go its usual way, and what the NICs did about it.
    fn cause(&self, has_failed: bool) -> Option<String> {
        let dead = self.run.nodes.iter().find(|node| node.is_dead && !self.is_spared(node));
        let dead = dead
            .map(|dead| format!("the {}'s machine is off{}", NODES[dead.number()], self.silence(peer(dead.number()))));
        dead.or_else(|| self.on_the_wire(has_failed)).or_else(|| self.not_ready())
    }

    /// Whether a machine was switched off when nobody needed it any more.
    fn is_spared(&self, dead: &Node) -> bool {
        let other = peer(dead.number());
        self.count(other, "late") == 0
            && self.run.nodes[other].connection != Connection::Coming
            && is_over(self.run, dead.number())
            && self.run.record.flights.iter().any(|flight| flight.name == "ReadyToUse")
    }

    /// What somebody does whom nobody answers.
    fn silence(&self, node: usize) -> String {
        match self.count(node, "late") {
            0 => ", so nobody answers".to_owned(),
            late => format!(", and nobody answered the {}'s NIC, which tried {late} times", NODES[node]),
        }
    }

    /// What the wire did to a packet.
    fn on_the_wire(&self, has_failed: bool) -> Option<String> {
        let flights = &self.run.record.flights;
        let flight = flights.iter().find(|flight| did(flight).is_some())?;
        let (verb, what) = (did(flight)?, packet(flight));
        let same = flights.iter().filter(|other| (other.name, did(other)) == (flight.name, Some(verb))).count();
        let times = if same > 1 { format!(" {same} times") } else { String::new() };
        let (from, to) = (flight.from, peer(flight.from));
        let [late, asked] = [CLIENT, SERVER].map(|node| self.count(node, "late"));
        let waiter = if late > 0 { CLIENT } else { SERVER };
        let wait = duration(4.096e-6 * f64::from(1u32 << self.script.settings[waiter].timeout.min(31)));
        let doubles = self.count(to, "duplicate") > 0;
        let then = if has_failed {
            if late + asked > 0 {
                ", and nobody answered in time".to_owned()
            } else {
                String::new()
            }
        } else if self.count(to, "gap") > 0 {
            format!(", so the {}'s NIC saw the gap and asked for it again", NODES[to])
        } else if late + asked > 0 {
            format!(", so the {}'s NIC had no answer for {wait} and sent its request again", NODES[waiter])
        } else if verb == "doubled" && doubles {
            format!(", and the {}'s NIC carried it out only once", NODES[to])
        } else if verb == "lost" && same == 1 && is_answer(flight) && is_over(self.run, from) {
            ", and nothing had to be sent again, because a later one says the same".to_owned()
        } else {
            String::new()
        };
        Some(format!("the wire {verb} {what}{times}{then}"))
    }

    /// Who had no receive posted.
    fn not_ready(&self) -> Option<String> {
        let turned_away = |flight: &&Flight| flight.name == "RNR NAK";
        let first = self.run.record.flights.iter().find(turned_away)?;
        let (from, count) = (first.from, self.run.record.flights.iter().filter(turned_away).count());
        let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
        let (own, other) = (NODES[from], NODES[peer(from)]);
        Some(format!(
            "the {own} had no receive posted, and its NIC turned the {other}'s message away {times} (RNR NAK)"
        ))
    }

    /// Success, and not a byte: a NIC has acknowledged what it took for something that it had carried out before.
    fn unwritten(&self) -> Option<String> {
        let took = |node: &usize| self.count(*node, "duplicate") > 0 && self.count(*node, "written") == 0;
        let own = [SERVER, CLIENT].into_iter().find(took).filter(|own| is_over(self.run, *own))?;
        let writes = |posted: &Posted| posted.request.operation == Operation::Write;
        self.run.nodes[peer(own)].posted.iter().any(writes).then_some(())?;
        let (own, other) = (NODES[own], NODES[peer(own)]);
        Some(format!(
            "the {own}'s NIC took the {other}'s WRITE for one that it had before, so it acknowledged it and wrote nothing, \
             and the {other} believes that it's done"
        ))
    }

    /// Which NIC has refused a request, and why: in its words, unless one has to know what a region is for that.
    fn refusal(&self) -> Option<(String, &str)> {
        let is_refusal = |(_, fact): &&(usize, Fact)| ["refused", "unsent", "unplaced"].contains(&fact.name);
        let (node, fact) = self.run.record.facts.iter().find(is_refusal)?;
        let does = if fact.name == "refused" { "refused" } else { "can't reach its own memory for" };
        let why = fact.cause()?;
        let why = if why == Refusal::Key.to_string() { "its key opens none of the memory there" } else { why };
        Some((format!("the {}'s NIC {does}", NODES[*node]), why))
    }
}

/// What the wire did to a packet, if it did anything.
fn did(flight: &Flight) -> Option<&'static str> {
    match flight.arrives.len() {
        0 if flight.was_held => Some("held up"),
        0 => Some("lost"),
        2.. => Some("doubled"),
        _ if flight.is_damaged => Some("damaged"),
        _ if flight.was_held => Some("held up"),
        _ => None,
    }
}

/// A packet, as a person would call it.
fn packet(flight: &Flight) -> String {
    let (from, name) = (NODES[flight.from], flight.name);
    let operation = |name: &str| name.replace("RDMA ", "").to_uppercase();
    let part = [
        (" First", "the first packet of "),
        (" Middle", "a packet of "),
        (" Last", "the last packet of "),
        (" Only", ""),
    ];
    match name {
        "Acknowledge" => format!("the {from}'s acknowledgement"),
        "Atomic Acknowledge" => format!("the {from}'s answer to an atomic operation"),
        "RDMA Read Request" => format!("the {from}'s READ"),
        "Fetch Add" => format!("the {from}'s FETCH_ADD"),
        "Compare Swap" => format!("the {from}'s CMP_SWP"),
        name if name.starts_with("RDMA Read Response") => format!("bytes that the {from}'s NIC sent for a READ"),
        name if name.starts_with("RDMA Write") || name.starts_with("Send ") => {
            let name = name.trim_end_matches(" Immediate");
            let found = part.iter().find_map(|(end, words)| Some((name.strip_suffix(end)?, words)));
            let (name, words) = found.unwrap_or((name, &""));
            format!("{words}the {from}'s {}", operation(name))
        }
        name => format!("the {from}'s {name}"),
    }
}

fn is_answer(flight: &Flight) -> bool {
    ["Acknowledge", "ReadyToUse"].contains(&flight.name)
}

/// Whether all requests to a node are complete.
fn is_over(run: &Run, node: usize) -> bool {
    let asking = &run.nodes[peer(node)];
    asking.posted.iter().all(|posted| is_done(asking, posted))
}

/// In words: `67 ms`.
fn duration(seconds: f64) -> String {
    match Duration::from_secs_f64(seconds) {
        time if time >= Duration::from_secs(2) => format!("{} s", time.as_secs()),
        time if time >= Duration::from_millis(2) => format!("{} ms", time.as_millis()),
        time => format!("{} µs", time.as_micros()),
    }
}

fn name(operation: Operation) -> &'static str {
    operation.name().trim_start_matches("RDMA_")
}

/// The first request that failed, with its node: those that were flushed failed because of it.
fn failed(node: &Node) -> Option<(usize, &Posted, &Completion)> {
    let failed = node.completions.iter().map(|completed| &completed.wc);
    let mut failed = failed.filter(|wc| !matches!(wc.status, Status::Success | Status::WrFlushErr));
    failed.find_map(|wc| Some((node.number(), node.posted.iter().find(|posted| posted.wr_id == wc.wr_id)?, wc)))
}

/// What has become of what was posted, if nothing failed.
fn outcome(run: &Run) -> String {
    let posted: Vec<(usize, &Posted)> =
        [CLIENT, SERVER].iter().flat_map(|node| run.nodes[*node].posted.iter().map(|posted| (*node, posted))).collect();
    let is_up = run.nodes.iter().all(|node| node.connection == Connection::Up);
    let [(node, posted)] = posted[..] else {
        return match posted.len() {
            0 if is_up => "the two are connected, and neither program has asked for anything yet".to_owned(),
            0 if run.record.flights.iter().any(|flight| flight.name == "ReadyToUse") => {
                "the connection came and went, and neither program asked for anything".to_owned()
            }
            0 if run.record.flights.iter().any(|flight| flight.name == "ConnectReject") => {
                "the server's program turned the client away, so the two queue pairs aren't connected".to_owned()
            }
            0 => "the two queue pairs aren't connected".to_owned(),
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
            name(*operation)
        );
    }
    if !is_done && *signaled {
        return format!("the {from}'s {} never completes", name(*operation));
    }
    if !is_done && run.nodes[node].qp.waiting().0 > 0 {
        return format!("the {from}'s {} isn't done", name(*operation));
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

//! What a page gets of a run: the player's data, a sentence, what can be explained, and what buttons and highlights need.

use crate::bench::{self, Run};
use crate::challenge::{self, Verdict};
use crate::node::{Completed, Connection, Node, Region};
use crate::script::{self, Script, NODES};
use crate::sentence::sentence;
use crate::wire::Flight;
use ::wire::explain::explain;
use ::wire::play;
use run::capture::Reader;
use serde_json::{json, Value};
use std::collections::HashMap;
use std::time::Duration;

/// Bytes of each memory that are shown.
const SHOWN: usize = 256;

/// Runs a script, and shows what happened, and what that means for a challenge; or `{"error": …}`, if it isn't understood.
pub fn shown(text: &str, challenge: Option<&str>) -> String {
    match run(text) {
        Ok((script, run)) => {
            told(&script, &run, challenge).unwrap_or_else(|error| wrong(0, &format!("{error:#}")).to_string())
        }
        Err(error) => wrong(error.line, &error.says).to_string(),
    }
}

/// Reads a script and runs it.
///
/// # Errors
/// It isn't understood.
pub fn run(text: &str) -> Result<(Script, Run), script::Error> {
    let script = Script::parse(text)?;
    let line = script.rules.first().map_or(0, |(line, _)| *line);
    let run = bench::run(&script).map_err(|error| script::Error { line, says: format!("{error:#}") })?;
    Ok((script, run))
}

/// What's wrong with a line.
fn wrong(line: usize, says: &str) -> Value {
    json!({ "error": { "line": line, "says": says } })
}

fn told(script: &Script, run: &Run, challenge: Option<&str>) -> anyhow::Result<String> {
    let file = run.record.file.as_slice();
    let explanation = explain(&mut Reader::new(file)?)?;
    let player = play::run(file, "the bench", None)?;
    let numbers: Vec<u64> = player.numbers().collect();
    let events: HashMap<u64, usize> = numbers.iter().copied().zip(0..).collect();
    let times: Vec<f64> = numbers.iter().map(|number| microseconds(time(run, *number))).collect();
    let lines = lines(script, run, &events);
    let flights: Vec<Value> = run.record.flights.iter().map(|flight| in_flight(flight, &events)).collect();
    let sentence = sentence(script, run);
    let verdict = challenge.and_then(|name| verdict(name, file, &sentence));
    let rest = json!({
        "sentence": sentence,
        "explain": explanation.shown(),
        "nodes": run.nodes.iter().zip(NODES).map(|(node, name)| state(node, name)).collect::<Vec<_>>(),
        "lines": lines,
        "in_flight": flights,
        "times_us": times,
        "stopped": run.ended,
        "verdict": verdict,
    });
    // The player's data are text already, and long.
    let rest = rest.to_string();
    Ok(format!("{{\"play\":{},{}", player.json(), rest.strip_prefix('{').unwrap_or_default()))
}

/// What the judge of a challenge says; None if there's none of this name.
fn verdict(name: &str, file: &[u8], sentence: &str) -> Option<Value> {
    let challenge = challenge::all().into_iter().find(|challenge| challenge.name == name)?;
    let Verdict { passed, says } = challenge.judge(file).ok()?;
    let (says, afterwards) = if passed { (sentence.to_owned(), Some(challenge.afterwards)) } else { (says, None) };
    Some(json!({ "passed": passed, "says": says, "afterwards": afterwards }))
}

fn microseconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1000.0
}

/// When the event with this number happened.
fn time(run: &Run, number: u64) -> Duration {
    let place = usize::try_from(number).unwrap_or(usize::MAX).wrapping_sub(1);
    run.record.times.get(place).copied().unwrap_or_default()
}

/// For each line of the script where in the run it was made.
fn lines(script: &Script, run: &Run, events: &HashMap<u64, usize>) -> Vec<Value> {
    let calls = script.calls.iter().enumerate().map(|(at, call)| {
        let frame = run.made[at];
        // Not all of them are events of the player: the next one that is.
        let event = frame.and_then(|frame| (frame..frame + 4).find_map(|number| events.get(&number)));
        let time = frame.map(|frame| microseconds(time(run, frame)));
        let waits = run.waiting.contains(&at);
        json!({ "line": call.line, "node": NODES[call.node], "frame": frame, "event": event, "us": time, "waits": waits })
    });
    calls.collect()
}

/// A packet, and the rules that would do something to just this one.
fn in_flight(flight: &Flight, events: &HashMap<u64, usize>) -> Value {
    let Flight { frame, from, sent, arrives, name, nth, .. } = flight;
    let rule = |act: &str| format!("{act} {} {name} from {}", ordinal(*nth), NODES[*from]);
    json!({
        "frame": frame, "event": events.get(frame), "from": NODES[*from], "name": name, "sent_us": microseconds(*sent),
        "arrives_us": arrives.iter().map(|at| microseconds(*at)).collect::<Vec<_>>(),
        "rules": {
            "lose": rule("drop"), "double": rule("duplicate"), "delay": rule("delay") + " by 1 ms",
            "damage": rule("corrupt"), "swap": rule("swap"), "cut": rule("cut"),
        },
    })
}

/// `1st`, `2nd`, as rules count.
pub fn ordinal(number: u64) -> String {
    let ending = match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// A node at the end of the run.
fn state(node: &Node, name: &str) -> Value {
    let attributes = node.qp.attributes();
    let (sends, receives) = node.qp.waiting();
    let connection = match node.connection {
        Connection::Coming => "coming",
        Connection::Up => "up",
        Connection::Over => "over",
    };
    let region = |Region { bytes, access, key, is_there }: &Region| {
        json!({
            "from": bytes.start, "to": bytes.end, "rights": access.to_string(), "key": format!("{key:#x}"),
            "registered": is_there,
        })
    };
    let completed = |Completed { at, wc, is_polled }: &Completed| {
        json!({
            "wr_id": wc.wr_id, "opcode": wc.opcode.name(), "status": wc.status as u32, "name": wc.status.name(),
            "length": wc.length, "imm": wc.immediate, "us": microseconds(*at), "polled": is_polled,
        })
    };
    let receive = |(wr_id, bytes): &(u64, std::ops::Range<usize>)| json!({ "wr_id": wr_id, "from": bytes.start, "to": bytes.end });
    let bytes: String = node.bytes(&(0..SHOWN)).iter().map(|byte| format!("{byte:02x}")).collect();
    json!({
        "name": name, "dead": node.is_dead, "connection": connection,
        "qp": {
            "number": node.qp.settings().number, "state": node.qp.state().to_string(), "mtu": attributes.mtu,
            "timeout": attributes.timeout, "retry_cnt": attributes.retries, "rnr_retry": attributes.rnr_retries,
            "min_rnr_timer": attributes.min_rnr_timer, "max_rd_atomic": attributes.max_rd_atomic,
            "sends_waiting": sends, "receives_waiting": receives,
        },
        "memory": { "address": format!("{:#x}", node.start()), "size": script::MEMORY, "bytes": bytes },
        "regions": node.regions.iter().map(region).collect::<Vec<_>>(),
        "receives": node.receives.iter().map(receive).collect::<Vec<_>>(),
        "completions": node.completions.iter().map(completed).collect::<Vec<_>>(),
    })
}

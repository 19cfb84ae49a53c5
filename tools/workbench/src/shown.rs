//! What a page gets of a run: the player's data, a sentence, what can be explained, and what buttons and highlights need.

use crate::bench::{self, Run};
use crate::challenge::{self, Verdict};
use crate::node::{Completed, Node};
use crate::script::{self, Script, Timed, NODES};
use crate::sentence::sentence;
use crate::wire::Flight;
use ::wire::explain::explained;
use ::wire::play;
use run::capture::Events;
use run::words::ordinal;
use serde::Serialize;
use serde_json::{json, Value};
use std::time::Duration;

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

/// What a page gets of a run; the player's data and the explanation are text already.
#[derive(Serialize)]
struct Told<'a> {
    sentence: &'a str,
    verdict: Option<Judged>,
    nodes: Vec<State>,
    lines: Vec<Made>,
    in_flight: Vec<InFlight>,
    /// When each of the player's events happened.
    times_us: Vec<f64>,
}

/// What the judge of a challenge says.
#[derive(Serialize)]
struct Judged {
    passed: bool,
    says: String,
    afterwards: Option<String>,
}

/// Where in the run a line of the script was made.
#[derive(Serialize)]
struct Made {
    line: usize,
    node: &'static str,
    /// The place of the player's event; None if it was never reached.
    event: Option<usize>,
}

/// A packet.
#[derive(Serialize)]
struct InFlight {
    event: Option<usize>,
    from: &'static str,
    name: &'static str,
    arrives_us: Vec<f64>,
    rules: Touches,
}

/// The rules that would do something to just this packet.
#[derive(Serialize)]
struct Touches {
    lose: String,
    double: String,
    delay: String,
    damage: String,
}

/// A node at the end of the run.
#[derive(Serialize)]
struct State {
    name: &'static str,
    qp: Pair,
    memory: Memory,
    completions: Vec<Complete>,
}

#[derive(Serialize)]
struct Pair {
    sends_waiting: usize,
}

#[derive(Serialize)]
struct Memory {
    address: String,
    size: usize,
    /// What it holds again and again before the run.
    text: &'static str,
}

#[derive(Serialize)]
struct Complete {
    wr_id: u64,
    status: u32,
    name: &'static str,
    us: f64,
}

fn told(script: &Script, run: &Run, challenge: Option<&str>) -> anyhow::Result<String> {
    let events = Events::read(run.record.file.as_slice())?;
    let explanation = explained(&events);
    let player = play::run(&events, "the workbench", None);
    let numbers: Vec<u64> = player.numbers().collect();
    let sentence = sentence(script, run);
    let told = Told {
        verdict: challenge.and_then(|name| verdict(name, &events, &sentence)),
        sentence: &sentence,
        nodes: run.nodes.iter().zip(NODES).map(|(node, name)| state(node, name)).collect(),
        lines: script.calls.iter().enumerate().map(|(at, call)| made(run, at, call, &numbers)).collect(),
        in_flight: run.record.flights.iter().map(|flight| in_flight(flight, &numbers)).collect(),
        times_us: numbers.iter().map(|number| microseconds(time(run, *number))).collect(),
    };
    let told = serde_json::to_string(&told)?;
    let rest = told.strip_prefix('{').unwrap_or_default();
    Ok(format!("{{\"play\":{},\"explain\":{},{rest}", player.json(), explanation.shown()))
}

/// What the judge of a challenge says; None if there's none of this name.
fn verdict(name: &str, events: &Events, sentence: &str) -> Option<Judged> {
    let challenge = challenge::all().into_iter().find(|challenge| challenge.name == name)?;
    let Verdict { passed, says } = challenge.judge(events).ok()?;
    let says = if passed { sentence.to_owned() } else { says };
    Some(Judged { passed, says, afterwards: passed.then_some(challenge.afterwards) })
}

fn microseconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1000.0
}

/// When the event with this number happened.
fn time(run: &Run, number: u64) -> Duration {
    let place = usize::try_from(number).unwrap_or(usize::MAX).wrapping_sub(1);
    run.record.times.get(place).copied().unwrap_or_default()
}

/// The place of the player's event with this number in the file, or of the next one: not everything is an event.
fn event(numbers: &[u64], number: u64) -> Option<usize> {
    let place = numbers.partition_point(|other| *other < number);
    (place < numbers.len()).then_some(place)
}

fn made(run: &Run, at: usize, call: &Timed, numbers: &[u64]) -> Made {
    Made { line: call.line, node: NODES[call.node], event: run.made[at].and_then(|frame| event(numbers, frame)) }
}

fn in_flight(flight: &Flight, numbers: &[u64]) -> InFlight {
    let Flight { frame, from, arrives, name, nth, .. } = flight;
    let rule = |act: &str| format!("{act} {} {name} from {}", ordinal(*nth), NODES[*from]);
    InFlight {
        event: event(numbers, *frame),
        from: NODES[*from],
        name,
        arrives_us: arrives.iter().map(|at| microseconds(*at)).collect(),
        rules: Touches {
            lose: rule("drop"),
            double: rule("duplicate"),
            delay: rule("delay") + " by 1 ms",
            damage: rule("corrupt"),
        },
    }
}

fn state(node: &Node, name: &'static str) -> State {
    let (sends_waiting, _) = node.qp.waiting();
    let completed = |Completed { at, wc, .. }: &Completed| Complete {
        wr_id: wc.wr_id,
        status: wc.status as u32,
        name: wc.status.name(),
        us: microseconds(*at),
    };
    State {
        name,
        qp: Pair { sends_waiting },
        memory: Memory { address: format!("{:#x}", node.start()), size: script::MEMORY, text: node.text() },
        completions: node.completions.iter().map(completed).collect(),
    }
}

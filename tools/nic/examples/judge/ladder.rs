//! What has happened between two ends, drawn as a ladder.

use nic::time::Time;
use pair::end::shown;
use pair::{Fault, Happened, CLIENT};

/// Lines of a ladder that are shown, and the width of an arrow.
const LINES: usize = 48;
const WIDTH: usize = 52;
/// The longest group of lines that is looked for to come again.
const LONGEST: usize = 8;

/// What has happened, line by line. What comes again and again is shown twice.
pub fn drawn(happened: &[(Time, Happened)]) -> String {
    let rungs: Vec<&Happened> = happened.iter().map(|(_, what)| what).filter(|what| !is_sending(what)).collect();
    let kinds: Vec<String> = rungs.iter().map(|what| kind(what)).collect();
    let mut lines = vec![format!("{:<1$}{2}", "client", WIDTH - 6, "server")];
    let mut at = 0;
    while at < kinds.len() {
        let (period, times) = repeated(&kinds[at..]);
        let block = |at: usize| rungs[at..at + period].iter().map(|what| line(what));
        lines.extend(block(at));
        if times > 1 {
            lines.push(format!("      … {} times more …", times - 2));
            lines.extend(block(at + period * (times - 1)));
        }
        at += period * times;
    }
    let left_out = lines.len().saturating_sub(LINES);
    if left_out > 0 {
        lines.splice(LINES / 2..LINES / 2 + left_out, [format!("      … {left_out} lines …")]);
    }
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

/// How many lines come again and again, and how many times they are there: once, or more than twice.
fn repeated(kinds: &[String]) -> (usize, usize) {
    let times = |period: usize| kinds.chunks_exact(period).take_while(|block| *block == &kinds[..period]).count();
    let mut all = (1..=LONGEST.min(kinds.len())).map(|period| (period, times(period)));
    all.find(|(_, times)| *times > 2).unwrap_or((1, 1))
}

/// What it is, without its numbers.
fn kind(what: &Happened) -> String {
    let text = match what {
        Happened::Packet(_, packet, fault) => format!("{}{fault:?}", shown(packet)),
        Happened::Decision(said) => said.clone(),
        Happened::Time(_) => "time".to_owned(),
    };
    text.replace(|letter: char| letter.is_ascii_digit(), "")
}

fn line(what: &Happened) -> String {
    match what {
        Happened::Packet(from, packet, fault) => arrow(*from, &shown(packet), *fault),
        Happened::Decision(said) => format!("      It decided: {said}"),
        Happened::Time(wait) if wait.as_millis() > 0 => format!("      {} ms pass", wait.as_millis()),
        Happened::Time(wait) => format!("      {} µs pass", wait.as_micros()),
    }
}

fn arrow(from: usize, packet: &str, fault: Option<Fault>) -> String {
    let (fate, [left, right]) = match fault {
        None => ("", ["◀──", "──▶"]),
        Some(Fault::Lose) => ("✗ lost", ["✗──", "──✗"]),
        Some(Fault::Double) => ("doubled", ["◀──", "──▶"]),
        Some(Fault::Delay(_)) => ("late", ["◀──", "──▶"]),
    };
    let shaft = format!("{:─^1$}", format!(" {packet} "), WIDTH - 3);
    let drawn = if from == CLIENT { format!("{shaft}{right} {fate}") } else { format!("{left}{shaft} {fate}") };
    drawn.trim_end().to_owned()
}

/// Whether a decision only says that a packet goes out: the ladder has that packet.
fn is_sending(what: &Happened) -> bool {
    matches!(what, Happened::Decision(said) if said.starts_with("requester: PSN") && said.matches(':').count() == 1)
}

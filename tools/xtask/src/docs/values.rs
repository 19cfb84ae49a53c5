//! What the headers or the protocol say of names: the numbers of statuses, NAKs and reject reasons, and the order of states.

use super::names::STATES;
use super::page::{Page, Table, Wrong};
use super::sources::Sources;
use roce::aeth::{Nak, Syndrome};
use roce::cm;
use std::collections::BTreeSet;

/// Numbers on the page that belong to another name, and states that do not follow each other.
pub fn problems(page: &Page, sources: &Sources) -> Wrong {
    let statuses = sources.headers.values("ibv_wc_status");
    let mut wrong: Wrong = page.tables().flat_map(|table| of_table(&table, &statuses)).collect();
    for (at, line) in page.lines.iter().enumerate() {
        wrong.extend(moves(line).or_else(|| refusal(line)).map(|what| (at, what)));
    }
    wrong.extend(sections(page, &statuses));
    wrong
}

/// What columns of these names say: values and statuses, reject reasons, states in their order.
fn of_table(table: &Table, statuses: &[(&str, i64)]) -> Wrong {
    let columns = |left, right| Some((table.column(&[left])?, table.column(&[right])?));
    let mut last = None;
    table.wrong(|cells| {
        if let Some((value, status)) = columns("value", "status") {
            return wrong_value(statuses, &cells[value], &cells[status]);
        }
        if let Some((status, name)) = columns("status", "name") {
            return wrong_reason(&cells[status], &cells[name]);
        }
        if let (Some(code), Some(says)) = (table.column(&["syndrome"]), table.column(&["in the run"])) {
            return wrong_syndrome(&cells[code], &cells[says]);
        }
        let now = STATES.iter().position(|state| cells[0].trim_matches('[').starts_with(state));
        let before = std::mem::replace(&mut last, now);
        (table.columns[0] == "state" && now <= before).then(|| "this state comes before the last".into())
    })
}

fn wrong_value(statuses: &[(&str, i64)], value: &str, status: &str) -> Option<String> {
    let status = status.trim_matches('`');
    match statuses.iter().find(|(name, _)| *name == status) {
        None => Some(format!("the installed header has no status {status}")),
        Some((_, right)) => {
            (right.to_string() != value).then(|| format!("{status} is {right} in the installed header"))
        }
    }
}

fn wrong_reason(status: &str, name: &str) -> Option<String> {
    let number: String = status.chars().take_while(char::is_ascii_digit).collect();
    let reason = cm::reject_reason(number.parse().ok()?);
    (!reason.starts_with(name)).then(|| format!("reason {number} is called: {reason}"))
}

/// What a NAK says in a run, beside its code.
fn wrong_syndrome(code: &str, says: &str) -> Option<String> {
    let code = u8::from_str_radix(code.strip_prefix("0x")?, 16).ok()?;
    let nak = Syndrome::from(code).to_string();
    let is_so = code < 0x60 && !says.contains("NAK") || nak.contains(says.trim_matches('`'));
    (!is_so).then(|| format!("0x{code:02x} says: {nak}"))
}

/// A NAK and the status that it leads to: "NAK 0x61, `IBV_WC_REM_INV_REQ_ERR`" anywhere, and in a row also by its name.
fn refusal(line: &str) -> Option<String> {
    for (at, code) in line.match_indices("NAK 0x").map(|(at, code)| (at, at + code.len())) {
        let code = line.get(code..code + 2).and_then(|code| u8::from_str_radix(code, 16).ok());
        let Some(Syndrome::Nak(nak)) = code.map(Syndrome::from) else { return Some("this is no NAK's code".into()) };
        let named = line[at..].get("NAK 0x61, `".len()..).filter(|_| line[at..].contains(", `IBV_WC_"));
        let named = named.and_then(|rest| rest.split('`').next()).filter(|name| name.starts_with("IBV_WC_"));
        if let Some((status, _)) = nak.status().zip(named).filter(|(status, named)| status != named) {
            return Some(format!("this NAK leads to {status}"));
        }
    }
    let naks = [Nak::InvalidRequest, Nak::RemoteAccess, Nak::RemoteOperational];
    let nak = naks.iter().find(|nak| line.starts_with('|') && line.contains(&format!("NAK \"{nak}\"")))?;
    let status = nak.status()?;
    (!line.contains(status)).then(|| format!("the NAK \"{nak}\" leads to {status}"))
}

/// The moves of a queue pair that Linux allows, besides those to ERR and RESET, which start anywhere but in RESET.
const MOVES: [&str; 7] =
    ["RESET → INIT", "INIT → RTR", "RTR → RTS", "RTS → SQD", "SQD → RTS", "RTS → SQE", "SQE → RTS"];

/// An arrow between two states that no queue pair can follow.
fn moves(line: &str) -> Option<String> {
    let is_state = |word: &str| word == "any" || STATES.contains(&word);
    let words: Vec<&str> = line.split_whitespace().map(|word| word.trim_matches(['`', '|', ',', ':'])).collect();
    let mut arrows = words.windows(3).filter(|three| three[1] == "→" && is_state(three[0]) && is_state(three[2]));
    let to_error = |three: &[&str]| three[0] != "RESET" && ["ERR", "RESET"].contains(&three[2]);
    let wrong = arrows.find(|three| !MOVES.contains(&three.join(" ").as_str()) && !to_error(three))?;
    Some(format!("no queue pair goes from {} to {}", wrong[0], wrong[2]))
}

/// A status, event or state has one heading. Below that of a status comes its number, as `**Value 5**`, and the NAKs named there lead to it.
fn sections(page: &Page, statuses: &[(&str, i64)]) -> Wrong {
    let (mut wrong, mut seen, mut status) = (Wrong::new(), BTreeSet::new(), "");
    for (at, line) in page.lines.iter().enumerate() {
        if let Some((_, heading)) = line.split_once("# ").filter(|_| line.starts_with('#')) {
            status = heading.trim();
            let again = status.starts_with(|c: char| c.is_uppercase()) && !seen.insert(status);
            wrong.extend(again.then(|| (at, format!("this page has two headings {status}: one is another's"))));
            let number =
                page.lines.get(at + 2).and_then(|line| line.strip_prefix("**Value ")?.split(['.', '*']).next());
            if status.starts_with("IBV_WC_") {
                wrong.extend(wrong_value(statuses, number.unwrap_or_default(), status).map(|what| (at + 2, what)));
            }
        }
        for (place, _) in line.match_indices("0x6").filter(|_| status.starts_with("IBV_WC_")) {
            let code = u8::from_str_radix(line.get(place + 2..place + 4).unwrap_or_default(), 16);
            if let Ok(Syndrome::Nak(nak)) = code.map(Syndrome::from) {
                let other = nak.status().filter(|other| *other != status);
                wrong.extend(other.map(|other| (at, format!("this NAK leads to {other}"))));
            }
        }
    }
    wrong
}

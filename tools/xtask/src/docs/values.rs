//! What the headers or the protocol say of names: the numbers of statuses, NAKs and reject reasons, and the order of states.

use super::names::{Names, STATES};
use super::page::{Page, Table, Wrong};
use super::sources::Sources;
use roce::aeth::{Nak, Syndrome};
use roce::cm;
use std::collections::BTreeSet;

/// Numbers on the page that belong to another name, and states that do not follow each other.
pub fn problems(page: &Page, sources: &Sources) -> Wrong {
    let statuses = sources.headers.values("ibv_wc_status");
    let mut wrong: Wrong = page.tables().flat_map(|table| of_table(&table, &statuses, sources)).collect();
    for (at, line) in page.lines.iter().enumerate() {
        wrong.extend(moves(line).or_else(|| refusal(line)).map(|what| (at, what)));
    }
    wrong.extend(sections(page, &statuses));
    wrong
}

/// What columns of these names say: values and statuses, reject reasons, messages and their answers, states in their order.
fn of_table(table: &Table, statuses: &[(&str, i64)], sources: &Sources) -> Wrong {
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
        if let Some(message) = table.column(&["message"]) {
            let (event, wants) = (table.column(&["event, side"]), table.column(&["and wants"]));
            let said = |column: Option<usize>| column.map(|column| cells[column].as_str());
            return wrong_message(&cells[message], said(event), said(wants), &sources.names);
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

/// What a NAK says in a run, beside its code or a range of them, of which one is enough.
fn wrong_syndrome(codes: &str, says: &str) -> Option<String> {
    let code = |code: &str| u8::from_str_radix(code.trim().strip_prefix("0x")?, 16).ok();
    let (first, last) = codes.split_once('-').unwrap_or((codes, codes));
    let (first, last) = (code(first)?, code(last)?);
    let is_so = |code: u8| match (Syndrome::from(code), says.trim_matches('`')) {
        (Syndrome::Ack { .. }, says) => !says.contains("NAK") && !says.contains("wait"),
        (rnr @ Syndrome::RnrNak { .. }, says) => rnr.to_string().split(", ").any(|wait| says.contains(wait)),
        (other, says) => other.to_string().contains(says),
    };
    let is_one = first <= last && (first..=last).any(is_so);
    (!is_one).then(|| format!("{codes} says: {}", Syndrome::from(first)))
}

/// The connection manager's messages: which ones answer each, and the events that a program gets by it.
const MESSAGES: [(&str, &[&str], &[&str]); 7] = [
    ("REQ", &["REP", "REJ", "MRA"], &["CONNECT_REQUEST"]),
    ("REP", &["RTU", "REJ", "MRA"], &["ESTABLISHED", "CONNECT_RESPONSE"]),
    ("RTU", &[], &["ESTABLISHED"]),
    ("REJ", &[], &["REJECTED"]),
    ("MRA", &[], &[]),
    ("DREQ", &["DREP"], &["DISCONNECTED"]),
    ("DREP", &[], &["DISCONNECTED"]),
];

/// A message with an answer that isn't one, without any although it needs one, or with another one's event.
fn wrong_message(message: &str, event: Option<&str>, wants: Option<&str>, names: &Names) -> Option<String> {
    let short = message.split(' ').next()?;
    let (_, answers, events) = MESSAGES.iter().find(|(name, ..)| *name == short)?;
    let other = |said: &str, known: &[&str]| {
        let said: Vec<_> = names.of(said).into_iter().map(|name| name.text.to_owned()).collect();
        said.iter()
            .find(|name| !known.contains(&name.as_str()))
            .cloned()
            .or((said.is_empty() != known.is_empty()).then(|| "nothing".into()))
    };
    let answer = wants.and_then(|wants| other(wants, answers)).map(|other| format!("{other} doesn't answer {short}"));
    answer.or_else(|| Some(format!("{} doesn't come by {short}", other(event?, events)?)))
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

//! Numbers that the headers or the protocol give to names: of statuses, NAKs and reject reasons.

use super::page::{Page, Problem, Table};
use super::sources::Sources;
use crate::record;
use wire::aeth::{Nak, Syndrome};
use wire::cm;
use wire::story;

/// Numbers on the page that belong to another name.
pub fn problems(page: &Page, sources: &Sources) -> Vec<Problem> {
    let values: Vec<(String, i64)> = match sources.headers() {
        Ok(headers) => headers.values("ibv_wc_status").into_iter().map(|(name, value)| (name.into(), value)).collect(),
        Err(error) => return vec![Problem::new(&page.path, format!("no number was looked up: {error:#}"))],
    };
    let mut problems = Vec::new();
    for at in 0..page.lines.len() {
        let Some(table) = page.table_at(at) else { continue };
        if table.columns[0] == "state" {
            problems.extend(disorder(page, &table));
        }
        let columns = |left, right| Some((table.column(&[left])?, table.column(&[right])?));
        for (line, cells) in &table.rows {
            if let Some((value, status)) = columns("value", "status") {
                problems
                    .extend(wrong_value(&values, &cells[value], &cells[status]).map(|what| page.problem(*line, what)));
            }
            if let Some((status, name)) = columns("status", "name") {
                problems.extend(wrong_reason(&cells[status], &cells[name]).map(|what| page.problem(*line, what)));
            }
        }
    }
    problems.extend(sections(page, &values));
    problems.extend(moves(page));
    problems.extend(refusals(page));
    problems.extend(headings(page, sources));
    problems.extend(recordings(page, sources));
    problems
}

/// Rows of a table that name a NAK and another status than the one that it leads to.
fn refusals(page: &Page) -> Vec<Problem> {
    let naks = [Nak::InvalidRequest, Nak::RemoteAccess, Nak::RemoteOperational];
    let mut problems = Vec::new();
    for (at, line) in page.lines.iter().enumerate().filter(|(_, line)| line.starts_with('|')) {
        for nak in naks.iter().filter(|nak| line.contains(&format!("NAK \"{nak}\""))) {
            let status = nak.status().unwrap_or_default();
            if !line.contains(status) {
                problems.push(page.problem(at, format!("the NAK \"{nak}\" leads to {status}")));
            }
        }
    }
    problems
}

/// The moves of a queue pair that Linux allows, besides those to ERR and RESET, which start anywhere but in RESET.
const MOVES: [(&str, &str); 7] = [
    ("RESET", "INIT"),
    ("INIT", "RTR"),
    ("RTR", "RTS"),
    ("RTS", "SQD"),
    ("SQD", "RTS"),
    ("RTS", "SQE"),
    ("SQE", "RTS"),
];

/// Arrows between two states that no queue pair can follow.
fn moves(page: &Page) -> Vec<Problem> {
    let is_state = |word: &str| ["ERR", "any"].contains(&word) || MOVES.iter().any(|(from, _)| *from == word);
    let mut problems = Vec::new();
    for (at, line) in page.lines.iter().enumerate() {
        let words: Vec<&str> = line.split_whitespace().map(|word| word.trim_matches(['`', '|', ',', ':'])).collect();
        for three in words.windows(3).filter(|three| three[1] == "→" && is_state(three[0]) && is_state(three[2])) {
            let (from, to) = (three[0], three[2]);
            if !MOVES.contains(&(from, to)) && (from == "RESET" || !["ERR", "RESET"].contains(&to)) {
                problems.push(page.problem(at, format!("no queue pair goes from {from} to {to}")));
            }
        }
    }
    problems
}

/// The pages of events and of statuses explain each of them once.
fn headings(page: &Page, sources: &Sources) -> Vec<Problem> {
    let Ok(headers) = sources.headers() else { return Vec::new() };
    let lists = [
        ("docs/completions.md", "ibv_wc_status"),
        ("docs/cm_events.md", "rdma_cm_event_type"),
        ("docs/qp_states.md", "ibv_qp_state"),
    ];
    let mut problems = Vec::new();
    for (path, list) in lists.iter().filter(|(path, _)| *path == page.path) {
        for (name, value) in headers.values(list) {
            let short = name.trim_start_matches("IBV_QPS_");
            let row = |line: &str| {
                line.starts_with(&format!("| {value} | `{name}` |"))
                    || line.starts_with(&format!("| {short} | "))
                    || line.starts_with(&format!("| {short}, "))
            };
            let heading = |line: &str| line.starts_with('#') && line.ends_with(&format!(" {name}"));
            let places = page.lines.iter().filter(|line| heading(line) || row(line)).count();
            if places > 1 {
                problems.push(Problem::new(path, format!("{name} has {places} headings or rows: one is another's")));
            }
        }
    }
    problems
}

/// The list of captures is as the lessons' steps and the captures are.
fn recordings(page: &Page, sources: &Sources) -> Vec<Problem> {
    if page.path != "captures/README.md" {
        return Vec::new();
    }
    let rows = story::bundled().unwrap_or_default().into_iter().map(|story| {
        let packets = sources.rows(&format!("captures/{}.pcapng", story.file_name())).unwrap_or_default().len();
        record::row(&story, packets)
    });
    rows.filter(|row| !page.lines.contains(row))
        .map(|row| Problem::new(&page.path, format!("lacks the line {row}")))
        .collect()
}

/// Rows of states that are not in the order of a queue pair's life.
fn disorder(page: &Page, table: &Table) -> Vec<Problem> {
    let place = |cell: &str| STATES.iter().position(|state| cell.trim_matches('[').starts_with(state));
    let pairs = table.rows.windows(2).map(|rows| (rows[1].0, place(&rows[0].1[0]), place(&rows[1].1[0])));
    pairs
        .filter(|(_, before, now)| before >= now)
        .map(|(at, ..)| page.problem(at, "this state comes before the last"))
        .collect()
}

const STATES: [&str; 7] = ["RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"];

fn wrong_value(values: &[(String, i64)], value: &str, status: &str) -> Option<String> {
    let status = status.trim_matches('`');
    let right = values.iter().find(|(name, _)| name == status);
    match right {
        None => Some(format!("the installed header has no status {status}")),
        Some((_, right)) if right.to_string() != value => Some(format!("{status} is {right} in the installed header")),
        Some(_) => None,
    }
}

fn wrong_reason(status: &str, name: &str) -> Option<String> {
    let number: String = status.chars().take_while(char::is_ascii_digit).collect();
    let reason = cm::reject_reason(number.parse().ok()?);
    (!reason.starts_with(name)).then(|| format!("reason {number} is called: {reason}"))
}

/// Below a heading that is a status comes its number; and the NAKs named there are those that lead to it.
fn sections(page: &Page, values: &[(String, i64)]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut status = "";
    for (at, line) in page.lines.iter().enumerate() {
        if let Some((_, heading)) = line.split_once("# ") {
            status = heading.trim();
            let number = page.lines.get(at + 2).and_then(|line| line.split([',', '.']).next()).unwrap_or_default();
            if status.starts_with("IBV_WC_") {
                problems.extend(wrong_value(values, number, status).map(|what| page.problem(at + 2, what)));
            }
        }
        for (place, _) in line.match_indices("0x6").filter(|_| status.starts_with("IBV_WC_")) {
            let code = u8::from_str_radix(line.get(place + 2..place + 4).unwrap_or_default(), 16);
            let leads_to = match code.map(Syndrome::from) {
                Ok(Syndrome::Nak(nak)) => nak.status(),
                _ => None,
            };
            if leads_to.is_some_and(|other| other != status) {
                problems.push(page.problem(at, format!("this NAK leads to {}", leads_to.unwrap_or_default())));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::sources::tests::repository;
    use super::*;

    fn check(text: &str) -> Vec<String> {
        problems(&Page::new("docs/p.md", text), &repository()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn statuses_and_reasons_have_their_numbers() {
        let table = |row: &str| check(&format!("| value | status |\n|---|---|\n{row}\n"));
        assert_eq!(table("| 12 | `IBV_WC_RETRY_EXC_ERR` |"), [""; 0]);
        assert!(table("| 13 | `IBV_WC_RETRY_EXC_ERR` |")[0]
            .ends_with(":3: IBV_WC_RETRY_EXC_ERR is 12 in the installed header"));
        let section = |text: &str| check(&format!("# IBV_WC_REM_ACCESS_ERR\n\n{text}\n"));
        assert_eq!(section("10, by a NAK 0x62"), [""; 0]);
        assert_eq!((section("11, by a NAK 0x62").len(), section("10, by a NAK 0x63").len()), (1, 1));
        let reasons = |row: &str| check(&format!("| status | name |\n|---|---|\n{row}\n")).len();
        assert_eq!((reasons("| 28 | consumer reject |"), reasons("| 27 | consumer reject |")), (0, 1));
        assert!(check("| a NAK \"remote access error\" | `IBV_WC_REM_OP_ERR` |")[0]
            .contains("leads to IBV_WC_REM_ACCESS_ERR"));
    }

    #[test]
    fn states_follow_each_other() {
        assert_eq!(check("INIT → RTR → RTS, then RTS → ERR"), [""; 0]);
        assert!(check("INIT → RTS")[0].ends_with("no queue pair goes from INIT to RTS"));
        assert_eq!(check("RESET → ERR").len(), 1);
        assert_eq!(check("| state |\n|---|\n| INIT |\n| RTS |\n| RTR |\n").len(), 1);
    }
}

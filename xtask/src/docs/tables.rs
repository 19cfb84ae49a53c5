//! Tables that people wrote: of packets, of their fields, of calls in their order.

use super::headers::is_word;
use super::page::{Mark, Page, Problem, Table};
use super::sources::Sources;
use super::{excerpts, states};
use anyhow::{bail, ensure, Context, Result};
use wire::show::row::Row;

/// Every table of a page that says something else than the capture that it names.
pub fn problems(page: &Page, sources: &Sources) -> Vec<Problem> {
    let check = |mark: &Mark| -> Result<Vec<(usize, String)>> {
        match mark.kind.as_str() {
            "packets" => packets(page, mark, sources),
            "states" => states::problems(&table(page, mark)?, mark, sources),
            "fields" => fields(page, mark, sources),
            "in" => inside(page, mark, sources),
            "tried" => tried(page, mark, sources),
            "order" => order(page, mark, sources),
            _ => Ok(Vec::new()),
        }
    };
    let marks = page.marks();
    let found =
        marks.iter().flat_map(|mark| check(mark).unwrap_or_else(|error| vec![(mark.line, format!("{error:#}"))]));
    found.map(|(line, what)| page.problem(line, what)).collect()
}

fn table(page: &Page, mark: &Mark) -> Result<Table> {
    let table = page.table_after(mark.line).context("no table follows this mark")?;
    ensure!(!table.rows.is_empty(), "the table has no rows");
    Ok(table)
}

/// The rows of a packet table that do not fit the capture, each with its line.
fn packets(page: &Page, mark: &Mark, sources: &Sources) -> Result<Vec<(usize, String)>> {
    let [capture] = mark.words.as_slice() else { bail!("write <!-- packets: captures/NAME.pcapng -->") };
    let (table, packets) = (table(page, mark)?, sources.rows(capture)?);
    let step = table.column(&["step"]).context("the table has no column `step`")?;
    let name = table.column(&["packet", "opcode"]).context("the table has no column `packet` or `opcode`")?;
    let from = table.column(&["from", "direction"]);
    let wrong = |(line, cells): &(usize, Vec<String>)| {
        let cell = |column: usize| cells.get(column).map_or("", |cell| cell.trim_matches('`'));
        let found = packets.iter().find(|row| excerpts::is_step(row, &format!("step{}", cell(step))));
        let what = match found {
            None => format!("{capture} has no packet of step {}", cell(step)),
            Some(row) if !is_called(row, cell(name)) => {
                format!("step {} of {capture} is {}, not {}", cell(step), row.label, cell(name))
            }
            Some(row) if from.is_some_and(|column| !cell(column).starts_with(sender(row))) => {
                format!("step {} of {capture} is from the {}", cell(step), sender(row))
            }
            Some(row) => {
                let known = numbers(&row.words().collect::<Vec<_>>().join(" "));
                let unknown = cells
                    .iter()
                    .flat_map(|cell| numbers(cell))
                    .find(|number| number != cell(step) && !known.contains(number));
                format!("step {} of {capture} has no {}", cell(step), unknown?)
            }
        };
        Some((*line, what))
    };
    Ok(table.rows.iter().filter_map(wrong).collect())
}

fn sender(row: &Row) -> &'static str {
    if row.from_client {
        "client"
    } else {
        "server"
    }
}

/// `REQ (ConnectRequest)` is called so, or by either of its names; others also with the service before them.
fn is_called(row: &Row, name: &str) -> bool {
    let name = name.strip_prefix("RC ").unwrap_or(name);
    let mut names = row.label.trim_end_matches(')').split(" (");
    row.label == name || names.any(|one| one == name)
}

/// The numbers in a table of a packet's fields: each is the value of that field, or what it means. The columns after the
/// first show one frame each; there may be one more, which explains.
fn fields(page: &Page, mark: &Mark, sources: &Sources) -> Result<Vec<(usize, String)>> {
    let [capture, frames @ ..] = mark.words.as_slice() else {
        bail!("write <!-- fields: captures/NAME.pcapng step3 -->")
    };
    let table = table(page, mark)?;
    let shown =
        frames.iter().map(|frame| excerpts::packet(sources, capture, frame)).collect::<Result<Vec<String>>>()?;
    let mut wrong = Vec::new();
    for (line, cells) in &table.rows {
        let names: Vec<&str> = cells[0].split(", ").collect();
        for ((text, cell), frame) in shown.iter().zip(&cells[1..]).zip(frames) {
            let lines =
                text.lines().filter(|line| names.iter().any(|name| line.split("  ").any(|word| word.trim() == *name)));
            let known: Vec<String> = lines.flat_map(|line| numbers(line.get(32..).unwrap_or(""))).collect();
            let unknown = numbers(cell).into_iter().find(|number| !known.contains(number));
            wrong.extend(
                unknown.map(|number| (*line, format!("in {frame} of {capture}, {} has no {number}", cells[0]))),
            );
        }
    }
    Ok(wrong)
}

/// The numbers of a text, each written in one way, addresses as a whole.
fn numbers(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !(is_word(c) || c == '.')).map(|word| word.trim_matches('.'));
    let hex = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    let numbers = words.filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    numbers.map(|word| hex(word).map_or_else(|| word.into(), |value| value.to_string())).collect()
}

/// The numbers of a table: each is in the file that the mark names.
fn inside(page: &Page, mark: &Mark, sources: &Sources) -> Result<Vec<(usize, String)>> {
    let [path] = mark.words.as_slice() else { bail!("write <!-- in: PATH -->") };
    let known = numbers(&sources.text(path)?.replace("..", " "));
    let mut wrong = Vec::new();
    for (line, cells) in table(page, mark)?.rows {
        let unknown = numbers(&cells.join(" | ").replace("..", " ")).into_iter().find(|number| !known.contains(number));
        wrong.extend(unknown.map(|number| (line, format!("{path} has no number {number}"))));
    }
    Ok(wrong)
}

/// What a table says to try: the code in its first column stands in the test that the mark names.
fn tried(page: &Page, mark: &Mark, sources: &Sources) -> Result<Vec<(usize, String)>> {
    let [path] = mark.words.as_slice() else { bail!("write <!-- tried: PATH -->") };
    let test = sources.text(path)?.replace('\\', "");
    let mut wrong = Vec::new();
    for (line, cells) in table(page, mark)?.rows {
        // Every second piece between the marks is code.
        let unknown = cells[0].split('`').skip(1).step_by(2).find(|code| !test.contains(code));
        wrong.extend(unknown.map(|code| (line, format!("{path} does not try `{code}`"))));
    }
    Ok(wrong)
}

/// The calls and events of a table, from top to bottom, in the order in which a side's log has them.
fn order(page: &Page, mark: &Mark, sources: &Sources) -> Result<Vec<(usize, String)>> {
    let [capture, node] = mark.words.as_slice() else { bail!("write <!-- order: captures/NAME.pcapng NODE -->") };
    let table = table(page, mark)?;
    let mut said = sources.lines(capture, node)?.into_iter();
    let names = sources.names()?;
    let mut wrong = Vec::new();
    for (line, cells) in &table.rows {
        for name in names.of(&cells.join(" | ")).into_iter().filter(|name| ["call", "event"].contains(&name.kind)) {
            if !said.any(|line| names.of(&line.text).iter().any(|other| other.thing == name.thing)) {
                wrong.push((*line, format!("{} does not have `{}` here", mark.words.join(", the "), name.text)));
            }
        }
    }
    Ok(wrong)
}

#[cfg(test)]
mod tests {
    use super::super::sources::tests::repository;
    use super::*;

    fn check(text: &str) -> Vec<String> {
        problems(&Page::new("docs/p.md", text), &repository()).iter().map(Problem::to_string).collect()
    }

    #[test]
    fn what_is_tried_stands_in_the_test() {
        let table = |rule| format!("<!-- tried: lab/tests/rules.rs -->\n| rule | |\n|---|---|\n| `{rule}` | x |\n");
        assert_eq!(check(&table("drop 1st REP")), [""; 0]);
        assert!(check(&table("drop 1st RTU"))[0].ends_with("does not try `drop 1st RTU`"));
    }

    fn packet_table(rows: &str) -> String {
        format!("<!-- packets: captures/01_cm_listen.pcapng -->\n| step | from | packet |\n|---|---|---|\n{rows}")
    }

    #[test]
    fn steps_packets_and_senders_are_those_of_the_capture() {
        let right = "| 1 | client | ConnectRequest |\n| 2 | server | `REJ` |\n";
        assert_eq!(check(&packet_table(right)), [""; 0]);
        let other_name = check(&packet_table(&right.replace("REJ", "REP")));
        assert!(other_name[0].ends_with("is REJ (ConnectReject), not REP"), "{other_name:?}");
        assert!(other_name[0].starts_with("docs/p.md:5: "));
        assert!(check(&packet_table(&right.replace("| server", "| client")))[0].ends_with("is from the server"));
        assert!(check(&packet_table("| 99 | client | REQ |\n"))[0].contains("no packet of step 99"));
        assert!(check(&packet_table(""))[0].contains("no rows"));
    }
}

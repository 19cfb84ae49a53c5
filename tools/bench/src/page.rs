//! docs/benchmarks.md, from what a run has kept.

use crate::row::{Row, Run, Values};
use crate::KINDS;

const TOP: &str = "# Benchmarks\n\n\
How fast is all this, beside what others have built? `make bench` measures it, keeps the figures in\n\
[figures.jsonl](../tools/bench/figures.jsonl), and writes this page from them. The lab's machines are emulated and SoftRoCE is a driver in\n\
software: only ratios say something, and about these programs alone.\n\n\
How to read a row:\n\
- Ours and the other took turns in the same machines. Each figure is the median of all rounds.\n\
- The ratio is ours divided by the other, in single rounds: the median, and in brackets the lowest and the highest.\n\
- \"No clear difference\": some rounds had ours ahead, some the other.\n\
- A round in which a program stood still is left out, and counted.\n";

pub fn page(run: &Run) -> String {
    let mut page = TOP.to_owned();
    for (kind, title, about, _) in KINDS {
        let rows: Vec<&Row> = run.rows.iter().filter(|row| row.kind == kind).collect();
        if !rows.is_empty() {
            page += &format!("\n## {title}\n{about}\n{}{}", limits(&rows), tables(&rows));
        }
    }
    let facts: String = run.facts.iter().map(|(name, value)| format!("| {name} | {value} |\n")).collect();
    format!("{page}\n## Where and when\n| | |\n|---|---|\n{facts}")
}

/// Tables of what stands beside something, and lists of what does not.
pub fn tables(rows: &[&Row]) -> String {
    let (mut text, mut listed) = (String::new(), None);
    for row in rows {
        let list = row.beside.is_none();
        if listed.replace(list) != Some(list) {
            text +=
                if list { "\n" } else { "\n| what | ours | the other | ratio | ours is |\n|---|---|---|---|---|\n" };
        }
        text += &line(row);
    }
    text
}

fn line(row: &Row) -> String {
    let (what, unit, ours) = (&row.what, &row.unit, short(row.ours.median));
    let Some(beside) = &row.beside else { return format!("- {what}: {ours} {unit} {}\n", spread(&row.ours)) };
    let still =
        |values: &Values| if values.still > 0 { format!(", {} stood still", values.still) } else { String::new() };
    let (name, other, ratio) = (&beside.name, &beside.values, &beside.ratio);
    // Where some rounds say the one and some the other, it is neither.
    let verdict = match ratio.low <= 1.0 && 1.0 <= ratio.high {
        true => "no clear difference",
        false if (ratio.median > 1.0) == row.is_rate() => "better",
        false => "worse",
    };
    let (ours, other) =
        (format!("{ours} {unit}{}", still(&row.ours)), format!("{}{}", short(other.median), still(other)));
    format!("| {what} | {ours} | {name}: {other} | {} {} | {verdict} |\n", short(ratio.median), spread(ratio))
}

/// `(275–413)`
fn spread(Values { low, high, still, .. }: &Values) -> String {
    let still = if *still > 0 { format!(", {still} stood still") } else { String::new() };
    format!("({}–{}{still})", short(*low), short(*high))
}

/// Three digits, or all before the point.
fn short(value: f64) -> String {
    let places = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 || size == 0.0 => 2,
        _ => 4,
    };
    format!("{value:.places$}")
}

/// The limits of these rows, and whether they are kept.
fn limits(rows: &[&Row]) -> String {
    let (mut limits, mut all, mut broken) = (Vec::new(), 0, String::new());
    for row in rows {
        let (Some(limit), Some(kept), Some(beside)) = (row.limit, row.kept(), &row.beside) else { continue };
        all += 1;
        limits.push(match row.is_rate() {
            true if limit > 1.0 => format!("at least {limit} times its speed"),
            true => format!("at least {limit} of its speed"),
            false => format!("at most {limit} of the other's time"),
        });
        if !kept {
            broken += &format!("- {}, beside {}\n", row.what, beside.name);
        }
    }
    limits.dedup();
    let (limits, kept) = (limits.join(", "), all - broken.lines().count());
    match broken.as_str() {
        _ if all == 0 => String::new(),
        "" => format!("Wanted: {limits}. Kept: {kept} of {all}.\n"),
        _ => format!("Wanted: {limits}. Kept: {kept} of {all}. **Not kept:**\n{broken}"),
    }
}

/// Which rows have lost more than a fifth of their speed since another run, a line for each.
pub fn slower(run: &Run, before: &Run) -> String {
    let known = |row: &&Row| before.rows.iter().find(|old| (&old.kind, &old.what) == (&row.kind, &row.what));
    let compared = run.rows.iter().filter_map(|row| Some((row, row.speed_since(known(&row)?))));
    let slower = compared.filter(|(_, speed)| *speed < 0.8);
    slower
        .map(|(row, speed)| {
            format!("slower than recorded: {}, {} (now {:.0} % of its speed)\n", row.kind, row.what, speed * 100.0)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lost_more_than_a_fifth_of_its_speed_is_named() {
        let run = |rows| Run { facts: Vec::new(), rows };
        let time = |ours: f64| Row::new("c", "µs", &[ours]);
        // The load of the machine has halved everything: that's no row's fault.
        let [before, loaded] =
            [[10.0, 5.0], [5.0, 2.5]].map(|[ours, b]| Row::beside("a", "packets/s", &[ours], "b", &[b]));
        assert_eq!(slower(&run(vec![loaded]), &run(vec![before])), "");
        assert_eq!(slower(&run(vec![time(12.0)]), &run(vec![time(10.0)])), "");
        let lost = "slower than recorded: , c (now 77 % of its speed)\n";
        assert_eq!(
            slower(&run(vec![time(13.0), Row::new("d", "µs", &[1.0])]), &run(vec![time(10.0)])),
            lost,
            "d is new"
        );
    }

    /// What the page of today does not show.
    #[test]
    fn a_page_says_what_breaks_a_limit_and_what_stood_still() {
        let slow = Row::beside("a", "µs", &[3.0, 6.0, f64::NAN], "b", &[2.0, 4.0, 1.0]).limit(1.05);
        let page = page(&Run { facts: Vec::new(), rows: vec![Row { kind: "tcp".into(), ..slow }] });
        let limit = "Wanted: at most 1.05 of the other's time. Kept: 0 of 1. **Not kept:**\n- a, beside b\n\n| what |";
        let row = "\n| a | 4.50 µs, 1 stood still | b: 2.00 | 1.50 (1.50–1.50, 1 stood still) | worse |\n";
        assert!(page.contains(limit) && page.contains(row), "{page}");
    }
}

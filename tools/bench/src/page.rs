//! docs/benchmarks.md, from what a run has kept.

use crate::row::{short, Row, Wanted};
use crate::run::Run;

/// What a kind of figures is called, and what it says and does not say.
pub type Title = (&'static str, &'static str);

const TOP: &str = "# Benchmarks\n\n\
How fast is all this, beside what others have built? `make bench` measures it, keeps the figures in\n\
[figures.tsv](../tools/bench/figures.tsv), and writes this page from them. The lab's machines are emulated and SoftRoCE is a driver in\n\
software: only ratios say something, and about these programs alone.\n\n\
How to read a row:\n\
- Ours and the other took turns in the same machines. Each figure is the median of all rounds.\n\
- The ratio is ours divided by the other, in single rounds: the median, and in brackets the lowest and the highest.\n\
- \"No clear difference\": some rounds had ours ahead, some the other.\n\
- A round in which a program stood still is left out, and counted.\n";

/// `title` tells of a kind by its name.
pub fn page(run: &Run, title: impl Fn(&str) -> Option<Title>) -> String {
    let mut page = TOP.to_owned();
    for kind in &run.kinds {
        let (title, about) = title(&kind.name).unwrap_or(("Other figures", ""));
        page += &format!("\n## {title}\n{about}\n{}{}", limits(&kind.rows), tables(&kind.rows));
    }
    page + &circumstances(run)
}

/// Tables of what stands beside something, and lists of what does not.
pub fn tables(rows: &[Row]) -> String {
    let (mut text, mut listed) = (String::new(), None);
    for row in rows {
        let list = row.other.is_none();
        if listed != Some(list) {
            text +=
                if list { "\n" } else { "\n| what | ours | the other | ratio | ours is |\n|---|---|---|---|---|\n" };
            listed = Some(list);
        }
        text += &if list { item(row) } else { cells(row) };
    }
    text
}

fn item(row: &Row) -> String {
    format!("- {}: {}\n", row.what, with_unit(&row.ours.with_spread(), &row.unit))
}

/// `326 µs (275–413)`
fn with_unit(figure: &str, unit: &str) -> String {
    let (median, spread) = figure.split_once(' ').unwrap_or((figure, ""));
    format!("{median} {unit} {spread}").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cells(row: &Row) -> String {
    let still = |still: usize| if still > 0 { format!(", {still} stood still") } else { String::new() };
    let ours = with_unit(&short(row.ours.median), &row.unit) + &still(row.ours.still);
    let other = row.other.map_or(String::new(), |other| short(other.median) + &still(other.still));
    let ratio = row.ratio.map_or(String::new(), |ratio| ratio.with_spread());
    format!("| {} | {ours} | {}: {other} | {ratio} | {} |\n", row.what, row.beside, row.verdict())
}

/// The limits of these rows, and whether they are kept.
fn limits(rows: &[Row]) -> String {
    let mut limits: Vec<String> = Vec::new();
    for wanted in rows.iter().filter_map(|row| row.wanted) {
        let limit = match wanted {
            Wanted::AtMost(most) => format!("at most {most} of the other's time"),
            Wanted::AtLeast(least) => format!("at least {least} of its speed"),
        };
        if !limits.contains(&limit) {
            limits.push(limit);
        }
    }
    let kept = rows.iter().filter(|row| row.kept() == Some(true)).count();
    let broken: Vec<String> = rows.iter().filter(|row| row.kept() == Some(false)).map(Row::name).collect();
    match (&limits[..], &broken[..]) {
        ([], _) => String::new(),
        (_, []) => format!("Wanted: {}. Kept: {kept} of {kept}.\n", limits.join(", ")),
        _ => {
            let of = kept + broken.len();
            format!("Wanted: {}. Kept: {kept} of {of}. **Not kept:**\n{}", limits.join(", "), list(&broken))
        }
    }
}

fn circumstances(run: &Run) -> String {
    let facts: String = run.facts.iter().map(|(name, value)| format!("| {name} | {value} |\n")).collect();
    let times: String = run
        .kinds
        .iter()
        .map(|kind| format!("| measuring {} | {:.0} s, at a load of {:.1} |\n", kind.name, kind.seconds, kind.load))
        .collect();
    format!("\n## Where and when\n| | |\n|---|---|\n{facts}{times}")
}

fn list(items: &[String]) -> String {
    items.iter().map(|item| format!("- {item}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Kind;

    #[test]
    fn a_page_says_what_is_better_and_what_breaks_a_limit() {
        let slow = Row::beside("a", "µs", &[3.0, 6.0], "b", &[2.0, 4.0]).wanted(Wanted::AtMost(1.05));
        let rows = vec![Row::new("c", "s", &[5.0, 7.0]), slow];
        let facts = vec![("date (UTC)".into(), "today".into())];
        let run = Run { facts, kinds: vec![Kind { name: "k".into(), seconds: 5.0, load: 1.5, rows }] };
        let page = page(&run, |name| (name == "k").then_some(("Title", "About it.")));
        for wanted in [
            "\n## Title\nAbout it.\nWanted: at most 1.05 of the other's time. Kept: 0 of 1. **Not kept:**\n- a, beside b\n",
            "\n- c: 6.00 s (5.00–7.00)\n\n| what |",
            "\n| a | 4.50 µs | b: 3.00 | 1.50 (1.50–1.50) | worse |\n",
            "\n| date (UTC) | today |\n| measuring k | 5 s, at a load of 1.5 |\n",
        ] {
            assert!(page.contains(wanted), "{wanted} is not in {page}");
        }
    }
}

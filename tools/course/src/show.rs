//! What a person sees of a change: the edit, the part of the run that matters, the findings, the reason.

use crate::change::Change;
use crate::copy::Copy;
use crate::edit::Edit;
use crate::markdown::hanging;
use crate::trouble;
use anyhow::{Context, Result};
use judge::expected::What;
use judge::{Finding, MOST_SHOWN};
use owo_colors::OwoColorize;
use run::capture::Events;
use run::lanes::{self, Style};
use std::ops::RangeInclusive;
use std::process::Command;
use wire::show::ladder;

/// We also show this many events before and after one that matters.
const AROUND: u64 = 1;
/// So many lines of packets tell a person something.
const MOST_PACKETS: usize = 60;
/// We show at most this much of what stands out in a run.
const MOST_TROUBLE: usize = 4;

/// The change in the source as diff(1) shows it, without comments around it: many a one answers what the change asks.
pub fn edit(change: &Change, copy: &Copy, color: bool) -> Result<String> {
    let (lesson, mut text) = (&change.name.lesson, String::new());
    for file in Edit::files(&change.edits) {
        let label = format!("lessons/{}/{file}", lesson.file_name().unwrap_or_default().to_string_lossy());
        let mut diff = Command::new("diff");
        diff.args(["-U2", if color { "--color=always" } else { "--color=never" }]);
        diff.args(["--label", &label, "--label", "changed"]).arg(lesson.join(file)).arg(copy.folder.join(file));
        let output = diff.output().context("cannot start diff. Install the package diffutils")?;
        let shown = String::from_utf8_lossy(&output.stdout);
        text.extend(
            shown.split_inclusive('\n').filter(|line| !(line.starts_with(' ') && line.trim().starts_with("//"))),
        );
    }
    Ok(text)
}

/// What else is changed: the command lines, and what is done to packets and machines.
pub fn options(change: &Change) -> String {
    let (told, mut text) = (&change.options, String::new());
    for (side, options) in [("server", &told.server), ("client", &told.client), ("wire", &told.wire)] {
        if !options.is_empty() {
            text += &format!("{side}='{options}'\n");
        }
    }
    text.extend(told.nodes.iter().map(|(node, command)| format!("{node} runs: {command}\n")));
    text += if told.late_read { "the device reads a request some time after it was posted\n" } else { "" };
    text += if told.late_arm { "the device arms a completion queue when a completion is in it\n" } else { "" };
    text.extend(told.faults.iter().map(|fault| format!("the lab does: {fault}\n")));
    text
}

/// The lanes around what was found. Where a program ended is told in the findings.
pub fn part(run: &Events, findings: &[Finding], style: Style) -> Result<String> {
    let numbers = findings
        .iter()
        .filter(|finding| !matches!(finding.expected.what, What::Exit(_)))
        .flat_map(|finding| finding.found.iter().take(MOST_SHOWN));
    let mut text = String::new();
    for (at, part) in parts(numbers.copied().collect()).into_iter().enumerate() {
        let drawn = lanes::text(run, style, part).context("the run file is damaged")?;
        // The heading ends before the first event's number.
        let is_event = |line: &str| line.split_whitespace().next().is_some_and(|word| word.parse::<u64>().is_ok());
        let heading = drawn.lines().take_while(|line| !is_event(line)).count();
        text += if at == 0 { "" } else { "   …\n" };
        text.extend(drawn.split_inclusive('\n').skip(if at == 0 { 0 } else { heading }));
    }
    Ok(text)
}

/// The packets of a run, unless they are too many; each is told whole, however narrow the screen is.
pub fn packets(run: &Events, style: Style) -> Result<String> {
    let mut text = Vec::new();
    let whole = Style { width: usize::MAX, ..style };
    ladder::of(run, whole, &mut text).context("the run file is damaged")?;
    let text = String::from_utf8_lossy(&text);
    let (shown, all) = (text.lines().take(MOST_PACKETS), text.lines().count());
    let more = if all > MOST_PACKETS { format!("… and {} more\n", all - MOST_PACKETS) } else { String::new() };
    let lines = shown.flat_map(|line| lanes::wrap(line, style.width));
    Ok(lines.map(|line| line + "\n").collect::<String>() + &more)
}

/// Numbers with their neighbours, as few pieces as possible.
fn parts(mut numbers: Vec<u64>) -> Vec<RangeInclusive<u64>> {
    numbers.sort_unstable();
    let mut parts: Vec<RangeInclusive<u64>> = Vec::new();
    for number in numbers {
        let (start, end) = (number.saturating_sub(AROUND), number + AROUND);
        match parts.last_mut() {
            Some(last) if *last.end() + 1 >= start => *last = *last.start()..=end,
            _ => parts.push(start..=end),
        }
    }
    parts
}

/// What stands out in a run, whatever was expected of it; of much of that the first.
pub fn trouble(run: &Events, style: Style) -> Result<String> {
    let trouble = trouble::trouble(run)?.into_iter().take(MOST_TROUBLE);
    Ok(trouble.map(|line| hanging("  ", &line, style.width)).collect())
}

/// That a program has crashed, if one has.
pub fn crashes(run: &Events, style: Style) -> String {
    let lines: String = trouble::crashes(run).iter().map(|line| hanging("  ", line, style.width)).collect();
    let follows = "  That may be why the rest is missing.\n\n";
    if lines.is_empty() {
        lines
    } else {
        lines + follows
    }
}

/// One line for each expectation, and what it means if it is not met.
pub fn findings(findings: &[Finding], style: Style) -> String {
    lines_of(findings, style, Finding::to_string)
}

/// The same where the run's packets are shown, and its lines are not: of lines no numbers are told.
pub fn findings_without_run(findings: &[Finding], style: Style) -> String {
    lines_of(findings, style, |finding| format!("{finding:#}"))
}

fn lines_of(findings: &[Finding], style: Style, text: impl Fn(&Finding) -> String) -> String {
    let line = |finding: &Finding| {
        let is_met = finding.is_met();
        checked(&text(finding), is_met, if is_met { "" } else { &finding.expected.hint }, style)
    };
    // Of two ways the one that was not taken is nothing to tell of.
    findings.iter().filter(|finding| !finding.is_excused || !finding.found.is_empty()).map(line).collect()
}

/// A line with a mark, and what there is to say about it in a line of its own.
pub fn checked(text: &str, is_right: bool, remark: &str, style: Style) -> String {
    let mark = if is_right { "✓" } else { "✗" };
    let line = hanging(&format!("  {mark} "), text, style.width);
    let remark = if remark.is_empty() { String::new() } else { hanging("      ", remark.trim(), style.width) };
    let coloured = match (style.color, is_right) {
        (false, _) => mark.to_owned(),
        (true, true) => mark.green().to_string(),
        (true, false) => mark.red().to_string(),
    };
    line.replacen(mark, &coloured, 1) + &remark
}

pub fn bold(text: &str, color: bool) -> String {
    match color {
        true => text.bold().to_string(),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_is_shown_with_its_neighbours() {
        assert_eq!(parts(vec![20, 2, 5, 5]), [1..=6, 19..=21]);
        assert!(parts(vec![]).is_empty());
    }

    #[test]
    fn a_long_line_goes_on_below_its_text() {
        let style = Style { color: false, width: 30 };
        let said = checked("the server sends: RC Acknowledge", true, "Look at the frame before it.", style);
        let expected = "  ✓ the server sends: RC\n    Acknowledge\n      Look at the frame before\n      it.\n";
        assert_eq!(said, expected);
    }
}

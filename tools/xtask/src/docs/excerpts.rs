//! Excerpts that a mark describes so completely that they can be written again: a piece of a log, of a ladder, or of a packet
//! byte by byte, and which part of a run a picture shows.

use super::sources::{lines, rows};
use anyhow::{ensure, Context, Result};
use run::capture::{Events, Reader};
use run::files::bytes;
use run::lanes;
use run::look::Style;
use run::row::Row;
use std::ops::RangeInclusive;
use wire::show;

/// The numbers in the capture of a part of a run, `FROM..TO`. Each end is a step of the story, as `step8`, or a stage of one
/// side, as `client:write`: from its first line or packet, or to its last; `step8@2` is the second.
pub fn part(capture: &str, range: &str) -> Result<RangeInclusive<u64>> {
    let (from, to) = range.split_once("..").context("a range is FROM..TO, as step4..step5 or client:write..step9")?;
    let numbers = |end: &str| -> Result<Vec<u64>> {
        let (end, which) = end.split_once('@').map_or((end, None), |(end, which)| (end, Some(which)));
        let found: Vec<u64> = match end.split_once(':') {
            Some((node, stage)) => {
                staged(capture, node)?.filter_map(|(number, at, _)| (at == stage).then_some(number)).collect()
            }
            None => rows(capture)?.iter().filter(|row| is_step(row, end)).map(|row| row.frame).collect(),
        };
        let found = nth(&found, which)?;
        ensure!(!found.is_empty(), "{capture} has no `{end}`");
        Ok(found.to_vec())
    };
    let (from, to) = (numbers(from)?[0], numbers(to)?.pop().unwrap_or_default());
    ensure!(from <= to, "{range} ends before it begins");
    Ok(from..=to)
}

/// Of what was found, all, or only that which a mark names by a number after an `@`.
pub fn nth<'f, T>(found: &'f [T], which: Option<&str>) -> Result<&'f [T]> {
    let Some(which) = which else { return Ok(found) };
    let nth: usize = which.parse().ok().filter(|nth| *nth > 0).context("an @ needs a number after it, from 1 on")?;
    Ok(found.get(nth - 1..nth).unwrap_or_default())
}

/// Whether a packet belongs to the step that a mark calls `step8`.
pub fn is_step(row: &Row, word: &str) -> bool {
    row.step().and_then(|step| step.strip_prefix("Step ")?.split(':').next()) == word.strip_prefix("step")
}

/// One node's lines: number, stage and text without the time of day. What a program prints itself has no stage: it belongs to
/// that of the line above.
fn staged(capture: &str, node: &str) -> Result<impl Iterator<Item = (u64, String, String)>> {
    let mut current = String::new();
    Ok(lines(capture, node)?.into_iter().map(move |line| {
        let text = match line.stage() {
            Some(stage) => {
                stage.clone_into(&mut current);
                format!("[{stage}] {}", line.said())
            }
            None => line.text.clone(),
        };
        (line.number, current.clone(), text)
    }))
}

/// What one node logs in some of its stages, with what the program prints in between, in lines as wide as a run's lanes: longer ones
/// would have to be scrolled on most screens.
pub fn log(name: &str, node: &str, stages: &[&str]) -> Result<Vec<String>> {
    let capture = format!("captures/{name}.pcapng");
    let of_stages = staged(&capture, node)?.filter(|(_, at, _)| stages.contains(&at.as_str()));
    let lines: Vec<String> = of_stages.flat_map(|(_, _, text)| lanes::wrap(&text, Style::FILE.width)).collect();
    ensure!(!lines.is_empty(), "{capture} has no stage {} of the {node}", stages.join(" or "));
    Ok(lines)
}

/// A run as `make lesson-NN` tells it, but for the last line, which is about what is left out.
pub fn explained(name: &str) -> Result<Vec<String>> {
    let capture = bytes(format!("captures/{name}.pcapng"))?;
    let told = wire::explain::explain(&mut Reader::new(capture.as_slice())?)?;
    Ok(told.to_string().lines().map(str::to_owned).collect())
}

pub fn story(name: &str) -> Result<Vec<String>> {
    let run = bytes(format!("captures/{name}.pcapng"))?;
    let text = lanes::story(&Events::read(&run[..])?, &run::story::named(name)?, Style::FILE)
        .context("the capture is damaged")?;
    Ok(text.lines().filter(|line| !line.starts_with("folded:")).map(str::to_owned).collect())
}

/// The lines of `wire show` for some steps: `step6-step9`, or `step4`.
pub fn ladder(capture: &str, steps: &str) -> Result<Vec<String>> {
    let bytes = bytes(capture)?;
    let mut text = Vec::new();
    let style = Style { color: false, width: usize::MAX };
    show::ladder::write(&mut Reader::new(bytes.as_slice())?, style, &mut text)?;
    let (from, to) = steps.split_once('-').unwrap_or((steps, steps));
    let part = part(capture, &format!("{from}..{to}"))?;
    let text = String::from_utf8(text)?;
    let wanted = |line: &&str| {
        let number = line.split_whitespace().next().and_then(|word| word.parse().ok());
        // The last line counts the packets.
        line.starts_with("  ") && number.is_some_and(|number| part.contains(&number))
    };
    Ok(text.lines().filter(wanted).map(String::from).collect())
}

/// All that `wire show --packet` says of a frame, or of a step's first packet.
pub fn packet(capture: &str, which: &str) -> Result<String> {
    shown(&bytes(capture)?, which.parse().map_err(anyhow::Error::msg)?)
}

/// The same, of a capture that is read already.
pub fn shown(capture: &[u8], which: show::bytes::Which) -> Result<String> {
    let mut text = Vec::new();
    show::bytes::write(&mut Reader::new(capture)?, which, &mut text)?;
    Ok(String::from_utf8(text)?)
}

/// Some sections of `wire show --packet`: a section begins with its name, and an empty line ends it.
pub fn sections(capture: &str, which: &str, names: &[&str]) -> Result<Vec<String>> {
    let text = packet(capture, which)?;
    let section = |name: &&str| {
        let named = |section: &&str| section.strip_prefix(*name).is_some_and(|rest| rest.starts_with([' ', ',']));
        let section = text.split("\n\n").find(named).map(|section| section.trim_end_matches('\n'));
        section.with_context(|| format!("{which} of {capture} has no section {name}"))
    };
    let sections: Vec<&str> = names.iter().map(section).collect::<Result<_>>()?;
    Ok(sections.join("\n\n").lines().map(|line| line.trim_end().to_string()).collect())
}

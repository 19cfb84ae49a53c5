//! Excerpts that a mark describes so completely that they can be written anew: a piece of a timeline, of a ladder, or of
//! a packet byte by byte.

use super::sources::Sources;
use anyhow::{bail, ensure, Context, Result};
use wire::capture::Reader;
use wire::show::{self, ladder::Style, row};
use wire::story::timeline::{Entry, Lane, Timeline};
use wire::story::Side;

/// A piece of a timeline, with its heading. Without a range, all of it.
///
/// A range is `FROM..TO`. Each end is a frame of the capture, as `10`, a log line, as `client#41`, or a stage of one side, as
/// `client:write`: from its first line, or to its last.
///
/// # Errors
/// The timeline has no such place, or the range ends before it begins.
pub fn timeline(sources: &Sources, name: &str, range: Option<&str>) -> Result<Vec<String>> {
    let path = format!("captures/{name}.txt");
    let text = sources.text(&path)?;
    let lines: Vec<String> = text.lines().map(String::from).collect();
    let Some(range) = range else { return Ok(lines) };
    let (from, to) = range.split_once("..").context("a range is FROM..TO, as 10..11 or client#41..server#42")?;
    let timeline = sources.timeline(&path)?;
    let frames: Vec<u64> = sources.rows(&format!("captures/{name}.pcapng"))?.iter().map(|row| row.frame).collect();
    let places = |end: &str| match places(&timeline, &frames, end) {
        found if found.is_empty() => bail!("{path} has no `{end}`"),
        found => Ok(found),
    };
    let (from, to) = (places(from)?[0], places(to)?.pop().unwrap_or_default());
    ensure!(from <= to, "{range} ends before it begins");
    let (first, last) = (timeline.entries()[from].lines.start, timeline.entries()[to].lines.end);
    Ok([&lines[..2], &lines[first..last]].concat())
}

/// What one side logs in some of its stages, with what the program prints in between.
///
/// # Errors
/// The timeline has no such stage.
pub fn log(sources: &Sources, name: &str, side: &str, stages: &[&str]) -> Result<Vec<String>> {
    let path = format!("captures/{name}.txt");
    let timeline = sources.timeline(&path)?;
    let side = if side == "client" { Side::Client } else { Side::Server };
    let (mut lines, mut current) = (Vec::new(), "");
    for entry in timeline.entries().iter().filter(|entry| entry.lane == Lane::Log(side)) {
        current = stage(entry).unwrap_or(current);
        if stages.contains(&current) && !entry.words.starts_with("──") {
            lines.push(entry.words.clone());
        }
    }
    ensure!(!lines.is_empty(), "{path} has no stage {} of the {}", stages.join(" or "), side.name());
    Ok(lines)
}

/// The entries that an end of a range names.
fn places(timeline: &Timeline, frames: &[u64], end: &str) -> Vec<usize> {
    let (lane, text) = match end.split_once(['#', ':']) {
        Some(("client", text)) => (Lane::Log(Side::Client), text),
        Some(("server", text)) => (Lane::Log(Side::Server), text),
        _ => {
            let nth = end.parse().ok().and_then(|frame: u64| frames.iter().position(|number| *number == frame));
            return nth.and_then(|nth| Some(timeline.packets().get(nth)?.0)).into_iter().collect();
        }
    };
    let mut current = "";
    let mut found = Vec::new();
    for (at, entry) in timeline.entries().iter().enumerate().filter(|(_, entry)| entry.lane == lane) {
        // What a program prints itself has no tag: it belongs to the line above.
        current = stage(entry).unwrap_or(current);
        let is_it = match text.parse::<u32>() {
            Ok(number) => entry.words.starts_with(&format!("[#{number:04}")),
            Err(_) => current == text,
        };
        found.extend(is_it.then_some(at));
    }
    found
}

/// The stage in a log line's tag.
fn stage(entry: &Entry) -> Option<&str> {
    entry.words.strip_prefix("[#")?.split_once(']')?.0.split_once(' ').map(|(_, stage)| stage)
}

/// The lines of `wire show` for some frames: `6-9`, or `4`.
///
/// # Errors
/// The capture has none of them.
pub fn ladder(sources: &Sources, capture: &str, frames: &str) -> Result<Vec<String>> {
    let bytes = sources.bytes(capture)?;
    let open = || Reader::new(bytes.as_slice());
    let mut text = Vec::new();
    show::ladder::write(&mut open()?, row::clients(&mut open()?), Style { color: false, width: None }, &mut text)?;
    let (from, to) = frames.split_once('-').unwrap_or((frames, frames));
    let (from, to): (u64, u64) = (from.parse()?, to.parse()?);
    let text = String::from_utf8(text)?;
    let wanted = |line: &&str| {
        let number = line.split_whitespace().next().and_then(|word| word.parse().ok());
        // The last line counts the packets.
        line.starts_with("  ") && number.is_some_and(|number| (from..=to).contains(&number))
    };
    let lines: Vec<String> = text.lines().filter(wanted).map(String::from).collect();
    ensure!(!lines.is_empty(), "{capture} has no RoCE packet in {frames}");
    Ok(lines)
}

/// All that `wire show --packet` says.
///
/// # Errors
/// The capture has no such frame.
pub fn packet(sources: &Sources, capture: &str, frame: &str) -> Result<String> {
    shown(&sources.bytes(capture)?, frame.parse()?)
}

/// The same, of a capture that is read already.
///
/// # Errors
/// The capture has no such frame.
pub fn shown(capture: &[u8], frame: u64) -> Result<String> {
    let mut text = Vec::new();
    show::bytes::write(&mut Reader::new(capture)?, frame, &mut text)?;
    Ok(String::from_utf8(text)?)
}

/// Some sections of `wire show --packet`: a section begins with its name, and an empty line ends it.
///
/// # Errors
/// The capture has no such frame, or the packet no such section.
pub fn bytes(sources: &Sources, capture: &str, frame: &str, sections: &[String]) -> Result<Vec<String>> {
    let text = packet(sources, capture, frame)?;
    let mut lines: Vec<String> = Vec::new();
    for name in sections {
        let named = |section: &&str| {
            let rest = section.strip_prefix(name.as_str());
            rest.is_some_and(|rest| rest.starts_with([' ', ',']))
        };
        let Some(section) = text.split("\n\n").find(named) else {
            bail!("frame {frame} of {capture} has no section {name}");
        };
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(section.trim_end_matches('\n').lines().map(|line| line.trim_end().to_string()));
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::super::sources::tests::repository;
    use super::*;

    const NAME: &str = "01_cm_listen";
    const CAPTURE: &str = "captures/01_cm_listen.pcapng";

    #[test]
    fn a_piece_of_a_timeline_begins_and_ends_where_it_should() {
        let sources = repository();
        let frames: Vec<u64> = sources.rows(CAPTURE).unwrap().iter().map(|row| row.frame).collect();
        let all = timeline(&sources, NAME, None).unwrap();
        let piece = timeline(&sources, NAME, Some(&format!("server#4..{}", frames[0]))).unwrap();
        assert_eq!(piece[..2], all[..2]);
        assert!(piece[2].contains("rdma_bind_addr") && piece.last().unwrap().contains("REQ"), "{piece:#?}");
        assert!(timeline(&sources, NAME, Some("999..1000")).unwrap_err().to_string().contains("has no `999`"));
        let backwards = format!("{}..server#4", frames[0]);
        assert!(timeline(&sources, NAME, Some(&backwards)).unwrap_err().to_string().contains("ends before"));
    }

    #[test]
    fn a_stage_is_all_that_it_logs_and_prints() {
        let sources = repository();
        let lines = log(&sources, NAME, "client", &["read_reason"]).unwrap();
        assert!(
            lines[0].contains("read_reason] SLOW  rdma_get_cm_event") && lines[3].starts_with("rejected with"),
            "{lines:#?}"
        );
        assert!(log(&sources, NAME, "server", &["read_reason"])
            .unwrap_err()
            .to_string()
            .contains("no stage read_reason"));
        let piece = timeline(&sources, NAME, Some("server:listen..server:listen")).unwrap();
        assert!(piece[2].contains("getaddrinfo") && piece.last().unwrap().contains("listening on"), "{piece:#?}");
    }

    #[test]
    fn a_piece_of_a_ladder_has_the_frames_asked_for() {
        let sources = repository();
        let frames: Vec<u64> = sources.rows(CAPTURE).unwrap().iter().map(|row| row.frame).collect();
        let (first, last) = (frames[0], frames[1]);
        assert_eq!(ladder(&sources, CAPTURE, &format!("{first}-{last}")).unwrap().len(), 2);
        let one = ladder(&sources, CAPTURE, &last.to_string()).unwrap();
        assert!(one.len() == 1 && one[0].contains("ConnectReject"), "{one:?}");
        assert!(ladder(&sources, CAPTURE, "90-99").is_err());
    }

    #[test]
    fn sections_of_a_packet_are_found_by_name() {
        let sources = repository();
        let frame = sources.rows(CAPTURE).unwrap()[0].frame.to_string();
        let sections = ["BTH".to_string(), "ICRC".to_string()];
        let lines = bytes(&sources, CAPTURE, &frame, &sections).unwrap();
        assert!(lines[0].starts_with("BTH  Base Transport Header") && lines.contains(&String::new()));
        assert!(bytes(&sources, CAPTURE, &frame, &["RETH".to_string()])
            .unwrap_err()
            .to_string()
            .contains("no section"));
    }
}

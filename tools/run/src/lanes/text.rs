//! Lanes drawn with characters.

use super::Entry;
use crate::look::{Sort, Style};
use owo_colors::OwoColorize;

/// The columns that are left beside a head.
fn room(style: Style, head: usize) -> usize {
    const LEAST: usize = 20;
    style.width.saturating_sub(head).max(LEAST)
}

/// Where lines are drawn.
pub(super) enum Layout<'a> {
    /// The widths of two lanes, and the nodes that they belong to.
    Two { left: usize, right: usize, nodes: [&'a str; 2] },
    /// One lane behind a column for the names of the nodes.
    One { names: usize },
}

/// Two lanes need this many columns.
pub(super) const LEAST_LANES: usize = 72;
/// Columns of number and time.
const HEAD: usize = 14;
const BETWEEN: &str = " │ ";
const BETWEEN_WIDTH: usize = 3;

impl<'a> Layout<'a> {
    pub(super) fn new(style: Style, nodes: &'a [String], sides: Option<[&'a str; 2]>) -> Layout<'a> {
        match sides {
            Some(nodes) if style.width >= LEAST_LANES => {
                let room = room(style, HEAD + BETWEEN_WIDTH);
                Layout::Two { left: room / 2, right: room - room / 2, nodes }
            }
            _ => Layout::One { names: nodes.iter().map(|name| name.chars().count()).max().unwrap_or(0) },
        }
    }
}

pub(super) fn heading(layout: &Layout) -> String {
    let Layout::Two { left, right, nodes: [client, server] } = *layout else { return String::new() };
    let rule = |width| "─".repeat(width);
    format!("{:>4} {:>7}  {client:left$}{BETWEEN}{server}\n", "#", "ms")
        + &format!("{}{}─┼─{}\n", rule(HEAD), rule(left), rule(right))
}

/// The line of a step of a story: open, with what happens below it; else with the packet of this entry.
pub(super) fn step(style: Style, layout: &Layout, entry: &Entry, title: &str, is_open: bool) -> String {
    let width = room(style, HEAD);
    let label = entry.text.split("  ").next().unwrap_or_default();
    let packet = match (layout, &entry.to) {
        _ if is_open => String::new(),
        (Layout::Two { nodes, .. }, Some(_)) if entry.node == nodes[1] => format!("◀─ {label}"),
        (Layout::Two { .. }, _) => format!("{label} ─▶"),
        (Layout::One { .. }, to) => format!("{} ─▶ {}  {label}", entry.node, to.as_deref().unwrap_or_default()),
    };
    let mut lines = wrap(title, width);
    let last = lines.last_mut().map_or(0, |line| line.chars().count());
    // The packet is at the right, or below.
    match width.checked_sub(last + packet.chars().count() + 2) {
        Some(free) if is_open => {
            lines.last_mut().into_iter().for_each(|line| *line += &format!("  {}", "─".repeat(free)))
        }
        Some(free) => lines.last_mut().into_iter().for_each(|line| *line += &format!("  {:free$}{packet}", "")),
        None => lines.push(format!("{packet:>width$}")),
    }
    if is_open {
        return lines.iter().map(|line| format!("{:HEAD$}{line}\n", "")).collect();
    }
    drawn(style, entry, Sort::Plain, lines.into_iter(), ("", ""), "")
}

pub(super) fn entry(style: Style, layout: &Layout, entry: &Entry) -> String {
    let (before, lines, after) = match (layout, &entry.to) {
        (Layout::Two { nodes, .. }, Some(_)) => {
            (String::new(), arrow(entry, room(style, HEAD), entry.node == nodes[1]), "")
        }
        (Layout::Two { left, nodes, .. }, None) if entry.node == nodes[0] => {
            let lines = wrap(&entry.text, *left).into_iter().map(|line| format!("{line:left$}"));
            (String::new(), lines.collect(), BETWEEN.trim_end())
        }
        (Layout::Two { left, right, nodes }, None) if entry.node == nodes[1] => {
            (format!("{:left$}{BETWEEN}", ""), wrap(&entry.text, *right), "")
        }
        // What is about no node of these stands across both lanes.
        (Layout::Two { .. }, None) => {
            let node = if entry.node.is_empty() { String::new() } else { format!("{}: ", entry.node) };
            (String::new(), wrap(&format!("{node}{}", entry.text), room(style, HEAD)), "")
        }
        (Layout::One { names }, to) => {
            let to = to.as_ref().map(|to| format!("─▶ {to}  ")).unwrap_or_default();
            let text = [format!("{to}{}", entry.text)].into_iter().chain(entry.notes.iter().cloned());
            let width = room(style, HEAD + entry.node.chars().count().max(*names) + 2);
            (String::new(), text.flat_map(|text| wrap(&text, width)).collect(), "")
        }
    };
    let name = match layout {
        Layout::One { names } => format!("{:names$}  ", entry.node),
        Layout::Two { .. } => String::new(),
    };
    drawn(style, entry, entry.sort, lines.into_iter(), (&before, after), &name)
}

/// Lines behind the entry's number and time, and a name.
fn drawn(
    style: Style,
    entry: &Entry,
    sort: Sort,
    lines: impl Iterator<Item = String>,
    (before, after): (&str, &str),
    name: &str,
) -> String {
    let time = entry.ms.map_or("-".into(), |ms| format!("{ms:.1}"));
    let (mut head, mut drawn) = (format!("{:>4} {time:>7}  {name}", entry.number), String::new());
    for line in lines {
        let line = match sort.look().1.filter(|_| style.color) {
            Some(color) => line.color(color).to_string(),
            None => line,
        };
        drawn.push_str(format!("{head}{before}{line}{after}").trim_end());
        drawn.push('\n');
        head = " ".repeat(head.chars().count());
    }
    drawn
}

/// `──── text ───▶` from the client, `◀─── text ────` from the server; a packet that did not arrive has no head. What does
/// not fit, and the notes, are below.
fn arrow(entry: &Entry, width: usize, to_left: bool) -> Vec<String> {
    let mut texts = wrap(&entry.text, width.saturating_sub(6)).into_iter();
    let text = texts.next().unwrap_or_default();
    let shaft = width.saturating_sub(text.chars().count() + 3);
    let (first, second) = ("─".repeat(shaft / 2), "─".repeat(shaft - shaft / 2));
    let arrow = match (to_left, entry.sort) {
        (false, Sort::Lost) => format!("{first} {text} {second}✕"),
        (true, Sort::Lost) => format!("✕{first} {text} {second}"),
        (false, _) => format!("{first} {text} {second}▶"),
        (true, _) => format!("◀{first} {text} {second}"),
    };
    let notes = texts.chain(entry.notes.iter().flat_map(|note| wrap(note, width)));
    [arrow].into_iter().chain(notes.map(|note| format!("{:^width$}", note.trim()))).collect()
}

/// Cuts text into lines of at most `width` characters, at spaces or after a bar if possible; what is cut off is indented. Of a
/// text that would fill the screen the begin is shown.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    const INDENT: usize = 4;
    const MOST: usize = 1000;
    const BEGIN: usize = 120;
    let (mut chars, width): (Vec<char>, _) = (text.chars().collect(), width.max(INDENT + 1));
    if chars.len() > MOST {
        let more = format!(" … and {} characters more", chars.len() - BEGIN);
        chars.truncate(BEGIN);
        chars.extend(more.chars());
    }
    let (mut lines, mut from, mut indent) = (Vec::new(), 0, 0);
    while indent + chars.len() - from > width {
        let fits = from + width - indent;
        let breaks = |at: &usize| chars[*at] == ' ' || chars[*at - 1] == '|';
        // A word that is longer than the line is cut where it has a joint, or anywhere.
        let joints = |at: &usize| ['=', '_', '/', ','].contains(&chars[*at - 1]);
        let cut = (from + 1..=fits).rev().find(breaks).or_else(|| (from + 1..=fits).rev().find(joints)).unwrap_or(fits);
        lines.push(line(indent, &chars[from..cut]));
        from = cut + chars[cut..].iter().take_while(|c| c.is_whitespace()).count();
        indent = INDENT;
    }
    lines.push(line(indent, &chars[from..]));
    lines
}

fn line(indent: usize, chars: &[char]) -> String {
    let text: String = chars.iter().collect();
    format!("{:indent$}{}", "", text.trim_end())
}

//! Lanes, or the packets alone, as a picture that is as wide as a page of a forge: 860 pixels.
//!
//! Its text can be selected and searched, it follows the reader's choice of light or dark, and it is told in words.

use super::{wrap, Entry, Lanes};
use crate::look::Sort;
use crate::picture::{self, escape, text};

/// Pixels: the picture's width, the height above the first entry, and that of a line.
const WIDTH: usize = 860;
const HEAD: usize = 36;
const LINE: usize = 16;
/// Pixels from the left: where numbers and times end, where the lanes begin, and where they end.
const NUMBER: usize = 34;
const TIME: usize = 90;
const LEFT: usize = 102;
const RIGHT: usize = 486;
const END: usize = 856;

/// Draws entries, and says them in words; the lanes say who is left and who is right.
pub(super) fn draw(lanes: &Lanes, entries: &[Entry]) -> (String, String) {
    let (mut body, mut y, words) = (String::new(), HEAD, describe(entries));
    for entry in entries {
        y += one(&mut body, lanes.sides(), y, entry);
    }
    let height = y + 4;
    let mut svg = picture::begin((WIDTH, height), "Log lines and packets in the order they happened", &words, "");
    text(&mut svg, NUMBER, 20, "class=\"quiet\" text-anchor=\"end\"", "#");
    text(&mut svg, TIME, 20, "class=\"quiet\" text-anchor=\"end\"", "ms");
    if let Some([left, right]) = lanes.sides() {
        // Packets alone go from one line to the other; lines of text have their lanes beside one.
        let (x, attributes, between) = match entries.iter().all(|entry| entry.to.is_some()) {
            true => (END, "class=\"side\" text-anchor=\"end\"", &[LEFT - 2, END + 2][..]),
            false => (RIGHT, "class=\"side\"", &[RIGHT - 8][..]),
        };
        text(&mut svg, LEFT, 20, "class=\"side\"", &lanes.with_address(left));
        text(&mut svg, x, 20, attributes, &lanes.with_address(right));
        for x in between {
            svg += &format!("<path class=\"life\" d=\"M{x} 28V{}\"/>\n", height - 4);
        }
    }
    (svg + &body + "</svg>\n", words)
}

/// The entries in words, for somebody who cannot see the picture.
fn describe(entries: &[Entry]) -> String {
    let words = entries.iter().map(|Entry { number, node, to, text, .. }| match to {
        Some(to) => format!("{number} {node} to {to}: {text}"),
        None => format!("{number} {node}: {text}"),
    });
    words.collect::<Vec<_>>().join("; ")
}

/// Pixels that this many characters take.
fn wide(characters: usize) -> usize {
    (characters * 73).div_ceil(10)
}

/// Characters that fit into this many pixels.
fn fits(pixels: usize) -> usize {
    pixels * 10 / 73
}

/// Draws one entry whose place begins at `y`, and gives its height.
fn one(svg: &mut String, sides: Option<[&str; 2]>, y: usize, entry: &Entry) -> usize {
    const END_OF_NUMBER: &str = "class=\"quiet\" text-anchor=\"end\"";
    text(svg, NUMBER, y + 12, END_OF_NUMBER, &entry.number.to_string());
    if let Some(ms) = entry.ms {
        text(svg, TIME, y + 12, END_OF_NUMBER, &format!("{ms:.1}"));
    }
    match (sides, &entry.to) {
        (Some([_, right]), Some(_)) => packet(svg, entry.node == right, y, entry),
        (Some([left, right]), None) if [left, right].contains(&entry.node.as_str()) => {
            let (x, end) = if entry.node == right { (RIGHT, END) } else { (LEFT, RIGHT - 12) };
            lines(svg, x, end, y, &entry.text, entry.sort)
        }
        (_, to) => {
            let to = to.as_ref().map(|to| format!(" ─▶ {to}")).unwrap_or_default();
            let said = [format!("{}{to}: {}", entry.node, entry.text)].into_iter().chain(entry.notes.iter().cloned());
            said.fold(0, |height, said| height + lines(svg, LEFT, END, y + height, &said, entry.sort))
        }
    }
}

fn lines(svg: &mut String, x: usize, end: usize, y: usize, said: &str, sort: Sort) -> usize {
    let lines = wrap(said, fits(end - x));
    for (place, line) in lines.iter().enumerate() {
        let y = y + 12 + place * LINE;
        let indent = line.len() - line.trim_start().len();
        let (x, line) = (x + wide(indent), line.trim_start());
        match sort {
            // The first line has the tag, and the tag its color.
            Sort::Tagged(tag) if place == 0 && line.contains(tag) => {
                let colored = format!("<tspan class=\"{}\">{tag}</tspan>", sort.look().0);
                let line = escape(line).replacen(tag, &colored, 1);
                *svg += &format!("<text x=\"{x}\" y=\"{y}\">{line}</text>\n");
            }
            Sort::Aside => text(svg, x, y, "class=\"quiet\"", line),
            _ => text(svg, x, y, "", line),
        }
    }
    lines.len() * LINE
}

fn packet(svg: &mut String, to_left: bool, y: usize, entry: &Entry) -> usize {
    const MIDDLE: &str = "text-anchor=\"middle\"";
    let middle = (LEFT + END) / 2;
    let words = wrap(&entry.text, fits(END - LEFT) - 4);
    let height = words.len() * LINE;
    let backing = wide(words.iter().map(|line| line.chars().count()).max().unwrap_or(0) + 2);
    let (x, class) = (middle - backing / 2, entry.sort.look().0);
    let arrow = y + height + 6;
    // The line between the lanes does not run through the words.
    *svg += &format!("<rect class=\"back\" x=\"{x}\" y=\"{y}\" width=\"{backing}\" height=\"{height}\"/>\n");
    for (place, line) in words.iter().enumerate() {
        text(svg, middle, y + 12 + place * LINE, MIDDLE, line.trim());
    }
    let (from, to, back) = if to_left { (END, LEFT, LEFT + 8) } else { (LEFT, END, END - 8) };
    let (above, below) = (arrow - 5, arrow + 5);
    let head = match entry.sort {
        Sort::Lost => format!("M{to} {above}L{back} {below}M{to} {below}L{back} {above}"),
        _ => format!("M{back} {above}L{to} {arrow}L{back} {below}"),
    };
    *svg += &format!("<path class=\"arrow {class}\" d=\"M{from} {arrow}H{to}{head}\"/>\n");
    let mut height = height + 12;
    for note in &entry.notes {
        let width = wide(note.chars().count());
        let (x, y) = (middle - width.min(END - LEFT) / 2, y + height + 1);
        *svg += &format!("<rect class=\"back\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{LINE}\"/>\n");
        text(svg, middle, y + 11, "class=\"title\" text-anchor=\"middle\"", note);
        height += LINE;
    }
    height + 8
}

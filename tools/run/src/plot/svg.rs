//! As a picture: panels below each other over one axis of time. It must also be readable at half its size, as wide as a phone.

use super::units::{self, Unit};
use super::{Cut, Kind, Plotted, Series};
use crate::picture::{self, text};

/// Pixels: the picture's width; where the axis of time begins and ends; the height of a line of text, of a panel, of a flow's
/// rate and of a strip.
const WIDTH: usize = 720;
const LEFT: usize = 92;
const RIGHT: usize = 704;
const LINE: usize = 26;
const PANEL: usize = 130;
const FLOW: usize = 48;
const STRIP: usize = 20;
/// Parts of the time.
const COLUMNS: usize = (RIGHT - LEFT) / 3;
/// Pixels that a character takes, about.
const CHARACTER: usize = 11;

/// What a picture of this kind has beside the style of all.
const STYLE: &str = "\
text{font:20px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}.head{font-weight:bold}.small{font-size:18px}
.curve{fill:none;stroke-width:2.5;stroke-linejoin:round}.grid{stroke:#d1d9e0;stroke-width:1.5;fill:none}
.level{stroke:#59636e;stroke-width:1.5;fill:none}.rate{fill:#0969da}.area{fill:#9a6700}.loss{fill:#cf222e}
@media (prefers-color-scheme:dark){.grid{stroke:#3d444d}.level{stroke:#9198a1}.rate{fill:#4493f8}.area{fill:#d29922}
.loss{fill:#f85149}}
";
/// Classes of the common style, and how a line is broken: who does not see the color sees that.
const COLORS: [&str; 6] = ["write", "notable", "read", "send", "connection", "trouble"];
const BROKEN: [&str; 4] = ["", "9 5", "3 4", "14 4 3 4"];

/// One line in a panel.
#[derive(Clone, Debug)]
pub struct Curve {
    /// What it is called below the panel.
    pub name: String,
    /// A value for each part of the time.
    pub values: Vec<f64>,
    /// Which color, and which way of being broken; both are counted from 0, which is not broken.
    pub look: (usize, usize),
}

/// Lines over time, on a scale from 0 on.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What it shows.
    pub title: String,
    /// How values are told.
    pub unit: fn(f64) -> Unit,
    /// The lines.
    pub curves: Vec<Curve>,
    /// Heights that have a name.
    pub levels: Vec<(String, f64)>,
}

impl Plotted {
    /// It as a picture in SVG, and what that shows in words.
    #[must_use]
    pub fn picture(&self) -> (String, String) {
        let drawn = self.drawn(COLUMNS);
        let words = describe(&drawn.rows, drawn.whole());
        let time = Time { length: drawn.length, cuts: drawn.cuts };
        let (queues, strips): (Vec<Series>, Vec<Series>) =
            drawn.rows.into_iter().partition(|row| row.kind == Kind::Queue);
        let curves =
            queues.into_iter().zip(0..).map(|(row, at)| Curve { name: row.name, values: row.values, look: (at, at) });
        let title = "What waits in the switch, by where it goes".to_owned();
        let waits = Panel { title, unit: units::bytes, curves: curves.collect(), levels: self.levels() };
        // Without a switch nothing waits.
        let panels = if waits.curves.is_empty() { Vec::new() } else { vec![waits] };
        (picture("A run over time", &words, &time, &panels, &strips), words)
    }
}

/// Draws panels over this many nanoseconds, whatever they show. A title, and all of it in words, are for readers who cannot see it.
#[must_use]
pub fn draw(title: &str, words: &str, length: u64, panels: &[Panel]) -> String {
    picture(title, words, &Time { length, cuts: Vec::new() }, panels, &[])
}

/// The axis of time: this many nanoseconds are drawn, and these are left out.
struct Time {
    length: u64,
    cuts: Vec<Cut>,
}

impl Time {
    /// The pixel of a drawn time.
    fn x(&self, at: f64) -> usize {
        LEFT + (at / self.length.max(1) as f64 * (RIGHT - LEFT) as f64) as usize
    }

    /// What the clock said at a drawn time.
    fn clock(&self, at: f64) -> f64 {
        let before = self.cuts.iter().filter(|cut| cut.begin as f64 <= at);
        at + before.map(|cut| cut.length as f64).sum::<f64>()
    }
}

/// All of it in words, for somebody who cannot see it.
fn describe(rows: &[Series], length: u64) -> String {
    let told: Vec<String> = rows.iter().map(Series::told).collect();
    let length = length as f64;
    format!("{} of a run, over which are drawn: {}", units::with(length, units::time(length)), told.join("; "))
}

fn picture(title: &str, words: &str, time: &Time, panels: &[Panel], strips: &[Series]) -> String {
    let (mut body, mut y) = (String::new(), 8);
    for panel in panels {
        y += lines(&mut body, panel, y) + 14;
    }
    let fastest =
        strips.iter().filter(|row| row.kind == Kind::Rate).flat_map(|row| &row.values).copied().fold(0.0, f64::max);
    for strip in strips {
        y += area(&mut body, strip, fastest, y);
    }
    let grid = axis(&mut body, time, y);
    let cuts = cuts(&mut body, time, y);
    let below = y;
    let foot = if time.cuts.is_empty() { 40 } else { 40 + LINE };
    picture::begin((WIDTH, y + foot), title, words, STYLE)
        + &grid.iter().map(|x| format!("<path class=\"grid\" d=\"M{x} 8V{below}\"/>\n")).collect::<String>()
        + &cuts
        + &body
        + "</svg>\n"
}

/// Draws a panel from `y` on, and gives its height.
fn lines(svg: &mut String, panel: &Panel, y: usize) -> usize {
    let levels = panel.levels.iter().map(|(_, value)| *value);
    let values = panel.curves.iter().flat_map(|curve| curve.values.iter().copied());
    let top = values.chain(levels).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let unit = (panel.unit)(top);
    let (above, below) = (y + LINE + 10, y + LINE + 10 + PANEL);
    let height = |value: f64| below as f64 - value / top * PANEL as f64;
    title(svg, y, &format!("{}, in {}", panel.title, unit.0), "class=\"head\"");
    *svg += &format!("<path class=\"grid\" d=\"M{LEFT} {below}H{RIGHT}\"/>\n");
    for curve in &panel.curves {
        let step = (RIGHT - LEFT) as f64 / curve.values.len().max(1) as f64;
        let places = curve
            .values
            .iter()
            .zip(0..)
            .map(|(value, at)| format!("{:.1},{:.1}", LEFT as f64 + (f64::from(at) + 0.5) * step, height(*value)));
        let places: Vec<String> = places.collect();
        *svg += &format!("<polyline class=\"curve {}\" points=\"{}\"/>\n", look(curve.look), places.join(" "));
    }
    for ((_, value), at) in panel.levels.iter().zip(0..) {
        *svg += &format!("<path class=\"{}\" d=\"M{LEFT} {:.1}H{RIGHT}\"/>\n", level(at), height(*value));
    }
    let end = "class=\"quiet\" text-anchor=\"end\"";
    text(svg, LEFT - 8, above + 14, end, &units::number(top, unit));
    text(svg, LEFT - 8, below, end, "0");
    let curves = panel.curves.iter().map(|curve| (curve.name.as_str(), format!("curve {}", look(curve.look))));
    let levels = panel.levels.iter().zip(0..).map(|((name, _), at)| (name.as_str(), level(at)));
    below + names(svg, curves.chain(levels), below) - y
}

/// What each line is called, with its class, below a panel; gives the height.
fn names<'a>(svg: &mut String, lines: impl Iterator<Item = (&'a str, String)>, below: usize) -> usize {
    const SAMPLE: usize = 40;
    let (mut x, mut y) = (LEFT, below + LINE);
    for (name, class) in lines {
        let width = SAMPLE + 8 + name.chars().count() * CHARACTER + 18;
        if x > LEFT && x + width > RIGHT + 18 {
            (x, y) = (LEFT, y + LINE);
        }
        ground(svg, (x, y - LINE + 8), "", SAMPLE + 8, "");
        *svg += &format!("<path class=\"{class}\" d=\"M{x} {}h{SAMPLE}\"/>\n", y - 6);
        ground(svg, (x + SAMPLE + 8, y - LINE + 8), name, name.chars().count() * CHARACTER, "class=\"small\"");
        x += width;
    }
    y + 8 - below
}

/// The class of a height that has a name, and how its line is broken.
fn level(at: usize) -> String {
    const BROKEN: [&str; 3] = ["2 5", "8 4 2 4", "14 6"];
    format!("level\" stroke-dasharray=\"{}", BROKEN[at % BROKEN.len()])
}

fn look((color, broken): (usize, usize)) -> String {
    let broken = BROKEN[broken % BROKEN.len()];
    format!("{}\" stroke-dasharray=\"{}", COLORS[color % COLORS.len()], if broken.is_empty() { "none" } else { broken })
}

/// Draws a strip from `y` on: its words, and bars as high as a rate beside the fastest one, as the share of the time, or as a number
/// beside the largest one. Gives its height.
fn area(svg: &mut String, row: &Series, fastest: f64, y: usize) -> usize {
    let most = row.values.iter().copied().fold(1.0, f64::max);
    let (top, class, high) = match row.kind {
        Kind::Rate | Kind::Queue => (fastest, "rate", FLOW),
        Kind::Paused => (1.0, "area", STRIP),
        Kind::Marked => (most, "area", STRIP),
        Kind::Lost => (most, "loss", STRIP),
    };
    let (below, step) = (y + LINE + high, (RIGHT - LEFT) as f64 / row.values.len().max(1) as f64);
    *svg += &format!("<path class=\"grid\" d=\"M{LEFT} {below}H{RIGHT}\"/>\n<path class=\"{class}\" d=\"");
    for (value, at) in row.values.iter().zip(0..).filter(|(value, _)| **value > 0.0) {
        let high = (value / top * high as f64).max(1.0);
        *svg += &format!("M{:.1} {below}v-{high:.1}h{step:.1}v{high:.1}", LEFT as f64 + f64::from(at) * step);
    }
    *svg += "\"/>\n";
    title(svg, y, &row.told(), "class=\"small\"");
    if row.kind == Kind::Rate {
        let unit = units::rate(top);
        text(svg, LEFT - 8, y + LINE - 8, "class=\"quiet small\" text-anchor=\"end\"", unit.0);
        text(svg, LEFT - 8, y + LINE + 16, "class=\"quiet small\" text-anchor=\"end\"", &units::number(top, unit));
    }
    LINE + high + 8
}

fn title(svg: &mut String, y: usize, words: &str, attributes: &str) {
    ground(svg, (LEFT, y), words, words.chars().count() * CHARACTER, attributes);
}

/// Words on a ground of their own, so wide: lines of the grid do not run through them.
fn ground(svg: &mut String, (x, y): (usize, usize), words: &str, width: usize, attributes: &str) {
    *svg += &format!("<rect class=\"back\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{}\"/>\n", LINE - 2);
    text(svg, x, y + LINE - 8, attributes, words);
}

/// Where time is left out: below the axis how much; gives two lines, which go through all panels and behind their words.
fn cuts(svg: &mut String, time: &Time, y: usize) -> String {
    let mut lines = String::new();
    for cut in &time.cuts {
        let (x, length) = (time.x(cut.begin as f64), cut.length as f64);
        lines += &format!("<path class=\"level\" d=\"M{} 8V{y}M{} 8V{y}\"/>\n", x - 3, x + 3);
        let words = format!("{} of rest", units::with(length, units::time(length)));
        text(svg, x, y + LINE + 22, "class=\"quiet small\" text-anchor=\"middle\"", &words);
    }
    lines
}

/// The axis of time at this height, with its numbers; gives where lines go up from it.
fn axis(svg: &mut String, time: &Time, y: usize) -> Vec<usize> {
    let (length, unit) = (time.length.max(1) as f64, units::time(time.clock(time.length as f64)));
    // 1, 2 or 5 times a power of ten: about five of them.
    let rough = length / 5.0;
    let ten = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|times| times * ten).find(|step| *step >= rough).unwrap_or(rough);
    let mut grid = Vec::new();
    for tick in 0..=(length / step) as usize {
        let at = tick as f64 * step;
        let x = time.x(at);
        // To a tenth of a step: behind a cut the numbers aren't round.
        let fine = 10f64.powf((step / unit.1).log10().floor() - 1.0);
        let number = ((time.clock(at) / unit.1 / fine).round() * fine * 1e6).round() / 1e6;
        let number = if tick == 0 { format!("0 {}", unit.0) } else { format!("{number}") };
        text(svg, x, y + 24, "class=\"quiet\" text-anchor=\"middle\"", &number);
        grid.push(x);
    }
    grid
}

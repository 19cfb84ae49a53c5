//! For a terminal: 80 columns, 14 lines at most, and no colors.

use super::{units, Kind, Plotted, Series};

/// Columns of the names, and of the time.
const NAME: usize = 16;
const COLUMNS: usize = 48;
/// Lines of the only queue. Several have one each.
const TALL: usize = 3;
/// So many of each kind at most, in lines.
const MOST: [(Kind, usize); 5] =
    [(Kind::Queue, TALL), (Kind::Rate, 4), (Kind::Paused, 3), (Kind::Marked, 1), (Kind::Lost, 1)];
/// Why `wire explain` has a smaller number: to an end it is one gap, however much is missing.
const GAPS: &str = "lost: each packet that was dropped; `wire explain` counts the gaps that the ends saw\n";
/// From an eighth of a line to all of it.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

impl Plotted {
    /// It as text, each line ended by a newline; nothing if there is nothing to draw.
    #[must_use]
    pub fn text(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let drawn = self.drawn(COLUMNS);
        let (rows, length, whole) = (&drawn.rows, drawn.length as f64, drawn.whole() as f64);
        let top =
            |kind| rows.iter().filter(|row| row.kind == kind).flat_map(|row| &row.values).copied().fold(0.0, f64::max);
        let (unit, fastest) = (units::time(whole), top(Kind::Rate));
        let column = length / COLUMNS as f64;
        let rests = match drawn.cuts.len() {
            0 => String::new(),
            _ => format!(
                " without {} in which nothing happened",
                units::with(whole - length, units::time(whole - length))
            ),
        };
        let mut text = format!(
            "over time: 0 to {}{rests}, {} in a column; rates up to {}\n",
            units::with(whole, unit),
            units::with(column, units::time(column)),
            units::with(fastest, units::rate(fastest))
        );
        for (kind, most) in MOST {
            let mut of_kind: Vec<&Series> = rows.iter().filter(|row| row.kind == kind).collect();
            // The largest ones, in the order of their names.
            while of_kind.len() > most {
                let least = (0..of_kind.len()).min_by(|a, b| of_kind[*a].sum.total_cmp(&of_kind[*b].sum));
                of_kind.remove(least.unwrap_or(0));
            }
            // All queues, and all rates, on the same scale.
            let top = if kind == Kind::Paused { 1.0 } else { top(kind) };
            let lines = if kind == Kind::Queue && of_kind.len() == 1 { TALL } else { 1 };
            of_kind.into_iter().for_each(|row| draw(&mut text, row, top, lines));
        }
        if rows.iter().any(|row| row.kind == Kind::Lost) {
            text += GAPS;
        }
        text
    }
}

/// A row in this many lines.
fn draw(text: &mut String, row: &Series, top: f64, lines: usize) {
    let (name, said) = (row.title(), row.said());
    for line in (0..lines).rev() {
        let (name, said) = if line + 1 == lines { (cut(&name), said.as_str()) } else { Default::default() };
        // A part may be several columns wide.
        let value = |column: usize| row.values[column * row.values.len() / COLUMNS];
        let bars: String = (0..COLUMNS).map(|column| block(value(column) / top, line, lines)).collect();
        *text += format!("{name:NAME$} {bars} {said}").trim_end();
        text.push('\n');
    }
}

/// What a bar that has this share of the height has in a line, counted from below.
fn block(share: f64, line: usize, lines: usize) -> char {
    let eighths = (share * (lines * BLOCKS.len()) as f64).round() as usize;
    // What is there is seen.
    let eighths = eighths.max(usize::from(share > 0.0));
    let here = eighths.saturating_sub(line * BLOCKS.len()).min(BLOCKS.len());
    here.checked_sub(1).map_or(' ', |at| BLOCKS[at])
}

fn cut(name: &str) -> String {
    match name.chars().count() > NAME {
        true => name.chars().take(NAME - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

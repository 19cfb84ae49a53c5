//! A recorded run, `captures/changes/NN-NAME.txt`, read back from its lanes; and as HTML for the book, where its lines are as
//! long as the page is wide: drawn with characters they are a hundred columns.

use super::changes;
use anyhow::{ensure, Result};
use run::files::read;

pub struct Recorded {
    /// The lines that name the lanes.
    head: Vec<String>,
    pub rows: Vec<DrawnRow>,
}

/// A packet, or a line of a log, which may take several lines of text.
pub struct DrawnRow {
    pub lines: Vec<String>,
    /// Whether others, which are left out, come behind it.
    gap: bool,
}

impl Recorded {
    pub fn load(lesson: &str, name: &str) -> Result<Self> {
        Self::at(&changes::recorded(lesson, name))
    }

    /// Of a change or of a lesson. The latter's packets also say which step of the story they are, which is left out.
    pub fn at(path: &str) -> Result<Self> {
        let (text, mut is_step) = (read(path)?, false);
        let lines = text.lines().filter(|line| {
            is_step = line.trim_start().starts_with("Step ") || is_step && !is_row(line);
            !is_step
        });
        let run = Self::parse(&lines.collect::<Vec<_>>().join("\n"));
        ensure!(!run.rows.is_empty(), "{path} has no packet and no line");
        Ok(run)
    }

    pub fn parse(text: &str) -> Self {
        let (mut head, mut rows) = (Vec::new(), Vec::<DrawnRow>::new());
        for line in text.lines().map(String::from) {
            match rows.last_mut() {
                _ if is_row(&line) => rows.push(DrawnRow { lines: vec![line], gap: false }),
                None => head.push(line),
                Some(row) if line.trim() == "…" => row.gap = true,
                Some(row) => row.lines.push(line),
            }
        }
        Self { head, rows }
    }

    pub fn shows(&self, words: &str) -> bool {
        self.rows.iter().any(|row| row.text().contains(words))
    }

    /// Some of the rows, as they are but for the advice of errors, with a `…` for those left out in between.
    pub fn text(&self, wanted: impl Fn(usize) -> bool) -> Vec<String> {
        let (mut lines, mut gap) = (self.head.clone(), false);
        let first = (0..self.rows.len()).find(|at| wanted(*at)).unwrap_or(self.rows.len());
        for (at, row) in self.rows.iter().enumerate().skip(first) {
            if wanted(at) {
                lines.extend(gap.then(|| "   …".to_owned()));
                lines.extend(row.without_advice());
            }
            gap = row.gap || !wanted(at);
        }
        lines
    }

    /// Some of the rows, without an empty line, which would end the HTML.
    pub fn html(&self, wanted: impl Fn(usize) -> bool) -> Vec<String> {
        let names = self.head.first().and_then(|line| line.split_once('│'));
        let mut lines = vec!["<div class=\"lanes\">".to_owned()];
        for (side, name) in names.iter().flat_map(|(left, right)| [("at-left", left), ("at-right", right)]) {
            let name = name.split_whitespace().filter(|word| !["#", "ms"].contains(word)).collect::<Vec<_>>().join(" ");
            lines.push(format!("<p class=\"{side}\"><b>{}</b></p>", escaped(&name)));
        }
        for row in self.rows.iter().enumerate().filter(|(at, _)| wanted(*at)).map(|(_, row)| row) {
            lines.push(row.html());
            lines.extend(row.gap.then(|| "<p class=\"both\">…</p>".to_owned()));
        }
        lines.push("</div>".into());
        lines
    }
}

/// A row begins with its number and its time.
fn is_row(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_number = words.next().is_some_and(|word| word.parse::<u64>().is_ok());
    is_number && words.next().is_some_and(|word| word.contains('.') && word.parse::<f64>().is_ok())
}

impl DrawnRow {
    pub fn is_packet(&self) -> bool {
        self.lines[0].contains("──") && self.lines[0].contains(['▶', '◀', '✕']) && !self.lines[0].contains('│')
    }

    /// Its lines, but for what an error advises behind "Next:", which is long and often the same.
    fn without_advice(&self) -> Vec<String> {
        let Some(at) = self.lines.iter().position(|line| line.contains("Next: ")) else { return self.lines.clone() };
        let (said, advice) = self.lines[at].split_once("Next: ").unwrap_or_default();
        // The client's lane ends at a bar, which stays where it is.
        let lane = advice.split_once('│').map(|(advice, _)| " ".repeat(advice.chars().count() + 5) + "│");
        [&self.lines[..at], &[format!("{said}…{}", lane.unwrap_or_default())]].concat()
    }

    /// What it says, in one line: each lane's words are put together again.
    pub fn text(&self) -> String {
        let lanes = |line: &str| match line.split_once('│') {
            Some((left, right)) => (left.to_owned(), right.to_owned()),
            None => (line.to_owned(), String::new()),
        };
        let (left, right): (Vec<String>, Vec<String>) = self.lines.iter().map(|line| lanes(line)).unzip();
        let all = left.join(" ") + " " + &right.join(" ");
        all.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Its number and time, and what it says, in its lane.
    fn html(&self) -> String {
        let text = self.text();
        let mut words = text.splitn(3, ' ');
        let [number, time, said] = [(); 3].map(|()| words.next().unwrap_or_default());
        let about = format!("<small>{number} · {time} ms</small>");
        if self.is_packet() {
            // The line is drawn as wide as there is room.
            let said = said.replace(['─', '▶', '◀'], " ").split_whitespace().collect::<Vec<_>>().join(" ");
            let way = if self.lines[0].contains('◀') || said.starts_with('✕') { "west" } else { "east" };
            return format!("<p class=\"wire {way}\">{about}<span>{}</span></p>", escaped(&said));
        }
        let bars = self.lines.iter().filter_map(|line| line.split_once('│'));
        let side = match bars.map(|(_, right)| right.trim().is_empty()).reduce(|all, left| all && left) {
            Some(true) => "at-left",
            Some(false) => "at-right",
            None => "both",
        };
        format!("<p class=\"{side}\">{about}{}</p>", escaped(said))
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str =
        "   #   ms  client   │ server\n────\n  7  1.0  INFO  <WC>:  │\n           status=X    │\n   …\n  \
                       9  2.0  ◀── NAK  psn +1 ──\n 10  2.1           │ the memory\n                  │   holds\n \
                       11  2.2  ─── SEND ──✕\n                lab: dropped\n 12  2.3  ✕── ACK ───\n 13  2.4  done\n";

    #[test]
    fn lanes_are_as_wide_as_the_page() {
        let html = Recorded::parse(RUN).html(|_| true);
        let rows = [
            "<div class=\"lanes\">",
            "<p class=\"at-left\"><b>client</b></p>",
            "<p class=\"at-right\"><b>server</b></p>",
            "<p class=\"at-left\"><small>7 · 1.0 ms</small>INFO &lt;WC&gt;: status=X</p>",
            "<p class=\"both\">…</p>",
            "<p class=\"wire west\"><small>9 · 2.0 ms</small><span>NAK psn +1</span></p>",
            "<p class=\"at-right\"><small>10 · 2.1 ms</small>the memory holds</p>",
            "<p class=\"wire east\"><small>11 · 2.2 ms</small><span>SEND ✕ lab: dropped</span></p>",
            "<p class=\"wire west\"><small>12 · 2.3 ms</small><span>✕ ACK</span></p>",
            "<p class=\"both\"><small>13 · 2.4 ms</small>done</p>",
            "</div>",
        ];
        assert_eq!(html, rows);
        let some = Recorded::parse(RUN).text(|at| [0, 1, 5].contains(&at));
        let expected =
            "   #   ms  client   │ server\n────\n  7  1.0  INFO  <WC>:  │\n           status=X    │\n   …\n  \
                        9  2.0  ◀── NAK  psn +1 ──\n   …\n 13  2.4  done";
        assert_eq!(some.join("\n"), expected, "as they are, with a mark where some are left out");
        assert_eq!(Recorded::parse(RUN).html(|at| at == 5).len(), 5, "some of the rows");
    }

    #[test]
    fn what_an_error_advises_is_left_out() {
        let left = "  7  1.0  ERR in vain. Next: Look │\n           at the other side │\n  8  1.1  done\n";
        let right = "  7  1.0                │ in vain. Next: Look\n                         │ at the other side\n";
        let text = |run: &str| Recorded::parse(run).text(|_| true).join("\n");
        assert_eq!(text(left), "  7  1.0  ERR in vain. …          │\n  8  1.1  done");
        assert_eq!(text(right), "  7  1.0                │ in vain. …");
    }
}

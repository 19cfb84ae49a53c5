//! Quotes: code and log lines that a page shows, compared with where they come from.

use super::page::{Mark, Page, Problem};
use super::sources::Sources;
use anyhow::{bail, ensure, Context, Result};
use std::ops::Range;
use wire::story::timeline::{squeeze, Entry, Lane};
use wire::story::Side;

/// A line that stands for lines left out.
const OMISSION: &str = "…";

/// Every quote of a page that is not in its source.
pub fn problems(page: &Page, sources: &Sources) -> Vec<Problem> {
    let check = |mark: &Mark| match mark.kind.as_str() {
        "code" => Some(code(page, mark, sources)),
        "log" => Some(log(page, mark, sources)),
        // These have their own checks.
        "generated" | "ladder" | "bytes" | "packets" | "states" | "fields" | "in" | "order" => None,
        other => Some(Err(anyhow::anyhow!("no mark is called `{other}`: CONTRIBUTING.md lists them"))),
    };
    let failed = |mark: &Mark| Some(page.problem(mark.line, format!("{:#}", check(mark)?.err()?)));
    page.marks().iter().filter_map(failed).collect()
}

fn block<'p>(page: &'p Page, mark: &Mark) -> Result<&'p [String]> {
    let range = page.block_after(mark.line).context("no fenced block follows this mark")?;
    ensure!(!range.is_empty(), "the fenced block is empty");
    Ok(&page.lines[range])
}

/// Whole lines, each run of them in one piece; the quote as a whole may be indented less than the source.
fn code(page: &Page, mark: &Mark, sources: &Sources) -> Result<()> {
    let [path] = mark.words.as_slice() else { bail!("write <!-- code: PATH -->") };
    let source = sources.text(path)?;
    let source: Vec<&str> = source.lines().collect();
    for run in block(page, mark)?.split(|line| line.trim() == OMISSION) {
        let run: Vec<&str> = run.iter().map(String::as_str).collect();
        let Some(first) = run.iter().find(|line| !line.trim().is_empty()) else { continue };
        let is_there = source.windows(run.len()).any(|lines| same(lines, &run));
        ensure!(is_there, "{path} has no such lines in one piece, from this one on: {first}");
    }
    Ok(())
}

fn same(source: &[&str], quote: &[&str]) -> bool {
    let indent = |lines: &[&str]| {
        let filled = lines.iter().find(|line| !line.trim().is_empty());
        filled.map_or(0, |line| line.len() - line.trim_start().len())
    };
    let Some(less) = indent(source).checked_sub(indent(quote)) else { return false };
    let shifted = |line: &str| match line.trim().is_empty() {
        true => Some(String::new()),
        false => line.strip_prefix(&" ".repeat(less)).map(|line| line.trim_end().to_string()),
    };
    source.iter().zip(quote).all(|(source, quote)| shifted(source).as_deref() == Some(quote.trim_end()))
}

/// Lines of one side's log, in the order in which they were printed.
fn log(page: &Page, mark: &Mark, sources: &Sources) -> Result<()> {
    let said = logged(mark, sources)?;
    let mut said = said.iter();
    for quote in quoted(block(page, mark)?) {
        let is_said = said.any(|entry| says(&entry.text, &squeeze(&quote.text)));
        let whose = mark.words.join(", the ");
        ensure!(is_said, "{whose}, does not say here: {} (`make docs` renews numbers)", quote.text);
    }
    Ok(())
}

/// A block of log lines with the numbers that they have now: keys and addresses differ whenever a capture is recorded
/// anew. Lines that differ in more than that stay as they are.
pub fn renewed_log(page: &Page, mark: &Mark, sources: &Sources) -> Result<(Range<usize>, Vec<String>)> {
    let range = page.block_after(mark.line).context("no fenced block follows this mark")?;
    let said = logged(mark, sources)?;
    let (mut next, mut lines) = (0, page.lines[range.clone()].to_vec());
    for quote in quoted(&page.lines[range.clone()]) {
        let wanted = squeeze(&quote.text);
        let place = |fits: &dyn Fn(&str) -> bool| said[next..].iter().position(|entry| fits(&entry.text));
        let exact = place(&|text| says(text, &wanted));
        let same_words = || place(&|text| says(&without_numbers(text), &without_numbers(&wanted)));
        let Some(at) = exact.or_else(same_words) else { continue };
        if exact.is_none() {
            renew_lines(&mut lines[quote.lines], &said[next + at].words);
        }
        next += at + 1;
    }
    Ok((range, lines))
}

/// What the side that a mark names has logged.
pub fn logged(mark: &Mark, sources: &Sources) -> Result<Vec<Entry>> {
    let [path, side] = mark.words.as_slice() else { bail!("write <!-- log: captures/NAME.txt SIDE -->") };
    let side = match side.as_str() {
        "client" => Side::Client,
        "server" => Side::Server,
        other => bail!("`{other}` is no side: client or server"),
    };
    let timeline = sources.timeline(path)?;
    let of_side = timeline.entries().iter().filter(|entry| entry.lane == Lane::Log(side));
    Ok(of_side.cloned().collect())
}

/// Whether a log line is the one quoted. What a program prints itself has no tag; a log line may be quoted without its own.
fn says(text: &str, quote: &str) -> bool {
    let quote = without_clock(quote);
    text == quote || text.split_once(']').is_some_and(|(_, told)| told == quote)
}

/// One quoted log line, and the lines of the block that it takes.
struct Quote {
    text: String,
    lines: Range<usize>,
}

/// The log lines of a block, those that are indented joined to the ones above, without omissions.
fn quoted(block: &[String]) -> Vec<Quote> {
    let mut quotes: Vec<Quote> = Vec::new();
    for (at, line) in block.iter().enumerate().filter(|(_, line)| !line.trim().is_empty() && line.trim() != OMISSION) {
        match quotes.last_mut() {
            Some(last) if line.starts_with(' ') && last.lines.end == at => {
                last.text = format!("{} {}", last.text, line.trim());
                last.lines.end = at + 1;
            }
            _ => quotes.push(Quote { text: line.clone(), lines: at..at + 1 }),
        }
    }
    quotes
}

/// Each word that has changed only in its numbers is replaced where it stands.
fn renew_lines(lines: &mut [String], words: &str) {
    let has_tag = lines.first().is_some_and(|line| line.starts_with('['));
    let words = words.split_once("] ").filter(|_| !has_tag).map_or(words, |(_, told)| told);
    let mut words = words.split_whitespace().peekable();
    for line in lines {
        let renewed: Vec<String> = line
            .split(' ')
            .map(|old| {
                let blurred = without_numbers(old);
                let fits = |word: &&str| !old.is_empty() && without_numbers(word) == blurred;
                words.next_if(|word| fits(word)).map_or_else(|| old.to_string(), String::from)
            })
            .collect();
        *line = renewed.join(" ");
    }
}

/// Text with one sign for each number that is drawn anew in each run: addresses and keys, which are hexadecimal, packet
/// sequence numbers, and the log's own numbers. A number that somebody chose stays: what a page says may hang on it.
fn without_numbers(text: &str) -> String {
    let mut blurred = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, number) = rest.split_at(start);
        let hex = number.strip_prefix("0x").map(|digits| digits.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
        let after = hex.unwrap_or_else(|| number.trim_start_matches(|c: char| c.is_ascii_digit()));
        let varies = hex.is_some() || before.ends_with("psn=") || before.ends_with("[#");
        blurred.push_str(before);
        blurred.push_str(if varies { "#" } else { &number[..number.len() - after.len()] });
        rest = after;
    }
    blurred + rest
}

/// A log line has the time of day only outside of the lab: `[12:34:56.789 #0001 main]`.
fn without_clock(line: &str) -> String {
    match line.strip_prefix('[').and_then(|line| line.split_once('#')) {
        Some((clock, rest)) if clock.chars().all(|c| c.is_ascii_digit() || ":.".contains(c)) => format!("[#{rest}"),
        _ => line.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sources::tests::repository;
    use super::*;

    fn check(text: &str) -> Vec<String> {
        let problems = problems(&Page::new("docs/p.md", text), &repository());
        problems.iter().map(Problem::to_string).collect()
    }

    #[test]
    fn code_is_quoted_verbatim() {
        let page = |code: &str| format!("<!-- code: clippy.toml -->\n```toml\n{code}\n```\n");
        assert_eq!(check(&page("allow-unwrap-in-tests = true")), [""; 0]);
        assert!(check(&page("allow-unwrap-in-tests = false"))[0].starts_with("docs/p.md:1: clippy.toml has no such"));
        assert!(check("<!-- code: clippy.toml -->\ntext\n")[0].contains("no fenced block"));
        assert!(check("<!-- code: no.rs -->\n```\nx\n```\n")[0].contains("cannot read no.rs"));
        assert!(check("<!-- cod: clippy.toml -->\n")[0].contains("no mark is called `cod`"));
    }

    #[test]
    fn a_run_of_code_is_in_one_piece_and_may_be_indented_less() {
        let source = ["fn a() {", "    b();", "", "    c();", "}"];
        assert!(same(&source[1..4], &["b();", "", "c();"]));
        assert!(!same(&source[1..4], &["b();", "", " c();"]));
        assert!(!same(&source[..1], &["  fn a() {"]));
        let page = |code: &str| format!("<!-- code: rustfmt.toml -->\n```\n{code}\n```\n");
        assert_eq!(check(&page("edition = \"2021\"\n…\nuse_field_init_shorthand = true")), [""; 0]);
        assert_eq!(check(&page("edition = \"2021\"\nuse_field_init_shorthand = true")).len(), 1);
    }

    #[test]
    fn log_lines_are_those_of_the_side_in_order() {
        let page = |lines: &str| format!("<!-- log: captures/01_cm_listen.txt server -->\n```\n{lines}\n```\n");
        let create = "[#0001 main] SLOW  rdma_create_event_channel";
        let bind = "[12:34:56.789 #0004 listen] SLOW  rdma_bind_addr\n    [::]:7471";
        assert_eq!(check(&page(&format!("{create}\n…\n{bind}"))), [""; 0]);
        assert_eq!(check(&page("SLOW  rdma_create_event_channel")), [""; 0]);
        assert!(check(&page(&format!("{bind}\n{create}")))[0].contains("does not say here: [#0001 main]"));
        assert_eq!(check(&page("SLOW  rdma_create_event")).len(), 1);
        assert_eq!(check(&page("SLOW  rdma_resolve_addr 10.47.91.1:7471 timeout=2000 ms")).len(), 1);
        assert!(check(&page("SLOW  rdma_bind_addr [::]:7472"))[0].contains("does not say here: SLOW  rdma_bind_addr"));
        assert!(check("<!-- log: captures/01_cm_listen.txt me -->\n```\nx\n```\n")[0].contains("is no side"));
    }

    #[test]
    fn numbers_that_vary_are_renewed_and_nothing_else() {
        let old = [
            "[#0901 main] SLOW  rdma_create_event_channel",
            "SLOW  rdma_resolve_addr 10.47.91.1:7471 timeout=2001 ms",
            "[#0903 resolve] SLOW  rdma_resolve_addr",
            "    10.47.91.1:7471 timeout=2000 ms",
        ];
        let text = format!("<!-- log: captures/02_resources.txt client -->\n```\n{}\n```\n", old.join("\n"));
        let page = Page::new("docs/p.md", &text);
        let (range, lines) = renewed_log(&page, &page.marks()[0], &repository()).unwrap();
        assert_eq!((range, lines[0].as_str()), (2..6, "[#0001 main] SLOW  rdma_create_event_channel"));
        assert_eq!(lines[1], old[1], "somebody chose the 2000");
        assert_eq!(lines[2..], ["[#0004 resolve] SLOW  rdma_resolve_addr", old[3]]);
    }

    #[test]
    fn only_numbers_that_vary_are_left_out() {
        let line = "[#0012 write] rkey=0x34d sq_psn=5980059 retry_cnt=7 len=60";
        assert_eq!(without_numbers(line), "[## write] rkey=# sq_psn=# retry_cnt=7 len=60");
    }
}

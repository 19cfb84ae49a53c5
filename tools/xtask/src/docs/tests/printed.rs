//! What commands print, kept in captures/printed/ for the pages to quote: would they print that today?

use super::super::page::Page;
use super::super::{marks, pages};
use super::repository;
use run::files;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The commands are the first lines of a file, each after a `$`.
#[test]
#[ignore = "takes long: make test-long"]
fn what_the_pages_quote_is_printed_again() {
    let pages = pages(repository()).unwrap();
    let mut wrong = Vec::new();
    // Folders in there aren't printed again: `mine/` needs a NIC that a learner has written, and `timing/` has times, which differ in every run.
    for path in files::files(Path::new(marks::PRINTED), Path::is_file).unwrap() {
        let (path, kept) = (path.display().to_string(), files::read(&path).unwrap());
        let commands: Vec<&str> = kept.lines().map_while(|line| line.strip_prefix("$ ")).collect();
        println!("{path}: {}", commands.join(" && "));
        // A busy machine may send a packet again; hardly three times.
        let (mut missing, mut tries) = (missing(&pages, &path, &printed(&commands)), 1);
        while !missing.is_empty() && tries < 3 {
            println!("{path}: once more, because of {}", missing.join("; "));
            missing = self::missing(&pages, &path, &printed(&commands));
            tries += 1;
        }
        wrong.extend(missing);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The commands, which pages quote as well, and what they print. The `make` in which this test may be running isn't theirs.
fn printed(commands: &[&str]) -> String {
    let joined = format!("{{ {}; }} 2>&1", commands.join(" && "));
    let mut shell = Command::new("bash");
    shell.args(["-c", &joined]).env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    let output = shell.output().unwrap();
    commands.join("\n") + "\n" + &String::from_utf8_lossy(&output.stdout)
}

/// The quotes of a file on all pages that an output doesn't have.
fn missing(pages: &[Page], path: &str, printed: &str) -> Vec<String> {
    let mut missing = Vec::new();
    for page in pages {
        let quotes = page.marks.iter().filter(|mark| mark.kind == "printed" && mark.words() == [path]);
        for quote in quotes.filter_map(|mark| page.block_after(mark.line)) {
            let line = strange(&page.lines[quote.clone()], printed);
            let what = |line| format!("{}: today's output has no such line here: {line}", page.place(quote.start));
            missing.extend(line.map(what));
        }
    }
    missing
}

/// The first line of a quote that isn't printed in its order. Two programs and the wire each have an order of their own, but
/// which of them is first when they act at the same time is chance. So if all together aren't in order, it's enough that each is.
fn strange(quote: &[String], printed: &str) -> Option<String> {
    marks::in_order(quote, printed).err()?;
    let printed: Vec<String> = printed.lines().map(str::to_owned).collect();
    let (quote, printed) = (lanes(quote), lanes(&printed));
    let of = |lane| printed.get(lane).map_or(String::new(), |lines| lines.join("\n"));
    quote.iter().find_map(|(lane, lines)| marks::in_order(lines, &of(lane)).err())
}

/// What each program says, which is left or right of a line or behind its node's name, and what goes across.
fn lanes(lines: &[String]) -> BTreeMap<&str, Vec<String>> {
    let mut lanes = BTreeMap::<&str, Vec<String>>::new();
    let mut add = |lane, text: &str| lanes.entry(lane).or_default().push(text.to_owned());
    for line in lines {
        if let Some((left, right)) = line.split_once('│') {
            add("left", left);
            add("right", right);
            continue;
        }
        let node = line.split(' ').next().filter(|word| ["client", "server"].iter().any(|node| word.starts_with(node)));
        add(node.unwrap_or_default(), line);
    }
    lanes
}

#[test]
fn only_what_two_programs_do_at_the_same_time_may_change_places() {
    let lines = |text: &str| text.lines().map(String::from).collect::<Vec<_>>();
    let quote = lines("─── REQ ──▶\n   │ killed\n◀── REJ ───\nend │\n");
    for (printed, is_right) in [
        ("1 ─── REQ ──▶\n2    │ killed\n3 ◀── REJ ───\n4 end │\n", true),
        ("1 ─── REQ ──▶\n2 ◀── REJ ───\n3 end │\n4    │ killed\n", true),
        ("1 ◀── REJ ───\n2    │ killed\n3 ─── REQ ──▶\n4 end │\n", false),
    ] {
        assert_eq!(strange(&quote, printed).is_none(), is_right, "{printed}");
    }
    let quote = lines("client  done\nserver  done\nserver  ended");
    assert_eq!(strange(&quote, "server  done\nserver  ended\nclient  done"), None);
    assert_eq!(strange(&quote, "client  done\nserver  ended\nserver  done"), Some("server  ended".into()));
}

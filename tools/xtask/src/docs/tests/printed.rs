//! What commands print, kept in captures/printed/ for the pages to quote: would they print that today?

use super::super::page::Page;
use super::super::{marks, pages};
use super::repository;
use run::files;
use std::path::Path;
use std::process::Command;

/// The commands are the first lines of a file, each after a `$`.
#[test]
#[ignore = "takes long: make test-long"]
fn what_the_pages_quote_is_printed_again() {
    let pages = pages(repository()).unwrap();
    let mut wrong = Vec::new();
    // What needs a NIC that a learner has written is in a folder there, and can't be had from a command alone. So is what has times in it,
    // which no run prints again.
    for path in files::files(Path::new(marks::PRINTED), Path::is_file).unwrap() {
        let (path, kept) = (path.display().to_string(), files::read(&path).unwrap());
        let commands: Vec<&str> = kept.lines().map_while(|line| line.strip_prefix("$ ")).collect();
        println!("{path}: {}", commands.join(" && "));
        // Where two things race, one of three runs has them in the page's order.
        let tries: Vec<Vec<String>> = (0..3).map(|_| missing(&pages, &path, &printed(&commands))).collect();
        wrong.extend(tries.into_iter().min_by_key(Vec::len).unwrap());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn printed(commands: &[&str]) -> String {
    let commands = format!("{{ {}; }} 2>&1", commands.join(" && "));
    let output = Command::new("bash").args(["-c", &commands]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The quotes of a file on all pages that an output doesn't have.
fn missing(pages: &[Page], path: &str, printed: &str) -> Vec<String> {
    let mut missing = Vec::new();
    for page in pages {
        let quotes = page.marks.iter().filter(|mark| mark.kind == "printed" && mark.words() == [path]);
        for quote in quotes.filter_map(|mark| page.block_after(mark.line)) {
            let line = marks::in_order(&page.lines[quote.clone()], printed).err();
            let what = |line| format!("{}: today's output has no such line here: {line}", page.place(quote.start));
            missing.extend(line.map(what));
        }
    }
    missing
}

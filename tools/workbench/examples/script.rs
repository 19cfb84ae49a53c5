//! Runs a script: `cargo run -p workbench --example script <SCRIPT >run.pcapng`. With the word `json` it prints what a page gets.

use std::io::{Read, Write};

fn main() -> std::io::Result<()> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let mut out = std::io::stdout().lock();
    if std::env::args().any(|word| word == "json") {
        return out.write_all(workbench::shown::shown(&text, None).as_bytes());
    }
    match workbench::shown::run(&text) {
        Ok((_, run)) => out.write_all(&run.record.file),
        Err(error) => Err(std::io::Error::other(format!("line {}: {}", error.line, error.says))),
    }
}

//! The ring of lesson 13 with 2 to 8 ranks, on the device in user space: how fast a vector is added up.

use crate::row::Row;
use crate::tools::{bin, Effort};
use anyhow::{Context, Result};
use run::files::output;
use std::process::Command;

/// Numbers of 4 bytes: 1 MiB.
const ELEMENTS: usize = 1 << 18;

pub fn figures(effort: Effort) -> Result<Vec<Row>> {
    let mut rates = vec![Vec::new(); 7];
    for _ in 0..effort.rounds {
        for (ranks, rates) in (2..).zip(&mut rates) {
            rates.push(rate(ranks, effort.count(ELEMENTS))?);
        }
    }
    let name = |at: usize| format!("{} ranks", at + 2);
    let beside = |at: usize| Row::beside(&name(at), "MB/s", &rates[at], &name(0), &rates[0]);
    Ok(std::iter::once(Row::new(&name(0), "MB/s", &rates[0])).chain((1..rates.len()).map(beside)).collect())
}

/// The vector's bytes by the time of rank 0, in MB/s.
fn rate(ranks: usize, elements: usize) -> Result<f64> {
    let mut device = Command::new(bin()?.join("device"));
    device.args(["run", "lesson-13", &format!("--clients={}", ranks - 1)]).env("RUST_LOG", "off");
    let said = output(device.arg(format!("--server-args=--elements {elements} -n {}", ranks - 1)))?;
    let millis = said.split("rank 0: took ").nth(1).and_then(|rest| rest.split(' ').next());
    let millis: f64 = millis.context("rank 0 does not say how long it took")?.parse()?;
    Ok(elements as f64 * 4.0 / 1000.0 / millis)
}

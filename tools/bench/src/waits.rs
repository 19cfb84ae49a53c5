//! How long a reader waits for a lesson that has run before: for all of `make lesson-04`, set-up and cargo included.

use crate::row::Row;
use crate::tools::Effort;
use anyhow::Result;
use run::files::{output, root};
use std::process::Command;
use std::time::Instant;

pub fn figures(effort: Effort) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for on in ["lab", "device"] {
        // The first one may compile something, or boot machines.
        wait(on)?;
        let waits = (0..effort.rounds).map(|_| wait(on)).collect::<Result<Vec<_>>>()?;
        rows.push(Row::new(&format!("make lesson-04 on={on}"), "s", &waits));
    }
    Ok(rows)
}

fn wait(on: &str) -> Result<f64> {
    let mut make = Command::new("make");
    // A make that started us leaves options for others to us.
    make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").current_dir(root()?);
    let begin = Instant::now();
    output(make.args(["lesson-04", &format!("on={on}")]))?;
    Ok(begin.elapsed().as_secs_f64())
}

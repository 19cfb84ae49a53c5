//! What a lesson costs to compile, beside the bindings alone.

use crate::figure::Figure;
use crate::tools::{bin, output, root, timed, Effort};
use anyhow::Result;
use std::collections::BTreeSet;
use std::process::Command;

pub fn figures(effort: Effort) -> Result<Vec<Figure>> {
    let crates = |package: &str| -> Result<f64> {
        let mut cargo = cargo();
        let told = output(cargo.args(["tree", "--prefix", "none", "--edges", "normal,build", "-p", package]))?;
        let names: BTreeSet<&str> = told.lines().filter_map(|line| line.strip_suffix(" (*)").or(Some(line))).collect();
        Ok(names.len() as f64)
    };
    let mut figures =
        vec![Figure::new("crates of a lesson, common and all that they use", "", vec![crates("lesson-04")?])
            .beside("rdma-sys alone", vec![crates("rdma-sys")?])];
    if !effort.smoke {
        let build = |package: &str| -> Result<f64> {
            let folder = bin()?.join("../bench/build");
            let _ = std::fs::remove_dir_all(&folder);
            let seconds = timed(cargo().args(["build", "-p", package]).arg("--target-dir").arg(&folder))?.0;
            std::fs::remove_dir_all(&folder)?;
            Ok(seconds)
        };
        let ours = vec![build("lesson-04")?];
        figures.push(
            Figure::new("a clean build of lesson 04", "s", ours).beside("rdma-sys alone", vec![build("rdma-sys")?]),
        );
    }
    Ok(figures)
}

fn cargo() -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root());
    cargo
}

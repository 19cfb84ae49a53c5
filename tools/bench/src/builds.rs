//! What a lesson costs to compile, beside the bindings alone.

use crate::figure::Figure;
use crate::tools::{bin, output, root, timed, Effort};
use anyhow::Result;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

pub fn figures(effort: Effort) -> Result<Vec<Figure>> {
    let crates = |package: &str| -> Result<f64> {
        let mut cargo = cargo()?;
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
            let seconds = timed(cargo()?.args(["build", "-p", package]).arg("--target-dir").arg(&folder))?.0;
            std::fs::remove_dir_all(&folder)?;
            Ok(seconds)
        };
        let ours = vec![build("lesson-04")?];
        figures.push(
            Figure::new("a clean build of lesson 04", "s", ours).beside("rdma-sys alone", vec![build("rdma-sys")?]),
        );
    }
    let pages = pages(&bin()?.join("../site"));
    if pages.is_empty() {
        eprintln!("bench: no pages in target/site: make site");
    } else {
        figures.push(Figure::new("the book's pages: HTML of each", "KB", pages));
    }
    Ok(figures)
}

/// KB of each page of the book.
fn pages(folder: &Path) -> Vec<f64> {
    let files = std::fs::read_dir(folder.join("docs")).into_iter().flatten().flatten();
    let pages = files.filter(|file| file.path().extension().is_some_and(|extension| extension == "html"));
    pages.filter_map(|file| Some(file.metadata().ok()?.len() as f64 / 1e3)).collect()
}

fn cargo() -> Result<Command> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root()?);
    Ok(cargo)
}

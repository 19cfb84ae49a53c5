//! The references in C and in Python with edits: other programs that a judge must tell right from wrong.
//!
//! Such an edit names the reference's file, as it is in the folder of the lessons: `--- in_c/rdma.c`.

use crate::change::Change;
use crate::edit::Edit;
use crate::project::Project;
use anyhow::{bail, Context, Result};
use run::files::{name, output, read, write};
use std::path::PathBuf;
use std::process::Command;

/// Where they are built, below cargo's folder.
const FOLDER: &str = "course/edited";
/// How the names of the references' files begin.
const FOLDERS: [&str; 2] = ["in_c/", "in_python/"];
/// What a reference in Python imports.
const MORE: &str = "in_python/more.py";

/// The file of a reference that all these edits are about, if they are about one.
pub fn file(edits: &[Edit]) -> Option<&str> {
    let file = edits.first().map(|edit| edit.file.as_str())?;
    FOLDERS.iter().any(|folder| file.starts_with(folder)).then_some(file)
}

/// Builds the reference of a change with its edits; the command that runs it.
///
/// # Errors
/// An edit doesn't fit, or what the compiler says.
pub fn build(project: &Project, change: &Change) -> Result<String> {
    let file = file(&change.edits).with_context(|| format!("{} doesn't edit a reference", change.name))?;
    let (lessons, folder) = (project.root.join("lessons"), project.target.join(FOLDER).join(change.name.to_string()));
    let source = folder.join(name(&PathBuf::from(file)));
    write(&source, change.apply(file, &read(lessons.join(file))?)?)?;
    match source.extension().and_then(|ending| ending.to_str()) {
        Some("c") => {
            let program = source.with_extension("");
            let mut make = Command::new("make");
            // A program that's wrong may well have something left over that the compiler warns of.
            make.args(["-s", "-B", "CFLAGS=-O2 -g -w", "-f"]).arg(lessons.join("in_c/Makefile")).arg(name(&program));
            output(make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").current_dir(&folder))?;
            Ok(format!("'{}'", program.display()))
        }
        Some("py") => {
            write(folder.join(name(&PathBuf::from(MORE))), read(lessons.join(MORE))?)?;
            Ok(format!("python3 -u '{}'", source.display()))
        }
        _ => bail!("{file} is in a language that we don't know"),
    }
}

//! Builds the learner's NIC with what is put around it: its judge, or the device on which lessons run. All goes into the one folder
//! where the course's own programs are, so what they share is compiled once; each program has a name of its own.

use crate::copy::wait_for_compiler;
use crate::nic::copy::MineNic;
use crate::project::Project;
use anyhow::{Context, Result};
use run::files::name;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What is built: a program, or what the compiler complains about.
pub type Built = Result<PathBuf, String>;

impl MineNic {
    /// The judge of the holes. It needs cargo, and no more.
    pub fn build_judge(&self, project: &Project, color: bool) -> Result<Built> {
        let program = format!("judge-{}", name(&self.0.folder));
        self.build(project, color, &["-p", "nic", "--example", &program], &format!("examples/{program}"))
    }

    /// The device around it, beside the lessons that run on it.
    pub fn build_device(&self, project: &Project, color: bool) -> Result<Built> {
        let program = format!("device-{}", name(&self.0.folder));
        self.build(project, color, &["-p", "device", "--bin", &program], &program)
    }

    fn build(&self, project: &Project, color: bool, what: &[&str], program: &str) -> Result<Built> {
        let mut cargo = Command::new("cargo");
        cargo.args(["build", "-q", "--color", if color { "always" } else { "never" }]).args(what);
        cargo.env("CARGO_TARGET_DIR", &project.target).current_dir(&self.0.folder).stdin(Stdio::null());
        // Of a make that called us these would speak to cargo's own children.
        cargo.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
        let _waiting = wait_for_compiler();
        let output = cargo.output().context("cannot start cargo")?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(if output.status.success() { Ok(project.target.join("debug").join(program)) } else { Err(said) })
    }
}

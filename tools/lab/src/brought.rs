//! What a run brings into its machines besides its programs.

use anyhow::{ensure, Context, Result};
use std::env;
use std::path::PathBuf;

/// A file or folder of this host that comes along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brought {
    /// Where it is on this host.
    pub source: PathBuf,
    /// Where it goes in the machine.
    pub target: PathBuf,
}

impl Brought {
    /// `PATH` goes where it is on this host, `PATH:TARGET` elsewhere.
    pub fn parse(text: &str) -> Result<Self> {
        let (source, target) = text.split_once(':').map_or((text, None), |(source, target)| (source, Some(target)));
        let source = env::current_dir().context("the current folder is gone")?.join(source);
        ensure!(source.exists(), "cannot bring {}: there is no such file or folder", source.display());
        let target = target.map_or_else(|| source.clone(), PathBuf::from);
        ensure!(target.is_absolute(), "cannot bring a file to `{}`: the target begins with /", target.display());
        Ok(Self { source, target })
    }
}

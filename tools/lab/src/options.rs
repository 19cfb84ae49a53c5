//! What a run may have besides its commands. It's the same on the command line and in the library.

use crate::driver::Driver;
use crate::fault::{self, Trap};
use anyhow::{ensure, Context, Result};
use clap::Args;
use run::rules::GRAMMAR;
use run::switch;
use std::env;
use std::num::ParseIntError;
use std::path::PathBuf;
use std::time::Duration;

/// MiB of memory that a machine has unless the run says otherwise.
const MEMORY: u32 = 256;
/// Linux and the lessons need at least this much.
const LEAST_MEMORY: u32 = 192;

/// Options of a run.
#[derive(Debug, Clone, Default, Args)]
pub struct Options {
    /// Bring a file or folder of this host into each machine, to the same path or to TARGET
    #[arg(long, value_name = "PATH[:TARGET]", value_parser = Brought::parse)]
    pub bring: Vec<Brought>,
    /// Set an environment variable for the programs
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub env: Vec<(String, String)>,
    /// Memory of each machine [default: 256]
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u32).range(i64::from(LEAST_MEMORY)..))]
    pub memory: Option<u32>,
    /// Boot this kernel: its Debian or Ubuntu packages, or a vmlinuz with --modules
    #[arg(long, value_name = "FILE")]
    pub kernel: Vec<PathBuf>,
    /// The folder of the vmlinuz's modules, such as /lib/modules/6.1.0
    #[arg(long, value_name = "FOLDER", requires = "kernel")]
    pub modules: Option<PathBuf>,
    /// The driver of the machines' RDMA device: rxe is SoftRoCE; siw is SoftiWARP, for which `tools/lab/setup.sh siw` comes first
    #[arg(
        long,
        value_name = "DRIVER",
        value_enum,
        default_value_t,
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub driver: Driver,
    /// Start the clients when this succeeds in the server's machine, instead of when something listens there
    #[arg(long, value_name = "COMMAND")]
    pub ready: Option<String>,
    /// Copy a file or folder back after the run, from the machines that have it, into the results' out/ or to HERE
    #[arg(long, value_name = "[NODE:]PATH[:HERE]", value_parser = Fetched::parse)]
    pub out: Vec<Fetched>,
    /// End programs that still run after this many seconds [default: 120; a shell: a day]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub deadline: Option<Duration>,
    /// The folder for the results, in target/lab/runs
    #[arg(long)]
    pub name: Option<String>,
    /// Run this in each machine before the programs start and after they have ended; --json has what it prints
    #[arg(long, value_name = "COMMAND", hide = true)]
    pub inspect: Option<String>,
    /// At the end print where the time went
    #[arg(long)]
    pub timing: bool,
    /// Only print how it went, as JSON
    #[arg(long)]
    pub json: bool,
    /// Act on packets, for example: drop 1st "RC Acknowledge" from server (--help has more)
    #[arg(long, value_name = "RULES", default_value = "", hide_default_value = true)]
    #[arg(long_help = format!("Act on packets, for example: drop 1st \"RC Acknowledge\" from server\n{GRAMMAR}\nOr put a switch in the wire, without pfc and dcqcn:\n{}", switch::GRAMMAR))]
    pub wire: String,
    /// Do something to a node at a moment, for example: kill server when rdma_accept (--help has more)
    #[arg(long = "fault", value_name = "FAULT", value_parser = Trap::parse, long_help = fault::HELP)]
    pub faults: Vec<Trap>,
}

impl Options {
    pub fn memory(&self) -> u32 {
        self.memory.unwrap_or(MEMORY)
    }
}

/// A file or folder of this host that the machines get.
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
        ensure!(target.is_absolute(), "cannot bring a file to `{}`. Begin the target with /", target.display());
        Ok(Self { source, target })
    }
}

/// A file or folder of a machine that is copied back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The machine, if it is not all.
    pub node: Option<String>,
    /// Where it is there.
    pub path: String,
    /// Where it goes on this host.
    pub here: Option<PathBuf>,
}

impl Fetched {
    /// Reads `NODE:PATH:HERE`; a path in a machine begins with a slash, so it is known from a node's name.
    pub fn parse(text: &str) -> Result<Self> {
        let (node, rest) = match text.split_once(':') {
            Some((node, rest)) if !text.starts_with('/') => (Some(node.to_owned()), rest),
            _ => (None, text),
        };
        let (path, here) = rest.split_once(':').map_or((rest, None), |(path, here)| (path, Some(here.into())));
        let is_path = path.len() > 1 && path.starts_with('/');
        ensure!(is_path, "`{text}` isn't a file of a machine. Write an absolute path, for example /tmp/result");
        Ok(Self { node, path: path.trim_end_matches('/').to_owned(), here })
    }
}

fn variable(text: &str) -> Result<(String, String)> {
    let (name, value) = text.split_once('=').context("a variable is written NAME=VALUE, for example UCX_TLS=rc")?;
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let begins_well = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    ensure!(
        is_name && begins_well,
        "`{name}` cannot be the name of a variable. Use letters, digits and _, and don't begin with a digit"
    );
    Ok((name.to_owned(), value.to_owned()))
}

fn seconds(text: &str) -> Result<Duration, ParseIntError> {
    text.parse().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_fetched_has_a_path_and_a_variable_has_a_name() {
        let parts = |text: &str| Fetched::parse(text).ok().map(|fetched| (fetched.node, fetched.path, fetched.here));
        let node = Some("w-1".to_owned());
        assert_eq!(parts("w-1:/tmp/x/:../y"), Some((node, "/tmp/x".to_owned(), Some("../y".into()))));
        assert_eq!(parts("/tmp/x:y:z"), Some((None, "/tmp/x".to_owned(), Some("y:z".into()))));
        for wrong in ["", "x", "/", "client:", "client:x", ":"] {
            assert_eq!(parts(wrong), None, "{wrong}");
        }
        assert_eq!(variable("A_1=b=c").unwrap(), ("A_1".to_owned(), "b=c".to_owned()));
        for wrong in ["", "A", "=x", "1A=x", "A B=x", "A;x=1"] {
            assert!(variable(wrong).is_err(), "{wrong}");
        }
    }
}

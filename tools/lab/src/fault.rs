//! Faults: what we do to a node on purpose while the programs run, and what sets it off.

use anyhow::{bail, ensure, Context, Result};

/// What `--help` says.
pub const HELP: &str = "\
Do something to a node at a moment: kill NODE, power-off NODE or on NODE COMMAND, then \"when\" and WORDS.
It happens once, as soon as a log line of any node contains WORDS, or a passing packet does, described like
\"client sends RC Send Only\". Examples:
  kill server when SLOW  rdma_accept
  power-off client when server sends ConnectReply
  on server rdma link delete rxe0 when wr_id=1
  on client ip link set eth0 down; sleep 1; ip link set eth0 up when wr_id=2";

/// Something done on purpose while the programs run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The program gets SIGKILL.
    Kill,
    /// The machine loses its power.
    PowerOff,
    /// A command is started next to the program.
    Command(String),
}

/// A fault that waits for its moment.
#[derive(Debug, Clone)]
pub struct Trap {
    pub fault: Fault,
    /// The node that suffers it.
    pub node: String,
    /// What sets it off: a part of a log line of any node, or `NODE sends PACKET`.
    pub when: String,
}

impl Trap {
    /// Reads `kill server when WORDS` and the like.
    ///
    /// # Errors
    /// It is none of these; the message says what is.
    pub fn parse(text: &str) -> Result<Self> {
        let (what, when) = text
            .split_once(" when ")
            .context("a fault needs a moment, for example: kill server when SLOW  rdma_accept")?;
        ensure!(!when.is_empty(), "after `when` there must be a part of a log line, or of `client sends RC Send Only`");
        let (act, rest) = what.trim().split_once(' ').unwrap_or((what, ""));
        let (node, command) = rest.trim().split_once(' ').unwrap_or((rest.trim(), ""));
        let fault = match (act, command.trim()) {
            ("kill", "") => Fault::Kill,
            ("power-off", "") => Fault::PowerOff,
            ("on", command) if !command.is_empty() => Fault::Command(command.to_owned()),
            _ => bail!("there is no fault `{what}`. Write kill NODE, power-off NODE or on NODE COMMAND"),
        };
        Ok(Self { fault, node: node.to_owned(), when: when.to_owned() })
    }

    /// The command that its node must have the programs for.
    pub fn command(&self) -> Option<&str> {
        if let Fault::Command(command) = &self.fault {
            Some(command)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_has_a_node_and_a_moment() {
        let trap = Trap::parse("on client ip link set eth0 down; sleep 1 when x when y").unwrap();
        let command = Fault::Command("ip link set eth0 down; sleep 1".to_owned());
        assert_eq!((trap.fault, trap.node.as_str(), trap.when.as_str()), (command, "client", "x when y"));
        for wrong in ["kill server", "kill server when ", "kill server now when x", "on server when x", "stop a when x"]
        {
            assert!(Trap::parse(wrong).is_err(), "{wrong}");
        }
    }
}

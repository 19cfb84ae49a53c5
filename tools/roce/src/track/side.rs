//! Client and server.

use std::fmt;

/// One of the two ends of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Side {
    /// The one that asks for the connection.
    #[default]
    Client,
    /// The one that listens.
    Server,
}

impl Side {
    pub const BOTH: [Side; 2] = [Side::Client, Side::Server];

    pub fn name(self) -> &'static str {
        match self {
            Side::Client => "client",
            Side::Server => "server",
        }
    }

    /// Whether a node of a run is at this end: `client`, or, where there are several, `client-1` and so on.
    pub fn is_at(self, node: &str) -> bool {
        node.strip_prefix(self.name()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }

    /// The one that this one talks to.
    pub fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

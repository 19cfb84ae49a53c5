//! What the two ends of a connection are called.

use roce::track::{Connection as Ends, Roles, Side};
use std::net::IpAddr;
use std::ops::Index;
use std::rc::Rc;

/// "the client" and "the server", where the capture tells who is which; else their addresses.
#[derive(Clone, Debug)]
pub(super) struct Names(Rc<[String; 2]>);

impl Names {
    /// Where nobody is known to be the client.
    pub(super) fn addresses(ips: [IpAddr; 2]) -> Names {
        Names(Rc::new(ips.map(|ip| ip.to_string())))
    }

    pub(super) fn of(ends: &Ends) -> Names {
        let [first, other] = ends.ips;
        match ends.roles {
            Roles::Guessed if first == other => {
                Names(Rc::new(["the first sender", "the other side"].map(str::to_owned)))
            }
            Roles::Guessed => Names::addresses(ends.ips),
            _ => Names::default(),
        }
    }

    /// How it's known who is which, for the heading.
    pub(super) fn why(ends: &Ends) -> &'static str {
        match ends.roles {
            Roles::Asked | Roles::Named => "",
            Roles::Opened => "; the client is the one that opened their TCP connection",
            Roles::Ports => {
                "; the client is the one with the higher port in their TCP connection, which began before the capture"
            }
            Roles::Guessed => "; nothing in the capture says who is the client",
        }
    }
}

impl Default for Names {
    fn default() -> Names {
        Names(Rc::new(Side::BOTH.map(|side| format!("the {side}"))))
    }
}

impl Index<Side> for Names {
    type Output = str;

    fn index(&self, side: Side) -> &str {
        &self.0[side as usize]
    }
}

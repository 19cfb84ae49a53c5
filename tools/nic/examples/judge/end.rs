//! A queue pair of the learner's NIC with its program and its memory, as the judge looks at one.

use crate::came;
use nic::memory::Access;
use nic::qp::{Attributes, Limits, State};
use pair::{End, Setup};
use roce::opcode::Service;
use std::time::Duration;

/// The size of its memory.
pub const SIZE: usize = 1 << 17;
/// All that a peer may do.
pub const ALL: Access = Access(15);
/// The code of the time-out for answers: 4.096 µs × 2^14, which is 67 ms.
pub const TIMEOUT: u8 = 14;
/// That time.
pub const TIME: Duration = Duration::from_nanos(4096 << TIMEOUT);
pub const NUMBER: u32 = 17;

/// In RTS, of a reliable connection; the peer may do anything to its memory.
pub fn in_rts(attributes: Attributes) -> End {
    of(Service::Rc, attributes)
}

/// The same of another service.
pub fn of(service: Service, attributes: Attributes) -> End {
    at(State::Rts, service, attributes, false)
}

/// In RTR: it can receive, and not send. Perhaps with a shared receive queue, which is of another protection domain.
pub fn ready(service: Service, attributes: Attributes, uses_shared: bool) -> End {
    at(State::Rtr, service, attributes, uses_shared)
}

fn at(state: State, service: Service, attributes: Attributes, uses_shared: bool) -> End {
    let limits = Limits { send: 64, receive: 64, send_sge: 1, receive_sge: 4, inline: 0 };
    let setup = Setup { service, number: NUMBER, peer: NUMBER, size: SIZE, access: ALL, limits, uses_shared };
    End { given: |what| came::now(what()), ..End::at(state, setup, &attributes) }
}

/// A list in words.
pub fn listed(items: &[String]) -> String {
    if items.is_empty() {
        "nothing".to_owned()
    } else {
        items.join("; ")
    }
}

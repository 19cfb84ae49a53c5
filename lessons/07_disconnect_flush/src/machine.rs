//! The state machine, apart from everything that it drives: a pure function, so that it can be tested in every state.
//!
//! ```text
//! what we sent:      SS_INIT ──▶ SS_MR_SENT ──▶ SS_RDMA_SENT ──▶ SS_DONE_SENT
//! what we received:  RS_INIT ──▶ RS_MR_RECV ──▶ RS_DONE_RECV
//! ```
//!
//! Each arrow is one completion. The WRITE or READ starts when our MR message is sent *and* the peer's has come; the
//! exchange is over when our DONE is sent *and* the peer's has come. The two rows are independent otherwise: completions
//! come in any order, and the machine does not care.

use std::fmt;

/// Who begins. The client sends its MR message at once, and the server answers with its own. Without this, a client that hears
/// from the server before it sees its own SEND complete would take itself for a server, and send its MR twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Client,
    Server,
}

/// How far our own messages have got. The names are those of a C program that many people learn from, `rdma-common.c` in
/// github.com/tarickb/the-geek-in-the-corner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
#[allow(non_camel_case_types)]
pub enum SendState {
    SS_INIT,
    SS_MR_SENT,
    SS_RDMA_SENT,
    SS_DONE_SENT,
}

/// How far the peer's have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
#[allow(non_camel_case_types)]
pub enum RecvState {
    RS_INIT,
    RS_MR_RECV,
    RS_DONE_RECV,
}

use RecvState::{RS_DONE_RECV, RS_INIT, RS_MR_RECV};
use SendState::{SS_DONE_SENT, SS_INIT, SS_MR_SENT, SS_RDMA_SENT};

/// One side's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    pub send: SendState,
    pub recv: RecvState,
}

/// What a completion means to the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A SEND is complete. The state knows whether it was the MR or the DONE.
    SendCompleted,
    /// The WRITE or READ is complete.
    RdmaCompleted,
    /// The peer's MR message came.
    MrReceived,
    /// The peer's DONE message came.
    DoneReceived,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    SendMr,
    PostRdma,
    SendDone,
}

impl State {
    pub const START: Self = Self { send: SS_INIT, recv: RS_INIT };

    /// Both DONEs have passed, so the buffers are ours again.
    pub fn is_done(self) -> bool {
        self == Self { send: SS_DONE_SENT, recv: RS_DONE_RECV }
    }

    /// We have the peer's DONE, and have sent ours. A peer that keeps to the rules hangs up only when it has ours, so if it does
    /// so now, only the ACK was lost.
    pub fn lacks_only_an_ack(self) -> bool {
        self == Self { send: SS_RDMA_SENT, recv: RS_DONE_RECV }
    }

    /// The next state and what to do there, or None if the event can't come in this state.
    pub fn next(self, role: Role, event: Event) -> Option<(Self, Option<Action>)> {
        let State { send, recv } = self;
        let (next, action) = match (event, send, recv) {
            (Event::SendCompleted, SS_INIT, _) => (State { send: SS_MR_SENT, ..self }, None),
            (Event::RdmaCompleted, SS_MR_SENT, RS_MR_RECV | RS_DONE_RECV) => {
                (State { send: SS_RDMA_SENT, ..self }, Some(Action::SendDone))
            }
            (Event::SendCompleted, SS_RDMA_SENT, RS_MR_RECV | RS_DONE_RECV) => {
                (State { send: SS_DONE_SENT, ..self }, None)
            }
            (Event::MrReceived, SS_INIT | SS_MR_SENT, RS_INIT) => {
                let answer = (role == Role::Server).then_some(Action::SendMr);
                (State { recv: RS_MR_RECV, ..self }, answer)
            }
            (Event::DoneReceived, _, RS_MR_RECV) => (State { recv: RS_DONE_RECV, ..self }, None),
            _ => return None,
        };
        // Now the peer knows our memory and we know the peer's, so the operation starts. It takes no other action's place: a
        // server that must answer with SendMr hasn't sent its own MR message yet.
        let starts = next.knows_both() && !self.knows_both();
        Some((next, if starts { Some(Action::PostRdma) } else { action }))
    }

    fn knows_both(self) -> bool {
        self.send >= SS_MR_SENT && self.recv >= RS_MR_RECV
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:?} {:?}", self.send, self.recv)
    }
}

#[cfg(test)]
#[path = "../checks/machine.rs"]
mod tests;

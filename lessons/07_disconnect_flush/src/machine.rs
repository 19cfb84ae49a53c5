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

/// Who begins. The client sends its MR message at once; the server answers it with its own. Without this, a client that
/// hears from the server before it sees its own SEND complete would take itself for a server, and send its MR twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Client,
    Server,
}

/// How far our own messages have got. The names are those of the C programs that this machine comes from.
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
    /// A SEND is complete: whether the MR or the DONE, the state knows.
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

    /// Both DONEs have passed: the buffers are ours again.
    pub fn is_done(self) -> bool {
        self == Self { send: SS_DONE_SENT, recv: RS_DONE_RECV }
    }

    /// The next state and what to do there; None if the event cannot come in this state.
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
        // The peer knows our memory and we know the peer's: whichever came second starts the operation.
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
mod tests {
    use super::{Action::*, Event::*, Role::*, *};

    const SENDS: [SendState; 4] = [SS_INIT, SS_MR_SENT, SS_RDMA_SENT, SS_DONE_SENT];
    const RECVS: [RecvState; 3] = [RS_INIT, RS_MR_RECV, RS_DONE_RECV];
    const EVENTS: [Event; 4] = [SendCompleted, RdmaCompleted, MrReceived, DoneReceived];

    /// Every pair that is allowed, written out; all others must be refused.
    fn expected(role: Role, send: SendState, recv: RecvState, event: Event) -> Option<(State, Option<Action>)> {
        let to = |send, recv, action| Some((State { send, recv }, action));
        match (role, send, recv, event) {
            (_, SS_INIT, RS_INIT, SendCompleted) => to(SS_MR_SENT, RS_INIT, None),
            (_, SS_INIT, RS_MR_RECV, SendCompleted) => to(SS_MR_SENT, RS_MR_RECV, Some(PostRdma)),
            (_, SS_INIT, RS_DONE_RECV, SendCompleted) => to(SS_MR_SENT, RS_DONE_RECV, Some(PostRdma)),
            (_, SS_MR_SENT, RS_MR_RECV, RdmaCompleted) => to(SS_RDMA_SENT, RS_MR_RECV, Some(SendDone)),
            (_, SS_MR_SENT, RS_DONE_RECV, RdmaCompleted) => to(SS_RDMA_SENT, RS_DONE_RECV, Some(SendDone)),
            (_, SS_RDMA_SENT, RS_MR_RECV, SendCompleted) => to(SS_DONE_SENT, RS_MR_RECV, None),
            (_, SS_RDMA_SENT, RS_DONE_RECV, SendCompleted) => to(SS_DONE_SENT, RS_DONE_RECV, None),
            (Client, SS_INIT, RS_INIT, MrReceived) => to(SS_INIT, RS_MR_RECV, None),
            (Server, SS_INIT, RS_INIT, MrReceived) => to(SS_INIT, RS_MR_RECV, Some(SendMr)),
            (_, SS_MR_SENT, RS_INIT, MrReceived) => to(SS_MR_SENT, RS_MR_RECV, Some(PostRdma)),
            (_, _, RS_MR_RECV, DoneReceived) => to(send, RS_DONE_RECV, None),
            _ => None,
        }
    }

    #[test]
    fn every_state_and_event() {
        for role in [Client, Server] {
            for send in SENDS {
                for recv in RECVS {
                    for event in EVENTS {
                        let got = State { send, recv }.next(role, event);
                        assert_eq!(got, expected(role, send, recv, event), "{role:?} {send:?} {recv:?} {event:?}");
                    }
                }
            }
        }
    }

    /// One side and what is on its way to it. Requests of one side complete in order, and so do the peer's messages.
    struct Side {
        role: Role,
        state: State,
        own: Vec<Event>,
        incoming: Vec<Event>,
        posted: Vec<Action>,
    }

    impl Side {
        fn new(role: Role) -> Self {
            Self { role, state: State::START, own: vec![], incoming: vec![], posted: vec![] }
        }

        /// Posts a request: it will complete here, and its message will come there.
        fn post(&mut self, action: Action, peer: &mut Side) {
            self.posted.push(action);
            self.own.push(if action == PostRdma { RdmaCompleted } else { SendCompleted });
            match action {
                SendMr => peer.incoming.push(MrReceived),
                SendDone => peer.incoming.push(DoneReceived),
                PostRdma => {}
            }
        }

        /// Takes the oldest event of one of the two queues.
        fn step(&mut self, from_own: bool, peer: &mut Side) {
            let queue = if from_own && !self.own.is_empty() { &mut self.own } else { &mut self.incoming };
            if queue.is_empty() {
                return;
            }
            let event = queue.remove(0);
            let (state, action) = self.state.next(self.role, event).expect("an order that can happen");
            self.state = state;
            if let Some(action) = action {
                self.post(action, peer);
            }
        }
    }

    #[test]
    fn every_order_of_both_sides_events_ends_well() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..10_000 {
            let (mut client, mut server) = (Side::new(Client), Side::new(Server));
            client.post(SendMr, &mut server);
            for _ in 0..400 {
                // xorshift: three random choices are all that this needs.
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                match seed >> 60 & 3 {
                    0 => client.step(true, &mut server),
                    1 => client.step(false, &mut server),
                    2 => server.step(true, &mut client),
                    _ => server.step(false, &mut client),
                }
            }
            for side in [&client, &server] {
                assert!(side.state.is_done(), "{:?} stuck in {}", side.role, side.state);
                assert_eq!(side.posted, [SendMr, PostRdma, SendDone]);
            }
        }
    }
}

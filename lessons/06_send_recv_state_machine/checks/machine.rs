//! The machine in every state, and in every order of events.

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

//! The states of the queue pairs: as the log tells them, and where it tells nothing, as the packets imply.

use roce::cm::Kind;
use roce::opcode::Operation;
use roce::packet::Packet;
use roce::track::{Connection, Membership, Side};
use run::said::Said;
use serde::Serialize;
use std::collections::BTreeMap;

/// From now on a queue pair is in this state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct State {
    node: usize,
    qpn: u64,
    /// Its name; empty once the queue pair is destroyed.
    state: String,
    /// What else the log says about it: numbers, limits, times.
    attributes: String,
    /// No program says so: the packets do.
    implied: bool,
}

/// How far it has come; what is not listed is behind all that packets tell.
fn reached(state: &str) -> usize {
    const WAY: [&str; 6] = ["RESET", "INIT", "RTR", "RTR or RTS", "RTS", "left RTS"];
    WAY.iter().position(|place| *place == state).unwrap_or(WAY.len())
}

#[derive(Debug, Default)]
pub(super) struct QueuePairs {
    /// By node and number.
    states: BTreeMap<(usize, u64), State>,
}

impl QueuePairs {
    pub(super) fn line(&mut self, node: usize, said: Said) -> Vec<State> {
        let (qpn, state, attributes) = match said {
            Said::Qp { qpn, state, attributes } => (qpn, state, attributes),
            Said::Moved { qpn, state } => (qpn, state, ""),
            // The log does not say which: of several it could be any.
            said if said.destroys_qp() => {
                let mut left = self.states.iter().filter(|((of, _), state)| *of == node && !state.state.is_empty());
                let (Some((_, only)), None) = (left.next(), left.next()) else { return Vec::new() };
                (only.qpn, "", "")
            }
            _ => return Vec::new(),
        };
        let state = State { node, qpn, state: state.into(), attributes: attributes.into(), implied: false };
        self.set(state).into_iter().collect()
    }

    pub(super) fn packet(
        &mut self,
        packet: &Packet,
        ends: [usize; 2],
        seen: Option<(Membership, &Connection)>,
    ) -> Vec<State> {
        let Some((seen, connection)) = seen else { return Vec::new() };
        let (sender, receiver) = match packet.cm().map(|message| message.kind) {
            Some(Kind::ConnectRequest) => ("INIT", ""),
            Some(Kind::ConnectReply) => ("RTR or RTS", ""),
            Some(Kind::ReadyToUse) => ("RTS", "RTS"),
            Some(Kind::DisconnectRequest) | Some(Kind::DisconnectReply) => ("left RTS", ""),
            Some(_) => return Vec::new(),
            None if packet.opcode.is_response() || packet.opcode.operation == Operation::Congestion => {
                ("RTR or RTS", "RTS")
            }
            None => ("RTS", "RTR or RTS"),
        };
        let sides = [(seen.from, ends[0], sender), (seen.from.other(), ends[1], receiver)];
        let state = |(side, node, state): (Side, usize, &str)| {
            let qpn = u64::from(connection.qps[side as usize].filter(|_| !state.is_empty())?);
            let known = self.states.get(&(node, qpn));
            // The connection manager's messages tell how far a queue pair has come at least. Packets of data tell less.
            let further = |known: &State| known.implied || reached(state) > reached(&known.state);
            let news = known.map_or(true, |known| packet.cm().is_some() && further(known));
            let state = State { node, qpn, state: state.into(), attributes: String::new(), implied: true };
            news.then(|| self.set(state)).flatten()
        };
        sides.into_iter().filter_map(state).collect()
    }

    fn set(&mut self, state: State) -> Option<State> {
        let before = self.states.insert((state.node, state.qpn), state.clone());
        (before.as_ref() != Some(&state)).then_some(state)
    }
}

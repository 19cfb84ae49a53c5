//! The states of a queue pair, and which attributes each move needs and accepts (specification, volume 1, 10.3.1 and table 96 in
//! 11.2.5.2).

use super::Qp;
use crate::errno::Errno;
use crate::fact::Fact;
use crate::memory::Access;
use crate::outside::{AsyncEvent, Ctx, Effect};
use crate::psn::Psn;
use roce::opcode::Service;
use std::fmt;
use std::net::IpAddr;

/// The states, with the numbers of `ibv_qp_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Reset = 0,
    /// Receives may be posted.
    Init = 1,
    /// Ready to receive, so the responder works.
    Rtr = 2,
    /// Ready to send, so the requester works as well.
    Rts = 3,
    /// Send queue drained. The responder works, but the requester begins nothing new.
    Sqd = 4,
    /// Everything that's posted comes back.
    Err = 6,
}

impl State {
    /// The state with this number. SQE isn't among them. As with rdma_rxe (Linux 6.12), a send that fails moves a queue pair of
    /// any service to ERR.
    pub fn from_number(number: u32) -> Option<State> {
        use State::*;
        [Reset, Init, Rtr, Rts, Sqd, Err].into_iter().find(|state| *state as u32 == number)
    }

    /// The attributes that a move to this state needs on the way from RESET to RTS; none off that way.
    pub fn needs(self, service: Service) -> Option<u32> {
        let before = match self {
            State::Init => State::Reset,
            State::Rtr => State::Init,
            State::Rts => State::Rtr,
            State::Reset | State::Sqd | State::Err => return None,
        };
        needed_and_taken(service, before, self).map(|(needed, _)| needed)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_uppercase())
    }
}

/// The bits of `ibv_qp_attr_mask`, which say what attributes a move brings.
pub mod mask {
    pub const STATE: u32 = 1;
    pub const CUR_STATE: u32 = 1 << 1;
    pub const EN_SQD_ASYNC_NOTIFY: u32 = 1 << 2;
    pub const ACCESS_FLAGS: u32 = 1 << 3;
    pub const PKEY_INDEX: u32 = 1 << 4;
    pub const PORT: u32 = 1 << 5;
    pub const QKEY: u32 = 1 << 6;
    pub const AV: u32 = 1 << 7;
    pub const PATH_MTU: u32 = 1 << 8;
    pub const TIMEOUT: u32 = 1 << 9;
    pub const RETRY_CNT: u32 = 1 << 10;
    pub const RNR_RETRY: u32 = 1 << 11;
    pub const RQ_PSN: u32 = 1 << 12;
    pub const MAX_QP_RD_ATOMIC: u32 = 1 << 13;
    pub const ALT_PATH: u32 = 1 << 14;
    pub const MIN_RNR_TIMER: u32 = 1 << 15;
    pub const SQ_PSN: u32 = 1 << 16;
    pub const MAX_DEST_RD_ATOMIC: u32 = 1 << 17;
    pub const PATH_MIG_STATE: u32 = 1 << 18;
    pub const DEST_QPN: u32 = 1 << 20;
}

/// What a queue pair has been told, which is the part of `ibv_qp_attr` that this device uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// What the peer may do, whatever its keys allow.
    pub access: Access,
    /// The peer's address, from the address vector's GID. Packets go there, and none are taken from anywhere else.
    pub peer: Option<IpAddr>,
    /// The traffic class of packets that go there, from the address vector.
    pub class: u8,
    /// The largest payload of a packet, in bytes.
    pub mtu: u32,
    pub dest_qp: u32,
    /// The key that a datagram must bring to be accepted.
    pub qkey: u32,
    /// The first PSN of the peer's requests.
    pub rq_psn: Psn,
    /// The first PSN of our requests.
    pub sq_psn: Psn,
    /// How long to wait for an answer: 4.096 µs × 2^n, where 0 means for ever.
    pub timeout: u8,
    /// How often to try again after that.
    pub retries: u8,
    /// How often to try again if the peer had no receive posted; 7 means for ever.
    pub rnr_retries: u8,
    /// How long the peer should wait if we have no receive, as a code of table 45.
    pub min_rnr_timer: u8,
    pub max_rd_atomic: u8,
    /// READs and atomics that the peer may have under way.
    pub max_dest_rd_atomic: u8,
    /// Whether the program wants to be told that the send queue has come to rest.
    pub notify_drained: bool,
}

/// What a move needs and what else it accepts, or None if there's no such move.
fn needed_and_taken(service: Service, from: State, to: State) -> Option<(u32, u32)> {
    let (needed, taken) = of_reliable_connection(from, to)?;
    Some((of_service(service, needed), of_service(service, taken)))
}

/// What's left of the attributes for another service. With an unreliable one nobody answers, and a datagram queue pair has no
/// peer. Where a connection has access rights, it has a key.
fn of_service(service: Service, attributes: u32) -> u32 {
    use mask::*;
    const OF_ANSWERS: u32 = TIMEOUT | RETRY_CNT | RNR_RETRY | MAX_QP_RD_ATOMIC | MAX_DEST_RD_ATOMIC | MIN_RNR_TIMER;
    const OF_CONNECTIONS: u32 = AV | PATH_MTU | DEST_QPN | RQ_PSN | ACCESS_FLAGS;
    let key = if attributes & ACCESS_FLAGS != 0 { QKEY } else { 0 };
    match service {
        Service::Rc => attributes,
        Service::Uc => attributes & !OF_ANSWERS,
        _ => attributes & !(OF_ANSWERS | OF_CONNECTIONS) | key,
    }
}

/// The table for reliable connections.
fn of_reliable_connection(from: State, to: State) -> Option<(u32, u32)> {
    use mask::*;
    use State::{Err, Init, Reset, Rtr, Rts, Sqd};
    let sqd = PORT | AV | TIMEOUT | RETRY_CNT | RNR_RETRY | MAX_QP_RD_ATOMIC | MAX_DEST_RD_ATOMIC | PKEY_INDEX;
    match (from, to) {
        (Reset, Err) => None,
        (_, Reset | Err) => Some((0, 0)),
        (Reset, Init) => Some((PKEY_INDEX | PORT | ACCESS_FLAGS, 0)),
        (Init, Init) => Some((0, PKEY_INDEX | PORT | ACCESS_FLAGS)),
        (Init, Rtr) => {
            let needed = AV | PATH_MTU | DEST_QPN | RQ_PSN | MAX_DEST_RD_ATOMIC | MIN_RNR_TIMER;
            Some((needed, ACCESS_FLAGS | PKEY_INDEX))
        }
        (Rtr, Rts) => {
            let needed = TIMEOUT | RETRY_CNT | RNR_RETRY | SQ_PSN | MAX_QP_RD_ATOMIC;
            Some((needed, CUR_STATE | ACCESS_FLAGS | MIN_RNR_TIMER))
        }
        (Rts, Rts) | (Sqd, Rts) => Some((0, CUR_STATE | ACCESS_FLAGS | MIN_RNR_TIMER)),
        (Rts, Sqd) => Some((0, EN_SQD_ASYNC_NOTIFY)),
        (Sqd, Sqd) => Some((0, sqd | ACCESS_FLAGS | MIN_RNR_TIMER)),
        _ => None,
    }
}

impl Qp {
    /// Moves to a state, or stays in it, and takes over the attributes that `mask` names.
    ///
    /// # Errors
    /// `EINVAL`: there's no such move, or it lacks an attribute, or brings one that it doesn't accept. Nothing is changed then.
    pub fn modify(&mut self, mask: u32, state: State, wanted: &Attributes, ctx: &mut Ctx) -> Result<(), Errno> {
        let to = if mask & mask::STATE != 0 { state } else { self.state };
        let (needed, taken) = needed_and_taken(self.settings.service, self.state, to).ok_or(Errno::EINVAL)?;
        let brought = mask & !mask::STATE;
        if needed & !brought != 0 || brought & !(needed | taken) != 0 {
            return Err(Errno::EINVAL);
        }
        if mask & mask::PATH_MTU != 0 && !matches!(wanted.mtu, 256 | 512 | 1024 | 2048 | 4096) {
            return Err(Errno::EINVAL);
        }
        if mask & mask::AV != 0 && wanted.peer.is_none() {
            return Err(Errno::EINVAL);
        }
        self.take_over(mask, wanted);
        if mask & mask::STATE != 0 && (to != self.state || matches!(to, State::Reset)) {
            self.enter(to, ctx);
        }
        Ok(())
    }

    fn take_over(&mut self, mask: u32, wanted: &Attributes) {
        let (mine, brings) = (&mut self.attributes, |bit| mask & bit != 0);
        take(&mut mine.access, wanted.access, brings(mask::ACCESS_FLAGS));
        take(&mut mine.peer, wanted.peer, brings(mask::AV));
        take(&mut mine.class, wanted.class, brings(mask::AV));
        take(&mut mine.mtu, wanted.mtu, brings(mask::PATH_MTU));
        take(&mut mine.dest_qp, wanted.dest_qp, brings(mask::DEST_QPN));
        take(&mut mine.qkey, wanted.qkey, brings(mask::QKEY));
        take(&mut mine.rq_psn, wanted.rq_psn, brings(mask::RQ_PSN));
        take(&mut mine.sq_psn, wanted.sq_psn, brings(mask::SQ_PSN));
        take(&mut mine.timeout, wanted.timeout, brings(mask::TIMEOUT));
        take(&mut mine.retries, wanted.retries, brings(mask::RETRY_CNT));
        take(&mut mine.rnr_retries, wanted.rnr_retries, brings(mask::RNR_RETRY));
        take(&mut mine.min_rnr_timer, wanted.min_rnr_timer, brings(mask::MIN_RNR_TIMER));
        take(&mut mine.max_rd_atomic, wanted.max_rd_atomic, brings(mask::MAX_QP_RD_ATOMIC));
        take(&mut mine.max_dest_rd_atomic, wanted.max_dest_rd_atomic, brings(mask::MAX_DEST_RD_ATOMIC));
        take(&mut mine.notify_drained, wanted.notify_drained, brings(mask::EN_SQD_ASYNC_NOTIFY));
    }

    pub(super) fn enter(&mut self, state: State, ctx: &mut Ctx) {
        let before = std::mem::replace(&mut self.state, state);
        let number = self.settings.number;
        ctx.say(|| Fact::new("state").with("qp", number).with("from", before).with("to", state));
        match state {
            State::Reset => *self = Qp::new(self.settings),
            State::Rtr => self.responder.start(self.attributes.rq_psn),
            State::Rts if before == State::Rtr => self.requester.start(&self.attributes),
            State::Sqd => self.tell_if_drained(ctx),
            State::Err => self.flush(ctx),
            State::Init | State::Rts => {}
        }
    }

    /// In SQD, notifies the program once that everything that had begun is done, if it has asked for that.
    pub(super) fn tell_if_drained(&mut self, ctx: &mut Ctx) {
        if self.state == State::Sqd && self.attributes.notify_drained && !self.requester.has_begun() {
            self.attributes.notify_drained = false;
            ctx.push(Effect::Raise(AsyncEvent::SendQueueDrained));
        }
    }
}

/// Takes a value over if the move brings it.
fn take<T>(mine: &mut T, wanted: T, is_brought: bool) {
    if is_brought {
        *mine = wanted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;
    use crate::time::Time;

    const SERVICES: [Service; 3] = [Service::Rc, Service::Uc, Service::Ud];

    #[test]
    fn only_moves_of_the_table_with_what_they_need_are_made() {
        let mut memory = Memory::default();
        let mut out = Ctx::new(Time::START, &mut memory);
        let wanted = Attributes { peer: Some([127, 0, 0, 3].into()), mtu: 1024, ..Attributes::default() };
        let mut can_move = |service, from, to, attributes| {
            let settings = super::super::Settings { service, ..Default::default() };
            let mut qp = Qp { state: from, ..Qp::new(settings) };
            qp.modify(mask::STATE | attributes, to, &wanted, &mut out).is_ok()
        };
        let all = (0..7).filter_map(State::from_number);
        let moves = || all.clone().flat_map(|from| all.clone().map(move |to| (from, to)));
        for (service, (from, to)) in SERVICES.into_iter().flat_map(|service| moves().map(move |both| (service, both))) {
            let Some((needed, taken)) = needed_and_taken(service, from, to) else {
                assert!(!can_move(service, from, to, 0), "{from} {to}");
                continue;
            };
            for bit in (1..32).map(|n| 1 << n) {
                let done = can_move(service, from, to, needed | bit);
                assert_eq!(done, (needed | taken) & bit != 0, "{service:?} {from} {to} {bit:#x}");
                assert!(needed & bit == 0 || !can_move(service, from, to, needed & !bit), "{from} {to} {bit:#x}");
            }
        }
    }

    /// The table as the specification has it, on the way to RTS (11.2.5.2).
    #[test]
    fn each_service_needs_what_it_uses() {
        use mask::*;
        let (place, connected) = (PKEY_INDEX | PORT, AV | PATH_MTU | DEST_QPN | RQ_PSN);
        let reliable = [
            place | ACCESS_FLAGS,
            connected | MAX_DEST_RD_ATOMIC | MIN_RNR_TIMER,
            SQ_PSN | TIMEOUT | RETRY_CNT | RNR_RETRY | MAX_QP_RD_ATOMIC,
        ];
        let expected = [reliable, [place | ACCESS_FLAGS, connected, SQ_PSN], [place | QKEY, 0, SQ_PSN]];
        for (service, expected) in SERVICES.into_iter().zip(expected) {
            let needs = [State::Init, State::Rtr, State::Rts].map(|state| state.needs(service).unwrap());
            assert_eq!(needs, expected, "{service:?}");
        }
    }
}

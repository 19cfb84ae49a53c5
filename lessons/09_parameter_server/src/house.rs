//! What the server holds: what all workers share, on one device, and what each of them has for itself.
//!
//! ```text
//! (free) ─ knock ─▶ Accepted ─ ESTABLISHED ─▶ Idle ─ go ─▶ Working ─ WRITE with immediate ─▶ Delivered
//!    ▲                                         │ ▲                                               │
//!    │                                    stop ▼ └─────────────────── folded ────────────────────┘
//!    └─ goodbye; from any state: failure ─ Stopped
//! ```

use std::collections::BTreeMap;
use std::time::Instant;

use common::{
    info, stage, Access, CmId, CompletionChannel, CompletionQueue, ConnParam, Error, EventChannel, MemoryRegion,
    Metadata, Operation, ProtectionDomain, QpInitAttr, QueuePair, Result, SendWr, WorkCompletion,
};

use crate::layout::{board, read_slot, Welcome, BOARD_LEN, SLOT_LEN, STOP};
use crate::model::{Gradient, Weights};
use crate::{ACK_TIMEOUT, CONN_PARAM, CQE, PLACES, QUEUE, RECEIVES};

/// Fields are dropped from the top: those who use something go before what they use.
pub struct House {
    /// By number, from 1 to [`PLACES`]. A number without a worker is free.
    pub peers: BTreeMap<u8, Peer>,
    /// Version and weights. Workers may READ it, at any moment.
    board: MemoryRegion,
    /// How many examples all workers together have looked at. They count themselves.
    pub counter: MemoryRegion,
    /// For the queue pairs of all workers.
    pub cq: CompletionQueue,
    pub channel: CompletionChannel,
    pd: ProtectionDomain,
    _keeper: CmId,
}

impl House {
    /// Opens on the device that a first worker came through: a listener on `::` has none of its own.
    pub fn open(events: &EventChannel, visitor: &CmId, version: u32, weights: &Weights) -> Result<Self> {
        let _stage = stage("open_house");
        // `id->verbs` is lent by an id, and good as long as that id. The visitor's goes when the visitor goes; so we bind
        // one of our own to the same device, and port 0, which is any port. Nobody can connect to it: it does not listen.
        let keeper = events.create_id()?;
        let address = visitor.local_addr().map(|address| (address.ip(), 0).into());
        address.map_or(Ok(()), |address| keeper.bind_addr(address))?;
        let context = keeper.verbs()?;
        let pd = ProtectionDomain::alloc(&context)?;
        let channel = CompletionChannel::create(&context)?;
        let cq = CompletionQueue::create(&channel, CQE * PLACES as i32)?;
        cq.req_notify()?;
        let board = pd.reg_mr(BOARD_LEN, Access::REMOTE_READ)?;
        // REMOTE_ATOMIC needs LOCAL_WRITE too: in the end it is our device that writes.
        let counter = pd.reg_mr(8, Access::LOCAL_WRITE | Access::REMOTE_ATOMIC)?;
        let mut house = Self { peers: BTreeMap::new(), board, counter, cq, channel, pd, _keeper: keeper };
        house.publish(version, weights)?;
        Ok(house)
    }

    /// Writes new weights onto the board. A READ that comes at this moment gets old and new bytes: its worker sees that the
    /// seal does not fit.
    pub fn publish(&mut self, version: u32, weights: &Weights) -> Result<()> {
        let _stage = stage("publish");
        info!("the board has version {version} of the weights");
        self.board.write(0, &board(version, weights))
    }

    /// The number for who wants that one, or any (0); or why there is none.
    pub fn free_number(&self, wanted: u8) -> Result<u8> {
        let mut numbers = if wanted == 0 { 1..=PLACES as u8 } else { wanted..=wanted };
        let why = match numbers.find(|number| !self.peers.contains_key(number)) {
            Some(number) if usize::from(number) <= PLACES => return Ok(number),
            Some(number) => format!("there is no worker {number}, only 1 to {PLACES}"),
            None if wanted == 0 => format!("the house is full: {PLACES} workers are here"),
            None => format!("worker {wanted} is here already"),
        };
        Err(Error::content(why, "Come again later, or as another worker"))
    }

    /// `event->id` finds its worker.
    pub fn number_of(&self, id: &CmId) -> Option<u8> {
        self.peers.iter().find(|(_, peer)| peer.id == *id).map(|(number, _)| *number)
    }

    /// `wc->qp_num` finds its worker; None if that one has gone. A new QP may have an old one's number, but not its requests.
    pub fn owner_of(&self, wc: &WorkCompletion) -> Option<u8> {
        let is_its = |peer: &Peer| peer.qp.qp_num() == wc.qp_num && wc.wr_id >= peer.oldest;
        self.peers.iter().find(|(_, peer)| is_its(peer)).map(|(number, _)| *number)
    }
}

/// How far a worker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Our ConnectReply is under way.
    Accepted,
    /// Connected, and waiting for a word of ours.
    Idle,
    /// Told to go on.
    Working,
    /// Its gradient is here, and not folded yet.
    Delivered,
    /// Told that all is over. It hangs up next.
    Stopped,
}

/// One worker, with all that it has here. Dropping it frees that, and its place.
pub struct Peer {
    id: CmId,
    qp: QueuePair,
    /// Where its gradients come. The region is its own: its rkey opens nobody else's.
    slot: MemoryRegion,
    /// The number of its first request.
    oldest: u64,
    pub state: State,
    /// In this state, that is.
    pub since: Instant,
}

impl Peer {
    /// A QP, a slot and receives, and then the ConnectReply, which tells the worker where everything is.
    pub fn admit(house: &House, id: &CmId, asked: &ConnParam, worker: u8) -> Result<Self> {
        let _stage = stage("admit");
        let qp = QueuePair::create(id, &house.pd, &QpInitAttr::new(&house.cq, QUEUE))?;
        let slot = house.pd.reg_mr(SLOT_LEN, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
        // Receives without memory: a WRITE with immediate uses one up, and its bytes go into the slot.
        let oldest = qp.post_recv_pieces(&[])?;
        (1..RECEIVES).try_for_each(|_| qp.post_recv_pieces(&[]).map(|_| ()))?;
        let [board, slot_at, counter] = [&house.board, &slot, &house.counter].map(Metadata::of);
        let private_data = Welcome { board, slot: slot_at, counter, worker }.encode();
        id.set_ack_timeout(ACK_TIMEOUT)?;
        id.accept(&ConnParam { private_data, ..CONN_PARAM.clamped_to(asked) })?;
        Ok(Self { id: id.share(), qp, slot, oldest, state: State::Accepted, since: Instant::now() })
    }

    /// From now on it is in this state.
    pub fn become_(&mut self, state: State) {
        (self.state, self.since) = (state, Instant::now());
    }

    /// Says what comes next, in a SEND without bytes: 32 bits of immediate data are enough.
    pub fn tell(&mut self, word: u32) -> Result<()> {
        let _stage = stage("tell");
        self.become_(if word == STOP { State::Stopped } else { State::Working });
        self.qp.post_send(&SendWr::new(Operation::SendImm(word), &[])).map(|_| ())
    }

    /// What the worker's WRITE has left. A new receive replaces the one that it has used up.
    pub fn take_gradient(&mut self) -> Result<Gradient> {
        self.qp.post_recv_pieces(&[])?;
        self.become_(State::Delivered);
        Ok(read_slot(&self.slot.read(0..SLOT_LEN)?))
    }
}

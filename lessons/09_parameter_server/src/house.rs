//! What the server holds: the house, which all workers share, and a connection for each of them.
//!
//! ```text
//! (free) ─ knock ─▶ Accepted ─ ESTABLISHED ─▶ Idle ─ go ─▶ Working ─ WRITE with immediate ─▶ Delivered
//!    ▲                                         │ ▲                                               │
//!    │                                    stop ▼ └─────────────────── folded ────────────────────┘
//!    └─ goodbye; from any state: failure ─ Stopped
//! ```

use std::time::Instant;

use common::*;

use crate::{layout::*, model::*, ACK_TIMEOUT, CONN_PARAM, CQE, PLACES, QUEUE, RECEIVES};

/// The fields are dropped from the top, so that whatever uses something goes before what it uses.
pub struct House {
    /// Version and weights. Workers may READ it at any moment.
    board: MemoryRegion,
    /// How many examples all workers together have looked at. The workers do the counting.
    pub counter: MemoryRegion,
    /// For the queue pairs of all workers.
    pub cq: CompletionQueue,
    pub channel: CompletionChannel,
    pd: ProtectionDomain,
    _keeper: CmId,
}

impl House {
    /// Opens the house on the device that the first worker came through, because a listener on `::` has none of its own.
    pub fn open(events: &EventChannel, visitor: &CmId, version: u32, weights: &Weights) -> Result<Self> {
        let _stage = stage("open_house");
        // An id lends us its device only as long as the id lives, and the visitor's goes when the visitor goes. So we bind
        // an id of our own to the same device, on port 0, which is any port. Nobody can connect to it, since it doesn't
        // listen.
        let keeper = events.create_id()?;
        let address = visitor.local_addr().map(|address| (address.ip(), 0).into());
        address.map_or(Ok(()), |address| keeper.bind_addr(address))?;
        let context = keeper.verbs()?;
        let pd = context.alloc_pd()?;
        let channel = context.create_comp_channel()?;
        let cq = channel.create_cq(CQE * PLACES as i32)?;
        cq.req_notify()?;
        let board = pd.reg_mr(BOARD_LEN, Access::REMOTE_READ)?;
        // REMOTE_ATOMIC needs LOCAL_WRITE as well, because in the end it's our own device that writes.
        let counter = pd.reg_mr(8, Access::LOCAL_WRITE | Access::REMOTE_ATOMIC)?;
        let mut house = Self { board, counter, cq, channel, pd, _keeper: keeper };
        house.publish(version, weights)?;
        Ok(house)
    }

    /// A READ that comes at this moment gets old and new bytes, and its worker sees that the seal doesn't fit.
    pub fn publish(&mut self, version: u32, weights: &Weights) -> Result<()> {
        let _stage = stage("publish");
        info!("the board has version {version} of the weights");
        self.board.write(0, &board(version, weights))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Accepted,  // Our ConnectReply is under way.
    Idle,      // Connected, and waiting for a word of ours.
    Working,   // Told to go on.
    Delivered, // Its gradient is here, but not yet in the weights.
    Stopped,   // Told that it's all over. It hangs up next.
}

/// One worker, with everything that it has here. Dropping it frees all that, and its place.
pub struct Connection {
    pub id: CmId,
    pub qp: QueuePair,
    /// Where its gradients arrive. It's a region of its own, so that its rkey opens nobody else's.
    slot: MemoryRegion,
    pub state: State,
    pub since: Instant,
    /// The loss that came with its last gradient.
    pub loss: Option<f64>,
}

impl Connection {
    /// A QP, a slot and receives, and then the ConnectReply, which tells the worker where everything is.
    pub fn admit(house: &House, id: &CmId, asked: &ConnParam, worker: u8) -> Result<Self> {
        let _stage = stage("admit");
        let qp = id.create_qp(&house.pd, &QpInitAttr::new(&house.cq, QUEUE))?;
        let slot = house.pd.reg_mr(SLOT_LEN, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
        // Receives without memory. A WRITE with immediate uses one up, but its bytes go into the slot.
        (0..RECEIVES).try_for_each(|_| qp.post_recv_pieces(&[]).map(|_| ()))?;
        let [board, slot_at, counter] = [&house.board, &slot, &house.counter].map(Metadata::of);
        let private_data = Welcome { board, slot: slot_at, counter, worker }.encode();
        id.set_ack_timeout(ACK_TIMEOUT)?;
        id.accept(&ConnParam { private_data, ..CONN_PARAM.clamped_to(asked) })?;
        Ok(Self { id: id.clone(), qp, slot, state: State::Accepted, since: Instant::now(), loss: None })
    }

    /// Says what comes next, in a SEND without bytes, since 32 bits of immediate data are enough.
    pub fn tell(&mut self, word: u32) -> Result<()> {
        let _stage = stage("tell");
        let state = if word == STOP { State::Stopped } else { State::Working };
        (self.state, self.since) = (state, Instant::now());
        self.qp.post_send(&SendWr::new(Operation::SendImm(word), &[])).map(|_| ())
    }

    /// Takes what the worker's WRITE has left, and posts a receive in place of the one that it used up.
    pub fn take_gradient(&mut self) -> Result<Gradient> {
        self.qp.post_recv_pieces(&[])?;
        (self.state, self.since) = (State::Delivered, Instant::now());
        Ok(read_slot(&self.slot.read(0..SLOT_LEN)?))
    }
}

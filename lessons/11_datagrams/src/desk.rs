//! What both sides work with: a completion queue, its channel, receives, and a region with a part for each of them.
//!
//! A receive lends its part to the device, and it comes back filled. At the server the answer goes out from the same part, and
//! once that's sent, the part is lent again. So there are never more answers under way than parts.

use std::{cell::RefCell, collections::HashMap};

use common::*;

use crate::message::{Message, ALL, LEN};
use crate::QUEUE;

/// Where we post receives.
pub enum Inbox {
    /// A queue pair: the server's only one, or a client's.
    Own(QueuePair),
    /// A queue that all connections of the server share.
    Shared(SharedReceiveQueue),
}

/// Fields are dropped from the top.
pub struct Desk {
    pub inbox: Inbox,
    region: MemoryRegion,
    pub cq: CompletionQueue,
    pub channel: CompletionChannel,
    pub pd: ProtectionDomain,
    pub context: Context,
    /// How many bytes the device puts in front of each message, and how long a part is with them.
    front: usize,
    pub room: usize,
    /// Which part a request under way uses.
    parts: RefCell<HashMap<u64, usize>>,
}

impl Desk {
    /// Makes the parts, each with room for a message of `longest` bytes.
    pub fn create(id: &CmId, transport: PortSpace, is_server: bool, parts: usize, longest: usize) -> Result<Self> {
        let _stage = stage("create_resources");
        let context = id.verbs()?;
        let pd = context.alloc_pd()?;
        let channel = context.create_comp_channel()?;
        // Each part is in a receive or an answer. A client's requests, or the server's message to the group, come on top.
        let cq = channel.create_cq(parts as i32 + QUEUE.max_send_wr as i32)?;
        let cap = QpCap { max_send_wr: QUEUE.max_send_wr + parts as u32, max_recv_wr: parts as u32, ..QUEUE };
        let attr = QpInitAttr::new(&cq, cap);
        let inbox = match (transport, is_server) {
            (PortSpace::Udp, _) => Inbox::Own(id.create_qp(&pd, &QpInitAttr { qp_type: QpType::Ud, ..attr })?),
            (PortSpace::Tcp, false) => Inbox::Own(id.create_qp(&pd, &attr)?),
            (PortSpace::Tcp, true) => Inbox::Shared(pd.create_srq(parts as u32, 1)?),
        };
        // The device puts 40 bytes in front of each datagram. One that doesn't fit together with them is lost.
        let front = if transport == PortSpace::Udp { GRH_LEN } else { 0 };
        let room = front + longest;
        let region = pd.reg_mr(parts * room, Access::LOCAL_WRITE)?;
        let desk = Self { inbox, region, cq, channel, pd, context, front, room, parts: RefCell::default() };
        (0..parts).try_for_each(|part| desk.post_receive(part))?;
        desk.cq.req_notify()?;
        Ok(desk)
    }

    /// Three things make an address: the way to the machine or the group, the queue pair there, and its key.
    pub fn address(&self, there: &UdParam) -> Result<Destination> {
        info!("datagrams go to {} qp_num={} qkey=0x{:x}", there.ah_attr, there.qp_num, there.qkey);
        Ok(Destination { ah: self.pd.create_ah(&there.ah_attr)?, qp_num: there.qp_num, qkey: there.qkey })
    }

    /// Lends a part to the device.
    pub fn post_receive(&self, part: usize) -> Result<()> {
        let range = part * self.room..(part + 1) * self.room;
        let wr_id = match &self.inbox {
            Inbox::Own(qp) => qp.post_recv(&self.region, range)?,
            Inbox::Shared(srq) => srq.post_recv(&self.region, range)?,
        };
        self.lend(part, wr_id);
        Ok(())
    }

    /// From now on this request uses the part.
    pub fn lend(&self, part: usize, wr_id: u64) {
        self.parts.borrow_mut().insert(wr_id, part);
    }

    /// What's in front of the message in a part, and the message. `byte_len` counts both. The message to the group has no bytes;
    /// its word is the immediate data.
    pub fn read(&self, part: usize, wc: &WorkCompletion) -> Result<(Vec<u8>, Option<Message>)> {
        let bytes = self.region.read(part * self.room..part * self.room + wc.byte_len().unwrap_or(0))?;
        let (front, message) = bytes.split_at(self.front.min(bytes.len()));
        let to_all = wc.imm_data().map(|word| Message { client: ALL, number: 0, word });
        Ok((front.to_vec(), to_all.or_else(|| Message::decode(message))))
    }

    /// The request that sends a message out of a part.
    pub fn request(&self, part: usize, message: &Message) -> Result<SendWr<'_>> {
        let at = part * self.room;
        self.region.write(at, &message.encode())?;
        Ok(SendWr::send(&self.region, at..at + LEN))
    }

    /// The next completion, if there is one, with the part that its request used. Arms before the last look, so that whatever
    /// comes after it ends the next sleep.
    pub fn next(&self) -> Result<Option<(WorkCompletion, Option<usize>)>> {
        let mut found = self.cq.poll_one()?;
        if found.is_none() && self.channel.try_get_cq_event()?.is_some() {
            self.cq.req_notify()?;
            found = self.cq.poll_one()?;
        }
        let part = found.as_ref().and_then(|wc| self.parts.borrow_mut().remove(&wc.wr_id));
        Ok(found.map(|wc| (wc, part)))
    }
}

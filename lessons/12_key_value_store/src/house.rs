//! What the server holds: what all clients share, on one device (the house), and what each has for itself (a connection).

use std::{collections::HashMap, time::Duration};

use common::*;

use crate::plain::{layout::*, terms::*};
use crate::{record::Record, table::Table};

/// Fields are dropped from the top, so whatever uses something comes before what it uses.
pub struct House {
    pub table: Table,
    /// The number of the client that has the lock. Clients swap it.
    lock: MemoryRegion,
    /// Which part of `requests` each posted receive has.
    posted: HashMap<u64, usize>,
    requests: MemoryRegion,
    srq: SharedReceiveQueue,
    pub cq: CompletionQueue,
    pub channel: CompletionChannel,
    pd: ProtectionDomain,
    /// The device belongs to an id, and is good for as long as that id lives.
    _visitor: CmId,
}

impl House {
    /// Opens on the device that the first client has come through.
    pub fn open(visitor: CmId, slowly: Duration) -> Result<Self> {
        let _stage = stage("open_house");
        let context = visitor.verbs()?;
        let pd = context.alloc_pd()?;
        let channel = context.create_comp_channel()?;
        let cq = channel.create_cq((PLACES * QUEUE.max_send_wr as usize + RECEIVES) as i32)?;
        cq.req_notify()?;
        let table = Table::create(&pd, slowly)?;
        let lock = pd.reg_mr(8, Access::LOCAL_WRITE | Access::REMOTE_ATOMIC)?;
        let requests = pd.reg_mr(RECEIVES * MESSAGE_LEN, Access::LOCAL_WRITE)?;
        let srq = pd.create_srq(RECEIVES as u32, 1)?;
        let mut house = Self { table, lock, posted: HashMap::new(), requests, srq, cq, channel, pd, _visitor: visitor };
        (0..RECEIVES).try_for_each(|part| house.post_receive(part))?;
        Ok(house)
    }

    /// For the next request, whoever sends it.
    fn post_receive(&mut self, part: usize) -> Result<()> {
        let wr_id = self.srq.post_recv(&self.requests, part * MESSAGE_LEN..(part + 1) * MESSAGE_LEN)?;
        self.posted.insert(wr_id, part);
        Ok(())
    }

    /// What a completion brought, if it's a receive's. The receive is posted again even if it was flushed. Otherwise every client
    /// that goes would take one along, and they belong to all.
    pub fn take_request(&mut self, wc: &WorkCompletion) -> Result<Option<Vec<u8>>> {
        let Some(part) = self.posted.remove(&wc.wr_id) else { return Ok(None) };
        let start = part * MESSAGE_LEN;
        let request = self.requests.read(start..start + wc.byte_len().unwrap_or(0))?;
        self.post_receive(part)?;
        Ok(wc.is_success().then_some(request))
    }

    /// A client has gone, and its queue pair with it, so nothing more can come from it. Did it have the lock?
    pub fn free_lock_of(&self, number: u8) -> Result<()> {
        if self.lock.read_u64(0)? == u64::from(number) {
            say!("client {number} has gone with the lock: it is free again");
            // To the device our write isn't atomic. But as long as the word isn't 0, no client's swap changes it.
            self.lock.write_u64(0, 0)?;
        }
        Ok(())
    }
}

/// One client, with everything that it has here. Dropping it frees all of that.
pub struct Connection {
    pub id: CmId,
    pub qp: QueuePair,
    answer: MemoryRegion,
}

impl Connection {
    /// Makes a QP that receives from the shared queue, and sends the ConnectReply, which says where table and lock are.
    pub fn admit(house: &House, id: CmId, asked: &ConnParam, number: u8) -> Result<Self> {
        let _stage = stage("admit");
        let qp = id.create_qp(&house.pd, &QpInitAttr { srq: Some(&house.srq), ..QpInitAttr::new(&house.cq, QUEUE) })?;
        let answer = house.pd.reg_mr(MESSAGE_LEN, Access::LOCAL_READ)?;
        let [table, lock] = [&house.table.region, &house.lock].map(Metadata::of);
        id.set_ack_timeout(ACK_TIMEOUT)?;
        let private_data = Welcome { table, lock, number }.encode();
        id.accept(&ConnParam { private_data, ..CONN_PARAM.clamped_to(asked) })?;
        Ok(Self { id, qp, answer })
    }

    pub fn answer(&self, record: Option<&Record>) -> Result<()> {
        let _stage = stage("answer");
        let answer = record.map_or(vec![0], |record| [&[1], &record.encode()[..]].concat());
        self.answer.write(0, &answer)?;
        self.qp.post_send(&SendWr::send(&self.answer, 0..answer.len())).map(drop)
    }
}

//! A sender: told to go, it WRITEs its messages as fast as its device takes them, and sleeps in between.

use std::collections::VecDeque;

use common::{args::Args, cm::*, *};

use crate::{ACK_TIMEOUT, CONN_PARAM, DEPTH, QUEUE, TOS};

pub fn run(args: &Args) -> Result<()> {
    let events = EventChannel::create()?;
    let id = resolve(&events, args)?;
    let desk = Desk::create(&id)?;
    let go = desk.qp.post_recv_pieces(&[])?;
    let (room, messages) = connect(&id, &events)?;
    let source = desk.pd.reg_mr(room.len as usize, Access::LOCAL_READ)?;
    wait_for(&desk, go, "the receiver's word to go")?;
    write_all(&desk, &source, &room, messages)?;
    disconnect(&id, &events)?;
    say!("SUCCESS: {messages} messages of {} bytes are complete", room.len);
    Ok(())
}

/// As in lesson 06, we ask which device leads there, and by which path.
fn resolve(events: &EventChannel, args: &Args) -> Result<CmId> {
    let _stage = stage("resolve");
    let id = address::try_each(&args.address, args.port, |address| {
        let id = events.create_id()?;
        id.resolve_addr(address)?;
        events.wait_for(RDMA_CM_EVENT_ADDR_RESOLVED)?.ack();
        Ok(id)
    })?;
    id.set_ack_timeout(ACK_TIMEOUT)?;
    if let Some(tos) = args.number(&TOS).and_then(|tos| u8::try_from(tos).ok()).filter(|tos| *tos > 0) {
        id.set_tos(tos)?;
    }
    id.resolve_route()?;
    events.wait_for(RDMA_CM_EVENT_ROUTE_RESOLVED)?.ack();
    Ok(id)
}

/// What a sender works with. Fields are dropped from the top.
struct Desk {
    qp: QueuePair,
    cq: CompletionQueue,
    pd: ProtectionDomain,
    channel: CompletionChannel,
}

impl Desk {
    fn create(id: &CmId) -> Result<Self> {
        let _stage = stage("create_resources");
        let context = id.verbs()?;
        let pd = context.alloc_pd()?;
        let channel = context.create_comp_channel()?;
        let cq = channel.create_cq((QUEUE.max_send_wr + QUEUE.max_recv_wr) as i32)?;
        let qp = id.create_qp(&pd, &QpInitAttr::new(&cq, QUEUE))?;
        Ok(Self { qp, cq, pd, channel })
    }
}

/// The answer says where in the receiver's memory our messages may go, and how many of them the receiver wants.
fn connect(id: &CmId, events: &EventChannel) -> Result<(Metadata, u32)> {
    let _stage = stage("connect");
    id.connect(&CONN_PARAM)?;
    let event = events.wait_for(RDMA_CM_EVENT_ESTABLISHED)?;
    let room = Metadata::decode(event.private_data())?;
    let count = event.private_data().get(Metadata::LEN..Metadata::LEN + 4).and_then(|bytes| bytes.try_into().ok());
    event.ack();
    let count =
        count.ok_or_else(|| Error::content("the answer lacks a number of messages", "Run `lesson-20 server` there"))?;
    Ok((room, u32::from_be_bytes(count)))
}

/// Keeps some messages posted, so that the device is never out of work. When its packets leave is the device's affair.
fn write_all(desk: &Desk, source: &MemoryRegion, room: &Metadata, messages: u32) -> Result<()> {
    let _stage = stage("write_all");
    let mut posted = VecDeque::new();
    for message in 0..messages {
        if posted.len() == DEPTH {
            wait_for_oldest(desk, &mut posted)?;
        }
        let what = Operation::WriteImm(*room, message);
        posted.push_back(desk.qp.post_send(&SendWr::new(what, &[(source, 0..source.len())]))?);
    }
    while !posted.is_empty() {
        wait_for_oldest(desk, &mut posted)?;
    }
    Ok(())
}

fn wait_for_oldest(desk: &Desk, posted: &mut VecDeque<u64>) -> Result<()> {
    posted.pop_front().map_or(Ok(()), |oldest| wait_for(desk, oldest, "the WRITE posted first"))
}

/// Sleeps until this one is complete, and not a moment longer, because meanwhile nothing new gets posted.
fn wait_for(desk: &Desk, wr_id: u64, awaited: &str) -> Result<()> {
    // Arm, poll, and only then sleep. In any other order the completion could fall between poll and sleep.
    desk.cq.req_notify()?;
    while desk.cq.poll_for(wr_id)?.is_none() {
        desk.channel.get_cq_event(awaited)?;
        desk.cq.req_notify()?;
    }
    Ok(())
}

fn disconnect(id: &CmId, events: &EventChannel) -> Result<()> {
    let _stage = stage("disconnect");
    id.disconnect()?;
    events.wait_for(RDMA_CM_EVENT_DISCONNECTED).map(|event| event.ack())
}

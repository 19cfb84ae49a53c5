//! The client: knocks with the plan, drives the requests, and tells what came of it.

use common::{args::Args, cm::*, *};

use crate::flow::{flow, Pool};
use crate::{count::Counts, pingpong::Table, plan::Plan, report::report, Desk};
use crate::{ACK_TIMEOUT, CONN_PARAM, CREDIT_MESSAGES};

pub fn run(args: &Args) -> Result<()> {
    let plan = Plan::new(args)?;
    let events = EventChannel::create()?;
    let id = resolve(&events, args)?;
    let desk = Desk::create(&id, events, plan.depth as u32, CREDIT_MESSAGES)?;
    let mut counts = Counts::new(&id.verbs()?);
    if plan.pingpong {
        play(&id, &desk, &plan, &mut counts)?;
    } else {
        (0..CREDIT_MESSAGES).try_for_each(|_| desk.qp.post_recv_pieces(&[]).map(|_| ()))?;
        let pool = Pool::create(&desk, &plan)?;
        let peer = connect(&id, &desk, plan.encode())?;
        flow(&desk, &plan, &pool, peer, &mut counts)?;
    }
    report(&plan, &counts, &desk.qp)?;
    disconnect(&id, desk)
}

/// As in lesson 06: which device leads there, and which path?
fn resolve(events: &EventChannel, args: &Args) -> Result<CmId> {
    let _stage = stage("resolve");
    let id = address::try_each(&args.address, args.port, |address| {
        let id = events.create_id()?;
        id.resolve_addr(address)?;
        events.wait_for(RDMA_CM_EVENT_ADDR_RESOLVED)?.ack();
        Ok(id)
    })?;
    id.set_ack_timeout(ACK_TIMEOUT)?;
    id.resolve_route()?;
    events.wait_for(RDMA_CM_EVENT_ROUTE_RESOLVED)?.ack();
    Ok(id)
}

/// The plan goes there, and the server's memory comes back.
fn connect(id: &CmId, desk: &Desk, private_data: Vec<u8>) -> Result<Metadata> {
    let _stage = stage("connect");
    id.connect(&ConnParam { private_data, ..CONN_PARAM })?;
    let event = desk.events.wait_for(RDMA_CM_EVENT_ESTABLISHED)?;
    let peer = Metadata::decode(event.private_data());
    event.ack();
    peer
}

/// The server WRITEs, too: so it has to know our memory.
fn play(id: &CmId, desk: &Desk, plan: &Plan, counts: &mut Counts) -> Result<()> {
    let mut table = Table::lay(desk, plan)?;
    table.peer = connect(id, desk, [plan.encode(), Metadata::of(&table.inbox).encode().to_vec()].concat())?;
    table.serve(counts)
}

/// The client goes first, and the server's answer is the end.
fn disconnect(id: &CmId, desk: Desk) -> Result<()> {
    let _stage = stage("disconnect");
    id.disconnect()?;
    desk.events.wait_for(RDMA_CM_EVENT_DISCONNECTED)?.ack();
    drop(desk);
    say!("client clean-up is complete");
    Ok(())
}

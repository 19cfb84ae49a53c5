//! The client: connects with the plan, drives the requests, and reports what that took.

use common::{args::Args, cm::*, *};

use crate::{flow::flow, plan::Plan, report::report, Desk, ACK_TIMEOUT, CONN_PARAM, CREDIT_MESSAGES};

pub fn run(args: &Args) -> Result<()> {
    let plan = Plan::new(args)?;
    let events = EventChannel::create()?;
    let id = resolve(&events, args)?;
    let desk = Desk::create(&id, events, plan.depth as u32, CREDIT_MESSAGES)?;
    post_receives(&desk)?;
    let pool = register_pool(&desk, &plan)?;
    let peer = connect(&id, &desk, &plan)?;
    report(flow(&desk, &plan, &pool, peer)?);
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

/// For the server's messages about credits, which have no bytes.
fn post_receives(desk: &Desk) -> Result<()> {
    let _stage = stage("post_receives");
    (0..CREDIT_MESSAGES).try_for_each(|_| desk.qp.post_recv_pieces(&[]).map(drop))
}

/// A piece of memory for each request that can be under way. What we READ, our own device writes into it.
fn register_pool(desk: &Desk, plan: &Plan) -> Result<Vec<MemoryRegion>> {
    let _stage = stage("register_pool");
    (0..plan.depth).map(|_| desk.pd.reg_mr(plan.size, Access::LOCAL_WRITE)).collect()
}

/// Takes the plan along, and brings back where the server's memory is.
fn connect(id: &CmId, desk: &Desk, plan: &Plan) -> Result<Metadata> {
    let _stage = stage("connect");
    id.connect(&ConnParam { private_data: plan.encode(), ..CONN_PARAM })?;
    let event = desk.events.wait_for(RDMA_CM_EVENT_ESTABLISHED)?;
    let peer = Metadata::decode(event.private_data());
    event.ack();
    peer
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

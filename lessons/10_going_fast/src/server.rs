//! The server. Most operations need nothing of it but its memory. SENDs use up receives, which it posts again.

use std::os::fd::AsFd;

use common::{args::Args, cm::*, deadline::Deadline, wc::*, *};

use crate::plan::{Op, Plan};
use crate::{wait::Waiter, Desk, ACK_TIMEOUT, CONN_PARAM, CREDIT_MESSAGES};

pub fn run(args: &Args) -> Result<()> {
    let listening = EventChannel::create()?;
    let listener = listen(&listening, args)?;
    let mut clients = args.clients();
    while clients.more() {
        let event = listening.wait_for(RDMA_CM_EVENT_CONNECT_REQUEST)?;
        // The private data belongs to the event, so we copy it before the ack.
        let asked = ConnParam { private_data: event.private_data().to_vec(), ..event.conn_param() };
        let id = event.id();
        event.ack();
        clients.note(id.peer_name(), serve(&id, &asked));
    }
    drop(listener);
    say!("server shut-down is complete");
    clients.result()
}

fn listen(channel: &EventChannel, args: &Args) -> Result<CmId> {
    let _stage = stage("listen");
    address::try_each(&args.address, args.port, |address| {
        let id = channel.create_id()?;
        id.bind_addr(address)?;
        id.listen(8)?;
        say!("listening on {address}");
        Ok(id)
    })
}

fn serve(id: &CmId, asked: &ConnParam) -> Result<()> {
    let _stage = stage("serve");
    let plan = read_plan(id, asked)?;
    // Its events get a channel of their own, so that the next client's request can wait in the listener's.
    let events = EventChannel::create()?;
    id.migrate_id(&events)?;
    let desk = Desk::create(id, events, CREDIT_MESSAGES, plan.receives as u32)?;
    let memory = register_memory(&desk, &plan)?;
    if plan.op == Op::Send {
        (0..plan.receives).try_for_each(|at| post_receive(&desk, &plan, &memory, at))?;
    }
    accept(id, &desk, asked, Metadata::of(&memory))?;
    if plan.op == Op::Send {
        take_all(&desk, &plan, &memory)?;
    }
    // WRITEs, READs and atomics are our device's business. This program sleeps until the client hangs up.
    goodbye(id, &desk)
}

fn read_plan(id: &CmId, asked: &ConnParam) -> Result<Plan> {
    let why = "only clients of lesson 10 come in here";
    let Some(plan) = Plan::decode(&asked.private_data) else {
        id.reject(why.as_bytes())?;
        return Err(Error::content(why, "Run lesson 10 on both sides"));
    };
    Ok(plan)
}

/// Each receive has a part of its own for a SEND's bytes. Everything else goes to the start.
fn register_memory(desk: &Desk, plan: &Plan) -> Result<MemoryRegion> {
    let parts = if plan.op == Op::Send { plan.receives } else { 1 };
    let open = Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
    desk.pd.reg_mr(plan.size * parts, Access::LOCAL_WRITE | open)
}

fn post_receive(desk: &Desk, plan: &Plan, memory: &MemoryRegion, at: usize) -> Result<()> {
    let from = at % plan.receives * plan.size;
    desk.qp.post_recv(memory, from..from + plan.size).map(drop)
}

fn accept(id: &CmId, desk: &Desk, asked: &ConnParam, memory: Metadata) -> Result<()> {
    let _stage = stage("accept");
    id.set_ack_timeout(ACK_TIMEOUT)?;
    let private_data = memory.encode().to_vec();
    id.accept(&ConnParam { private_data, ..CONN_PARAM.clamped_to(asked) })?;
    desk.events.wait_for(RDMA_CM_EVENT_ESTABLISHED)?.ack();
    Ok(())
}

/// Takes what comes and posts a new receive for each. With credits it says so whenever half of them are free again, because
/// a message for each one would double the packets.
fn take_all(desk: &Desk, plan: &Plan, memory: &MemoryRegion) -> Result<()> {
    let _stage = stage("take_all");
    let mut waiter = Waiter::new(desk, plan.looks);
    let half = (plan.receives / 2).max(1);
    let (mut taken, mut told) = (0, 0);
    while taken < plan.count {
        // Our own messages about credits complete here as well.
        if waiter.next()?.opcode() != Some(IBV_WC_RECV) {
            continue;
        }
        post_receive(desk, plan, memory, taken)?;
        taken += 1;
        // The client already has credits for its last requests, and may hang up as soon as they're done.
        if plan.credits && taken - told == half && told + plan.receives < plan.count {
            desk.qp.post_send(&SendWr::new(Operation::SendImm(half as u32), &[]))?;
            told = taken;
        }
    }
    Ok(())
}

/// Nothing that the client does needs our help, however long it takes. But a client whose machine has gone says no goodbye, so
/// now and then we ask with a WRITE of no bytes, which needs no memory and no key (IBTA volume 1, C9-88). If it completes,
/// the client's device is there.
fn goodbye(id: &CmId, desk: &Desk) -> Result<()> {
    let _stage = stage("goodbye");
    let nothing = SendWr::new(Operation::Write(Metadata::REFUSAL), &[]);
    let wait = || Deadline::answer("the client's goodbye").wait_readable(&[desk.events.as_fd()]);
    while let Err(Error::Deadline { .. }) = wait() {
        let wr_id = desk.qp.post_send(&nothing)?;
        desk.cq.wait_for_or_cm_event(wr_id, &desk.events, "a sign of life of the client's device")?;
    }
    desk.events.wait_for(RDMA_CM_EVENT_DISCONNECTED)?.ack();
    id.disconnect()
}

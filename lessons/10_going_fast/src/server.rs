//! The server: its memory is what most operations need of it. SENDs take receives, which it posts anew.

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
    // Its events get a channel of their own: the next client's knock waits at the listener's.
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

/// A SEND's bytes go into its receive's own part; all else goes to the start.
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

/// Takes what comes, posts a new receive for each, and with credits says so when half of them are free again: a word for each
/// would be twice the packets.
fn take_all(desk: &Desk, plan: &Plan, memory: &MemoryRegion) -> Result<()> {
    let _stage = stage("take_all");
    let mut waiter = Waiter::new(desk, plan.looks);
    let half = (plan.receives / 2).max(1);
    let (mut taken, mut told) = (0, 0);
    while taken < plan.count {
        // Our own words complete here, too.
        if waiter.next()?.opcode() != Some(IBV_WC_RECV) {
            continue;
        }
        post_receive(desk, plan, memory, taken)?;
        taken += 1;
        // The last requests need no word: they have their credits, and the client may hang up after them.
        if plan.credits && taken - told == half && told + plan.receives < plan.count {
            desk.qp.post_send(&SendWr::new(Operation::SendImm(half as u32), &[]))?;
            told = taken;
        }
    }
    Ok(())
}

/// However long the client works: nothing of what it does needs a word of ours. But a client whose machine is gone says no
/// goodbye. So a WRITE of no bytes, which needs no memory and no key (IBTA volume 1, C9-88), asks now and then: if it
/// completes, the client's device is there.
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

//! Drives the machine: waits for completions, tells the machine what they mean, and does what it says.

use common::args::Mode;
use common::narrate::preview;
use common::wc::{IBV_WC_RECV, IBV_WC_SEND};
use common::{
    info, say, stage, Access, Error, EventChannel, MemoryRegion, Metadata, Result, SendWr, Woken, WorkCompletion,
};

use crate::machine::{Action, Event, Role, State};
use crate::message::{Message, MAX_LEN};
use crate::Resources;

/// The length of each side's two buffers, in bytes.
const BUFFER_LEN: usize = 64;

/// An MR and a DONE: so many messages come from the peer.
const MESSAGES: usize = 2;

/// More receives than the peer has messages. They are still posted when the connection ends, and come back flushed.
const SPARES: usize = 4;

/// How the exchange ended.
pub struct Outcome {
    /// Where the machine stood. If it was not done, the peer has hung up in the middle.
    state: State,
    /// The receives that are still posted.
    pub posted: Vec<u64>,
}

/// The memory of one side.
pub struct Buffers {
    /// What the peer's device reaches: it WRITEs here, or READs from here.
    exposed: MemoryRegion,
    /// What only our own device reaches: the source of our WRITE, or the destination of our READ.
    private: MemoryRegion,
    /// Where the peer's messages arrive, one after the other.
    incoming: MemoryRegion,
    /// Where our message lies while it is sent: one at a time.
    outgoing: MemoryRegion,
}

/// Our words go where they are taken from: by our WRITE from the private buffer, by the peer's READ from the exposed one.
pub fn register_buffers(resources: &Resources, mode: Mode, words: &str) -> Result<Buffers> {
    stage("register_buffers");
    let (exposed, private) = match mode {
        Mode::Write => (Access::LOCAL_WRITE | Access::REMOTE_WRITE, Access::LOCAL_READ),
        Mode::Read => (Access::REMOTE_READ, Access::LOCAL_WRITE),
    };
    let mut buffers = Buffers {
        exposed: resources.pd.reg_mr(BUFFER_LEN, exposed)?,
        private: resources.pd.reg_mr(BUFFER_LEN, private)?,
        incoming: resources.pd.reg_mr((MESSAGES + SPARES) * MAX_LEN, Access::LOCAL_WRITE)?,
        outgoing: resources.pd.reg_mr(MAX_LEN, Access::LOCAL_READ)?,
    };
    match mode {
        Mode::Write => buffers.private.write(0, words.as_bytes())?,
        Mode::Read => buffers.exposed.write(0, words.as_bytes())?,
    }
    Ok(buffers)
}

/// All receives are posted before connect and accept, so that no message of the peer finds none. Returns their numbers,
/// in the order in which they will be used.
pub fn post_receives(resources: &Resources, buffers: &Buffers) -> Result<Vec<u64>> {
    stage("post_receives");
    let slots = (0..MESSAGES + SPARES).map(|slot| slot * MAX_LEN..(slot + 1) * MAX_LEN);
    slots.map(|slot| resources.qp.post_recv(&buffers.incoming, slot)).collect()
}

/// Runs the machine until both sides are done, or the peer hangs up.
pub fn exchange(
    role: Role,
    mode: Mode,
    channel: &EventChannel,
    resources: &Resources,
    buffers: &mut Buffers,
    receives: &[u64],
) -> Result<Outcome> {
    stage("exchange");
    let mut state = State::START;
    let mut used = 0;
    let mut theirs = Metadata::REFUSAL;
    if role == Role::Client {
        perform(Action::SendMr, mode, resources, buffers, &theirs)?;
    }
    while !state.is_done() {
        let Some(batch) = next_completions(resources, channel, state)? else { break };
        // A whole batch: the event that woke us may stand for several completions, and will not come again for them.
        for wc in batch {
            let event = interpret(&wc.into_success()?, buffers, receives, &mut theirs)?;
            if matches!(event, Event::MrReceived | Event::DoneReceived) {
                used += 1;
            }
            let Some((next, action)) = state.next(role, event) else { return Err(out_of_order(state, event)) };
            info!("state: {state} + {event:?} → {next}");
            state = next;
            if let Some(action) = action {
                perform(action, mode, resources, buffers, &theirs)?;
            }
        }
    }
    Ok(Outcome { state, posted: receives[used..].to_vec() })
}

/// Arm, poll, and only then sleep: a completion that comes after the poll finds the CQ armed and wakes us; one that came
/// before is found by the poll. In the other order it could fall between the two, and we would sleep for ever.
///
/// None: no completion came, but a CM event. While we are connected that can only be the peer's goodbye.
fn next_completions(
    resources: &Resources,
    channel: &EventChannel,
    state: State,
) -> Result<Option<Vec<WorkCompletion>>> {
    loop {
        resources.cq.req_notify()?;
        let batch = resources.cq.poll()?;
        if !batch.is_empty() {
            return Ok(Some(batch));
        }
        let awaited = format!("a completion in the state {state}");
        if resources.channel.get_cq_event_or_cm_event(channel, &awaited)? == Woken::CmEvent {
            // The goodbye comes on another way than the data, and may have overtaken it.
            let last = resources.cq.poll()?;
            if !last.is_empty() {
                return Ok(Some(last));
            }
            info!("the peer hung up in the state {state}");
            return Ok(None);
        }
    }
}

/// What a completion means. A receive's message says which one it is; a SEND's completion does not need to.
fn interpret(wc: &WorkCompletion, buffers: &Buffers, receives: &[u64], theirs: &mut Metadata) -> Result<Event> {
    match wc.opcode() {
        Some(IBV_WC_SEND) => Ok(Event::SendCompleted),
        Some(IBV_WC_RECV) => {
            let slot = receives.iter().position(|wr_id| *wr_id == wc.wr_id).unwrap_or_default() * MAX_LEN;
            let bytes = buffers.incoming.read(slot..slot + wc.byte_len().unwrap_or_default())?;
            match Message::decode(&bytes)? {
                Message::Mr(metadata) => {
                    *theirs = metadata;
                    Ok(Event::MrReceived)
                }
                Message::Done => Ok(Event::DoneReceived),
            }
        }
        _ => Ok(Event::RdmaCompleted),
    }
}

/// What the machine asks for. Each is one request, and one request is under way at a time, so `outgoing` is free again.
fn perform(action: Action, mode: Mode, resources: &Resources, buffers: &mut Buffers, theirs: &Metadata) -> Result<()> {
    match (action, mode) {
        (Action::SendMr, _) => send(resources, buffers, Message::Mr(Metadata::of(&buffers.exposed))),
        (Action::SendDone, _) => send(resources, buffers, Message::Done),
        (Action::PostRdma, _) if (theirs.len as usize) < BUFFER_LEN => Err(too_short(theirs)),
        (Action::PostRdma, Mode::Write) => {
            let request = SendWr::rdma_write(&buffers.private, 0..BUFFER_LEN, theirs);
            resources.qp.post_send(&request).map(drop)
        }
        (Action::PostRdma, Mode::Read) => {
            let request = SendWr::rdma_read(&buffers.private, 0..BUFFER_LEN, theirs);
            resources.qp.post_send(&request).map(drop)
        }
    }
}

fn send(resources: &Resources, buffers: &mut Buffers, message: Message) -> Result<()> {
    let bytes = message.encode();
    buffers.outgoing.write(0, &bytes)?;
    resources.qp.post_send(&SendWr::send(&buffers.outgoing, 0..bytes.len())).map(drop)
}

/// What came over: by the peer's WRITE into the exposed buffer, or by our READ into the private one.
pub fn show_words(mode: Mode, buffers: &Buffers) -> Result<()> {
    stage("show_words");
    let region = match mode {
        Mode::Write => &buffers.exposed,
        Mode::Read => &buffers.private,
    };
    say!("the peer's words: {}", preview(&region.read(0..BUFFER_LEN)?));
    Ok(())
}

/// An exchange that ended early is an error, but its cause is the peer.
pub fn check_done(outcome: &Outcome) -> Result<()> {
    if outcome.state.is_done() {
        return Ok(());
    }
    let what = format!("the peer hung up in the state {}, and the flushed receives echo that", outcome.state);
    Err(Error::content(what, "The cause is on the other side: look at its log"))
}

fn out_of_order(state: State, event: Event) -> Error {
    let what = format!("{event:?} cannot come in the state {state}");
    Error::content(what, "The peer breaks the protocol: check that both sides run lesson 07")
}

fn too_short(theirs: &Metadata) -> Error {
    let what = format!("the peer's buffer has {} bytes, and {BUFFER_LEN} are needed", theirs.len);
    Error::content(what, "Check that both sides run lesson 07")
}

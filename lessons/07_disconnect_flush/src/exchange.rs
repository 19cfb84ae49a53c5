//! Drives the machine: waits for completions, tells the machine what they mean, and does what it says.

use common::args::Args;
use common::narrate::preview;
use common::wc::{IBV_WC_RECV, IBV_WC_SEND};
use common::{info, say, stage, Error, EventChannel, MemoryRegion, Metadata, Result, WorkCompletion};

use crate::machine::{Action, Event, Role, State};
use crate::memory::{check_room, read, register_buffer, register_source, write};
use crate::{completions, message, read_metadata, send, PostedReceive, Resources, MODE, OWN_LEN};

pub struct Buffers {
    /// What we have for the peer. Our WRITE takes it from here, or the peer's READ does.
    pub source: MemoryRegion,
    /// Where the peer's bytes come to, by the peer's WRITE or by our READ.
    pub destination: MemoryRegion,
}

pub fn register_buffers(resources: &Resources, args: &Args) -> Result<Buffers> {
    Ok(Buffers { source: register_source(resources, args)?, destination: register_buffer(resources, OWN_LEN)? })
}

/// What one side brings to the exchange.
pub struct Exchange<'a> {
    pub role: Role,
    pub args: &'a Args,
    pub resources: &'a Resources,
    pub channel: &'a EventChannel,
    pub buffers: &'a Buffers,
}

impl Exchange<'_> {
    /// Runs the machine until both sides are done, and strikes each completed receive off the list `posted`.
    pub fn run(&self, receives: &[PostedReceive], posted: &mut Vec<u64>) -> Result<()> {
        let _stage = stage("exchange");
        let mut state = State::START;
        let mut theirs = Metadata::REFUSAL;
        if self.role == Role::Client {
            self.perform(Action::SendMr, &theirs)?;
        }
        while !state.is_done() {
            let batch = completions(self.resources, self.channel, &format!("a completion in the state {state}"))?;
            // The peer hung up, which it does when it has our DONE. If we also have its DONE, nothing but the ACK was lost.
            let Some(batch) = batch else {
                return if state.lacks_only_an_ack() { Ok(()) } else { Err(hung_up(state)) };
            };
            // Take the whole batch, because the event that woke us may stand for several completions and won't come again.
            posted.retain(|wr_id| batch.iter().all(|wc| wc.wr_id != *wr_id));
            for wc in batch {
                // Only an echo. The cause comes with another status, or as a goodbye.
                if wc.is_flush() {
                    continue;
                }
                let event = interpret(&wc.into_success()?, receives, &mut theirs)?;
                let Some((next, action)) = state.next(self.role, event) else { return Err(out_of_order(state, event)) };
                info!("state: {state} + {event:?} → {next}");
                state = next;
                if let Some(action) = action {
                    self.perform(action, &theirs)?;
                }
            }
        }
        Ok(())
    }

    /// Does what the machine asks for. That's one request, and its completion will be the next event of our own.
    fn perform(&self, action: Action, theirs: &Metadata) -> Result<()> {
        let Self { resources, buffers, .. } = self;
        let writes = self.args.text(&MODE) == "write";
        match action {
            Action::SendMr => {
                let ours = Metadata::of(if writes { &buffers.destination } else { &buffers.source });
                info!("our metadata: {ours}");
                send(resources, &ours.encode())
            }
            Action::PostRdma if writes => {
                check_room(&buffers.source, theirs)?;
                write(resources, &buffers.source, theirs)
            }
            Action::PostRdma => read(resources, &buffers.destination, theirs),
            Action::SendDone => {
                let side = if self.role == Role::Client { "active/client" } else { "passive/server" };
                send(resources, format!("message from {side} side with pid {:07}", std::process::id()).as_bytes())
            }
        }
        .map(drop)
    }
}

/// What a completion means. Messages arrive in order and each takes the oldest receive, so the first one is the MR.
fn interpret(wc: &WorkCompletion, receives: &[PostedReceive], theirs: &mut Metadata) -> Result<Event> {
    match (wc.opcode(), receives.iter().position(|receive| receive.wr_id == wc.wr_id)) {
        (Some(IBV_WC_RECV), Some(0)) => {
            *theirs = read_metadata(&message(&receives[0], wc)?)?;
            Ok(Event::MrReceived)
        }
        (Some(IBV_WC_RECV), Some(later)) => {
            say!("received message: {}", preview(&message(&receives[later], wc)?));
            Ok(Event::DoneReceived)
        }
        (Some(IBV_WC_SEND), _) => Ok(Event::SendCompleted),
        _ => Ok(Event::RdmaCompleted),
    }
}

fn hung_up(state: State) -> Error {
    Error::content(format!("the connection ended in the state {state}"), "The cause may be in the other side's log")
}

fn out_of_order(state: State, event: Event) -> Error {
    Error::content(format!("{event:?} cannot come in the state {state}"), "Check that both sides run lesson 07")
}

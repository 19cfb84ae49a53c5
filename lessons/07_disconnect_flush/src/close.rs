//! The end of a connection: hang up, collect what comes back, and tell the cause from its echoes.
//!
//! `rdma_disconnect` moves the QP to ERR. Every request that isn't finished then completes with WR_FLUSH_ERR, which means "not
//! known to be done": a SEND may have arrived all the same. Such a completion says nothing about the cause, because it only
//! echoes whatever moved the QP to ERR. Look for the first completion with another status. If there is none, the connection
//! was simply closed.

use common::cm::RDMA_CM_EVENT_DISCONNECTED;
use common::{say, stage, CmId, EventChannel, Result, WorkCompletion};

use crate::Resources;

/// Hangs up, and collects the receives that are still `posted`. Whoever goes first sends the DisconnectRequest, and the other
/// side waits for it and answers.
pub fn close(goes_first: bool, id: &CmId, channel: &EventChannel, resources: &Resources, posted: &[u64]) -> Result<()> {
    let _stage = stage("close");
    if !goes_first {
        channel.wait_for(RDMA_CM_EVENT_DISCONNECTED)?.ack();
    }
    id.disconnect()?;
    resources.qp.dump();
    drain(resources, posted)?;
    if goes_first {
        channel.wait_for(RDMA_CM_EVENT_DISCONNECTED)?.ack();
    }
    Ok(())
}

/// Waits until each receive is accounted for. If the goodbye caught a SEND under way, that may come back here as well.
fn drain(resources: &Resources, posted: &[u64]) -> Result<()> {
    let _stage = stage("drain");
    let mut drained = Vec::new();
    while posted.iter().any(|wr_id| !drained.iter().any(|wc: &WorkCompletion| wc.wr_id == *wr_id)) {
        resources.cq.req_notify()?;
        let batch = resources.cq.poll()?;
        if batch.is_empty() {
            resources.channel.get_cq_event("the receives that the disconnect flushes")?;
        }
        drained.extend(batch);
    }
    let flushed = drained.iter().filter(|wc| wc.is_flush() && posted.contains(&wc.wr_id)).count();
    say!("{flushed} receives came back flushed");
    // The first failure that isn't a flush is the cause. We look at nothing but the status, because the opcode of a failed
    // completion is undefined.
    match drained.iter().find(|wc| !wc.is_success() && !wc.is_flush()) {
        Some(cause) => Err(cause.to_error()),
        None => Ok(()),
    }
}

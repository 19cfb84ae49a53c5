//! The end of a connection: hang up, collect what comes back, and tell the cause from its echoes.
//!
//! `rdma_disconnect` moves the QP to ERR. Every request that is not finished then completes with WR_FLUSH_ERR: "not known
//! to be done". A SEND may have arrived all the same. Such a completion is no fault, and it tells nothing about the cause:
//! it is an echo of what moved the QP to ERR. Look for the first completion with another status; if there is none, the
//! connection simply ended.

use common::cm::RDMA_CM_EVENT_DISCONNECTED;
use common::{say, stage, CmId, EventChannel, Result, WorkCompletion};

use crate::Resources;

/// Closes a connection on which the receives `posted` are still posted. Who goes first sends the DisconnectRequest;
/// the other waits for it, and answers.
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

/// Waits until each receive is accounted for. A SEND that the goodbye caught under way comes back here, too.
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
    // The first failure that is no echo. Nothing but the status is looked at: with an error the opcode is undefined.
    match drained.iter().find(|wc| !wc.is_success() && !wc.is_flush()) {
        Some(cause) => Err(cause.to_error()),
        None => Ok(()),
    }
}

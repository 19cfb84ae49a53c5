//! The puzzle. A client reports: "my SEND succeeded, then my RECV failed with a flush error, then I was disconnected. Is
//! it right to return when the status is a flush error?"
//!
//! The question points at the wrong place. This server, on the other side, is the cause: its event loop has no case for
//! ESTABLISHED, takes it for an unknown event, and dies. Its end hangs up on the client; the client answers with its own
//! `rdma_disconnect`, which flushes its posted receives; and the flush is what the client sees. The client's SEND succeeded
//! all the same, for the server's *device* had received it before the server's program gave up.

use common::cm::event::event_name;
use common::cm::{RDMA_CM_EVENT_CONNECT_REQUEST, RDMA_CM_EVENT_DISCONNECTED};
use common::{stage, Error, EventChannel, Result};

use crate::Resources;

/// An event loop with one case forgotten.
pub fn forget_established(channel: &EventChannel, resources: &Resources, receives: &[u64]) -> Result<()> {
    stage("forget_established");
    // The client's first message is here already: its device has sent the ACK, and so the client's SEND succeeds.
    if let Some(first) = receives.first() {
        resources.cq.wait_for(*first, "a RECV with the client's MR")?;
    }
    loop {
        let event = channel.get_cm_event()?;
        match event.event() {
            RDMA_CM_EVENT_CONNECT_REQUEST | RDMA_CM_EVENT_DISCONNECTED => continue,
            // RDMA_CM_EVENT_ESTABLISHED belongs here. It needs no work, but it must not be an error.
            unknown => {
                let what = format!("on_event: unknown event {}", event_name(unknown));
                return Err(Error::content(
                    what,
                    "Give the event loop a case for it: start the server without the flag",
                ));
            }
        }
    }
}

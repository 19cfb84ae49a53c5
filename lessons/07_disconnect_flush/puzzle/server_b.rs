//! Server b.

use common::cm::*;
use common::{CmEvent, Result};

use super::{Next, Server};

pub fn on_event(server: &mut Server, event: &CmEvent) -> Result<Next> {
    match event.event() {
        RDMA_CM_EVENT_CONNECT_REQUEST => server.on_connect_request(event),
        RDMA_CM_EVENT_DISCONNECTED => server.on_disconnect(),
        _ => Ok(Next::GoOn),
    }
}

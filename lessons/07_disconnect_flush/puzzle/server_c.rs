//! Server c.

use common::cm::*;
use common::{CmEvent, Error, Result};

use super::{Next, Server};

pub fn on_event(server: &mut Server, event: &CmEvent) -> Result<Next> {
    match event.event() {
        RDMA_CM_EVENT_CONNECT_REQUEST => server.on_connect_request(event),
        RDMA_CM_EVENT_ESTABLISHED => server.on_connection(),
        RDMA_CM_EVENT_DISCONNECTED => server.on_disconnect(),
        unknown => {
            let what = format!("on_event: unknown event {unknown}");
            Err(Error::content(what, "Look into on_event"))
        }
    }
}

//! The other side: a host that accepts whoever comes, and a guest that connects again and again. The host is one event loop
//! for many ids on one channel.

use std::collections::HashMap;
use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;

use common::args::PORT;
use common::cm::*;
use common::*;

/// The private data of a guest that was the last.
pub const LAST: &[u8] = b"the last";

/// What a connection needs.
pub struct Resources {
    pub qp: QueuePair,
    pub cq: CompletionQueue,
    pub pd: ProtectionDomain,
    pub region: MemoryRegion,
}

pub fn resources(id: &CmId) -> Result<Resources> {
    let context = id.verbs()?;
    let pd = context.alloc_pd()?;
    let completions = context.create_comp_channel()?;
    let cq = completions.create_cq(16)?;
    let cap = QpCap { max_send_wr: 4, max_recv_wr: 4, max_inline_data: 16, ..QpCap::SMALL };
    let qp = id.create_qp(&pd, &QpInitAttr::new(&cq, cap))?;
    let region = pd.reg_mr(4096, Access::LOCAL_WRITE)?;
    Ok(Resources { qp, cq, pd, region })
}

/// Modest, so that nothing is tried for long.
pub fn conn_param() -> ConnParam {
    ConnParam { responder_resources: 1, initiator_depth: 1, retry_count: 1, rnr_retry_count: 1, ..Default::default() }
}

pub fn listen(channel: &EventChannel) -> Result<CmId> {
    let listener = channel.create_id()?;
    listener.bind_addr(SocketAddr::from((Ipv6Addr::UNSPECIFIED, PORT)))?;
    listener.listen(32)?;
    Ok(listener)
}

/// An id that knows its device and its route.
pub fn resolve(channel: &EventChannel, address: &str) -> Result<CmId> {
    let id = channel.create_id()?;
    id.resolve_addr(SocketAddr::new(ip(address)?, PORT))?;
    channel.wait_for(RDMA_CM_EVENT_ADDR_RESOLVED)?.ack();
    id.resolve_route()?;
    channel.wait_for(RDMA_CM_EVENT_ROUTE_RESOLVED)?.ack();
    Ok(id)
}

pub fn ip(address: &str) -> Result<std::net::IpAddr> {
    address.parse().map_err(|_| Error::content(format!("{address} is no address"), "Give one"))
}

/// Accepts everybody. Whoever hangs up is answered, and its id, found by its hash, is dropped with all it has.
pub fn host() -> Result<()> {
    let channel = EventChannel::create()?;
    let _listener = listen(&channel)?;
    let mut guests: HashMap<CmId, Resources> = HashMap::new();
    // Longer than the kernel (6.1) may take to destroy a guest's id that has just knocked: 100 s.
    deadline::set(Duration::from_secs(240));
    loop {
        let event = channel.get_cm_event()?;
        let id = event.id();
        match event.event() {
            // A guest that has gone already is no concern of the others: nor is the last, which waits for no answer.
            RDMA_CM_EVENT_CONNECT_REQUEST if event.private_data().starts_with(LAST) => {
                let said = id.reject(b"bye");
                info!("{said:?}");
                return Ok(());
            }
            RDMA_CM_EVENT_CONNECT_REQUEST => match accept(&id, &event.conn_param()) {
                Ok(resources) => drop(guests.insert(id, resources)),
                Err(error) => info!("not accepted: {error}"),
            },
            RDMA_CM_EVENT_DISCONNECTED => {
                id.disconnect().unwrap_or_default();
                guests.remove(&id);
            }
            _ => {}
        }
    }
}

fn accept(id: &CmId, requested: &ConnParam) -> Result<Resources> {
    let resources = resources(id)?;
    resources.qp.post_recv(&resources.region, 0..64)?;
    id.accept(&conn_param().clamped_to(requested))?;
    Ok(resources)
}

/// Connects until the server's last words.
pub fn guest(address: &str) -> Result<()> {
    deadline::set(Duration::from_secs(2));
    loop {
        let channel = EventChannel::create()?;
        let id = resolve(&channel, address)?;
        let _resources = resources(&id)?;
        id.connect(&conn_param())?;
        // Whatever comes, for as long as something comes.
        while let Ok(event) = channel.get_cm_event() {
            match event.event() {
                RDMA_CM_EVENT_REJECTED if event.private_data().starts_with(LAST) => return Ok(()),
                // Nobody listens any more.
                RDMA_CM_EVENT_REJECTED if event.status() == 8 => {
                    return Err(event.into_error(RDMA_CM_EVENT_ESTABLISHED))
                }
                RDMA_CM_EVENT_REJECTED | RDMA_CM_EVENT_DISCONNECTED => break,
                _ => {}
            }
        }
    }
}

//! Every function of an id and of its channel.

use std::net::{Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;

use common::cm::*;
use common::*;

use crate::peers::{conn_param, resources, Resources};

/// An id in some state, and what it stands on.
pub struct Bench {
    // The QP goes first.
    pub resources: Option<Resources>,
    pub id: CmId,
    pub channel: EventChannel,
    /// An address that can be reached.
    pub to: SocketAddr,
    /// An event of the id that is taken and not acknowledged.
    pub event: Option<CmEvent>,
}

pub type Try = (&'static str, fn(&Bench) -> Result<()>);

/// Every function. Each gets a new id in the state.
pub const TRIES: &[Try] = &[
    ("bind_addr", |bench| bench.id.bind_addr(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)))),
    ("listen", |bench| bench.id.listen(1)),
    ("resolve_addr", |bench| bench.id.resolve_addr(bench.to)),
    ("resolve_route", |bench| bench.id.resolve_route()),
    ("set_ack_timeout", |bench| bench.id.set_ack_timeout(17)),
    ("connect", |bench| bench.id.connect(&conn_param())),
    ("accept", |bench| bench.id.accept(&conn_param())),
    ("connect with too much", |bench| bench.id.connect(&ConnParam { responder_resources: 255, ..conn_param() })),
    ("accept with too much", |bench| bench.id.accept(&ConnParam { responder_resources: 255, ..conn_param() })),
    ("reject", |bench| bench.id.reject(b"no")),
    ("disconnect", |bench| bench.id.disconnect()),
    ("migrate_id", |bench| bench.id.migrate_id(&EventChannel::create()?)),
    ("migrate_id to where it is", |bench| bench.id.migrate_id(&bench.channel)),
    ("peer_addr", |bench| {
        info!("{:?} {:?}", bench.id.local_addr(), bench.id.peer_addr());
        Ok(())
    }),
    ("verbs", |bench| bench.id.verbs().map(drop)),
    ("wait_for", |bench| bench.channel.wait_for(RDMA_CM_EVENT_ESTABLISHED).map(CmEvent::ack)),
    ("wait_for_one_of none", |bench| bench.channel.wait_for_one_of(&[]).map(CmEvent::ack)),
    ("get_cm_event", |bench| bench.channel.get_cm_event().map(CmEvent::ack)),
    ("try_get_cm_event", |bench| bench.channel.try_get_cm_event().map(drop)),
    ("is_readable", |bench| {
        info!("{} {:?}", deadline::is_readable(&bench.channel), bench.channel.as_fd());
        Ok(())
    }),
    ("resources", |bench| resources(&bench.id).map(drop)),
    ("another QP of the same id", |bench| {
        let first = resources(&bench.id)?;
        let cap = QpCap::SMALL;
        bench.id.create_qp(&first.pd, &QpInitAttr::new(&first.cq, cap)).map(drop)
    }),
    ("a QP from another device's parts", |bench| {
        let context = Context::open("rxe0")?;
        let pd = context.alloc_pd()?;
        let cq = context.create_cq(4)?;
        bench.id.create_qp(&pd, &QpInitAttr::new(&cq, QpCap::SMALL)).map(drop)
    }),
    ("create_id and drop", |bench| bench.channel.create_id().map(drop)),
    ("post", |bench| match &bench.resources {
        Some(has) => has.qp.post_send(&SendWr::send(&has.region, 0..8)).map(drop),
        None => Ok(()),
    }),
    ("wait for a completion", |bench| match &bench.resources {
        Some(has) => {
            let wr_id = has.qp.post_recv(&has.region, 0..8)?;
            has.cq.wait_for_or_cm_event(wr_id, &bench.channel, "a message").map(drop)
        }
        None => Ok(()),
    }),
];

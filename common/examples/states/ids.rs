//! Ids in every state, and every function of an id and of its channel in each of them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

use common::args::PORT;
use common::cm::*;
use common::*;

use crate::peers::{conn_param, ip, listen, resolve, resources, Resources, LAST};
use crate::{nothing_left_open, open_now, twice};

/// An id in some state, and what it stands on.
struct Bench {
    // The QP goes first.
    resources: Option<Resources>,
    id: CmId,
    channel: EventChannel,
    /// An event of the id that is taken and not acknowledged.
    event: Option<CmEvent>,
}

type Try = (&'static str, fn(&Bench) -> Result<()>);

/// Every function. Each gets a new id in the state.
const TRIES: &[Try] = &[
    ("bind_addr", |bench| bench.id.bind_addr(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)))),
    ("listen", |bench| bench.id.listen(1)),
    ("resolve_addr", |bench| bench.id.resolve_addr(SocketAddr::from((Ipv4Addr::new(10, 47, 91, 1), PORT)))),
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
        QueuePair::create(&bench.id, &first.pd, &QpInitAttr::new(&first.cq, cap)).map(drop)
    }),
    ("a QP from another device's parts", |bench| {
        let context = Context::open("rxe0")?;
        let pd = ProtectionDomain::alloc(&context)?;
        let cq = context.create_cq(4)?;
        QueuePair::create(&bench.id, &pd, &QpInitAttr::new(&cq, QpCap::SMALL)).map(drop)
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

/// The functions in each of these states, each reached anew for each function.
fn try_all(states: &[(&str, &dyn Fn() -> Result<Bench>)]) -> Result<()> {
    // What librdmacm opens once, it keeps.
    drop(states[0].1()?);
    let before = open_now()?;
    for (state, reach) in states {
        for (name, call) in TRIES {
            let bench = reach()?;
            twice(state, name, || call(&bench));
        }
    }
    say!("{} calls returned", states.len() * TRIES.len() * 2);
    nothing_left_open(&before)
}

fn bench(reach: impl Fn(&EventChannel) -> Result<CmId>) -> Result<Bench> {
    let channel = EventChannel::create()?;
    let id = reach(&channel)?;
    Ok(Bench { resources: None, id, channel, event: None })
}

/// The states of an id that nobody has knocked for.
pub fn client(address: &str) -> Result<()> {
    let server = SocketAddr::new(ip(address)?, PORT);
    let local = SocketAddr::new(IpAddr::from([10, 47, 91, 2]), 0);
    let bound = |to: SocketAddr| {
        bench(move |channel| {
            let id = channel.create_id()?;
            id.bind_addr(to)?;
            Ok(id)
        })
    };
    let listening = |to: SocketAddr| {
        let bench = bound(to)?;
        bench.id.listen(1)?;
        Ok(bench)
    };
    let address_asked_for = || {
        let bench = bench(EventChannel::create_id)?;
        bench.id.resolve_addr(server)?;
        Ok(bench)
    };
    let address_resolved = || {
        let bench = address_asked_for()?;
        bench.channel.wait_for(RDMA_CM_EVENT_ADDR_RESOLVED)?.ack();
        Ok(bench)
    };
    let with_qp = || {
        let bench = bench(|channel| resolve(channel, address))?;
        Ok(Bench { resources: Some(resources(&bench.id)?), ..bench })
    };
    let connecting = || {
        let bench: Bench = with_qp()?;
        bench.id.connect(&conn_param())?;
        // Until the answer is there, but not taken. Linux 6.1 has been seen to wait for 100 s in rdma_destroy_id if the
        // id goes in the moment in which its ConnectRequest is being sent.
        std::thread::sleep(Duration::from_millis(20));
        Ok(bench)
    };
    let connected = || {
        let bench = connecting()?;
        bench.channel.wait_for(RDMA_CM_EVENT_ESTABLISHED)?.ack();
        Ok(bench)
    };
    let unacknowledged = || {
        let mut bench = connecting()?;
        bench.event = Some(bench.channel.wait_for(RDMA_CM_EVENT_ESTABLISHED)?);
        Ok(bench)
    };
    let disconnected = || {
        let bench = connected()?;
        bench.id.disconnect()?;
        bench.channel.wait_for(RDMA_CM_EVENT_DISCONNECTED)?.ack();
        Ok(bench)
    };
    let everywhere = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
    try_all(&[
        ("fresh", &|| bench(EventChannel::create_id)),
        ("bound to all", &|| bound(everywhere)),
        ("bound", &|| bound(local)),
        ("listening on all", &|| listening(everywhere)),
        ("listening", &|| listening(local)),
        ("address asked for", &address_asked_for),
        ("address resolved", &address_resolved),
        ("route resolved", &|| bench(|channel| resolve(channel, address))),
        ("with a QP", &with_qp),
        ("connecting", &connecting),
        ("connected", &connected),
        ("connected, event not acknowledged", &unacknowledged),
        ("connected, QP destroyed", &|| Ok(Bench { resources: None, ..connected()? })),
        ("disconnected", &disconnected),
        ("disconnected, QP destroyed", &|| Ok(Bench { resources: None, ..disconnected()? })),
        ("refused", &|| bench(|channel| refused(channel, address))),
    ])?;
    // The host may go.
    let bench = with_qp()?;
    bench.id.connect(&ConnParam { private_data: LAST.to_vec(), ..conn_param() })
}

/// An id that knocked where nobody listens.
fn refused(channel: &EventChannel, address: &str) -> Result<CmId> {
    let id = channel.create_id()?;
    id.resolve_addr(SocketAddr::new(ip(address)?, 9))?;
    channel.wait_for(RDMA_CM_EVENT_ADDR_RESOLVED)?.ack();
    id.resolve_route()?;
    channel.wait_for(RDMA_CM_EVENT_ROUTE_RESOLVED)?.ack();
    id.connect(&conn_param())?;
    channel.wait_for(RDMA_CM_EVENT_REJECTED)?.ack();
    Ok(id)
}

/// The states of an id that came with a knock.
pub fn server() -> Result<()> {
    let listening = EventChannel::create()?;
    let listener = listen(&listening)?;
    // The newest: the guest of an older one may have given up.
    let knock = || {
        let mut knock = listening.wait_for(RDMA_CM_EVENT_CONNECT_REQUEST)?;
        while let Some(event) = listening.try_get_cm_event()? {
            if event.event() == RDMA_CM_EVENT_CONNECT_REQUEST {
                knock = event;
            }
        }
        Ok(knock)
    };
    let knocked = || {
        let event = knock()?;
        let (channel, id) = (EventChannel::create()?, event.id());
        event.ack();
        id.migrate_id(&channel)?;
        Ok(Bench { resources: None, id, channel, event: None })
    };
    let with_qp = || {
        let bench: Bench = knocked()?;
        Ok(Bench { resources: Some(resources(&bench.id)?), ..bench })
    };
    let accepted = || {
        let bench = with_qp()?;
        bench.id.accept(&conn_param())?;
        Ok(bench)
    };
    let established = || {
        let bench = accepted()?;
        bench.channel.wait_for(RDMA_CM_EVENT_ESTABLISHED)?.ack();
        Ok(bench)
    };
    let rejected = || {
        let bench = knocked()?;
        bench.id.reject(b"no")?;
        Ok(bench)
    };
    let disconnected = || {
        let bench = established()?;
        bench.id.disconnect()?;
        Ok(bench)
    };
    try_all(&[
        ("knocked, not acknowledged", &|| {
            let event = knock()?;
            let (channel, id) = (EventChannel::create()?, event.id());
            Ok(Bench { resources: None, id, channel, event: Some(event) })
        }),
        ("knocked", &knocked),
        ("knocked, with a QP", &with_qp),
        ("accepted", &accepted),
        ("established", &established),
        ("established, QP destroyed", &|| Ok(Bench { resources: None, ..established()? })),
        ("rejected", &rejected),
        ("disconnected", &disconnected),
    ])?;
    // A knock may have waited here for so long that its guest has gone. The last word is for one that has not.
    deadline::set(Duration::from_secs(2));
    while let Ok(event) = listening.wait_for(RDMA_CM_EVENT_CONNECT_REQUEST) {
        let id = event.id();
        event.ack();
        info!("{:?}", id.reject(LAST));
    }
    drop(listener);
    Ok(())
}

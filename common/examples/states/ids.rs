//! Ids in every state, reached anew for every function.

use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;

use common::args::PORT;
use common::cm::*;
use common::*;

use crate::id_calls::{Bench, TRIES};
use crate::peers::{conn_param, ip, listen, resolve, resources, LAST};
use crate::{nothing_left_open, open_now, twice};

/// The functions in each of these states, each reached anew for each function.
fn try_all(states: &[(&str, &dyn Fn() -> Result<Bench>)]) -> Result<()> {
    // librdmacm opens a device once, and keeps it.
    if let Some((_, reach)) = states.last() {
        drop(reach()?);
    }
    let before = open_now()?;
    for (state, reach) in states {
        for (name, call) in TRIES {
            // A guest that knocked while the last id was being destroyed may have given up.
            let again = || reach().or_else(|_| reach());
            let bench = again().or_else(|_| again())?;
            twice(state, name, || call(&bench));
            // An id that goes while its ConnectRequest or ConnectReply is still being sent may keep the kernel (Linux 6.1) in
            // rdma_destroy_id for 70 to 100 s.
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    say!("{} calls returned", states.len() * TRIES.len() * 2);
    nothing_left_open(&before)
}

fn bench(to: SocketAddr, reach: impl Fn(&EventChannel) -> Result<CmId>) -> Result<Bench> {
    let channel = EventChannel::create()?;
    let id = reach(&channel)?;
    Ok(Bench { resources: None, id, channel, event: None, to })
}

/// The states of an id that nobody has knocked for.
pub fn client(address: &str) -> Result<()> {
    let server = SocketAddr::new(ip(address)?, PORT);
    // Our device's: from there the server is reached.
    let from = resolve(&EventChannel::create()?, address)?.local_addr();
    let mut local = from.ok_or_else(|| Error::content("an id without an address", "Is there a device?"))?;
    local.set_port(0);
    let bound = |at: SocketAddr| {
        bench(server, move |channel| {
            let id = channel.create_id()?;
            id.bind_addr(at)?;
            Ok(id)
        })
    };
    let listening = |at: SocketAddr| {
        let bench = bound(at)?;
        bench.id.listen(1)?;
        Ok(bench)
    };
    let address_asked_for = || {
        let bench = bench(server, EventChannel::create_id)?;
        bench.id.resolve_addr(server)?;
        Ok(bench)
    };
    let address_resolved = || {
        let bench = address_asked_for()?;
        bench.channel.wait_for(RDMA_CM_EVENT_ADDR_RESOLVED)?.ack();
        Ok(bench)
    };
    let with_qp = || {
        let bench = bench(server, |channel| resolve(channel, address))?;
        Ok(Bench { resources: Some(resources(&bench.id)?), ..bench })
    };
    let connecting = || {
        let bench: Bench = with_qp()?;
        bench.id.connect(&conn_param())?;
        // Until the answer is there, but not taken.
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
        ("fresh", &|| bench(server, EventChannel::create_id)),
        ("bound to all", &|| bound(everywhere)),
        ("bound", &|| bound(local)),
        ("listening on all", &|| listening(everywhere)),
        ("listening", &|| listening(local)),
        ("address asked for", &address_asked_for),
        ("address resolved", &address_resolved),
        ("route resolved", &|| bench(server, |channel| resolve(channel, address))),
        ("with a QP", &with_qp),
        ("connecting", &connecting),
        ("connected", &connected),
        ("connected, event not acknowledged", &unacknowledged),
        ("connected, QP destroyed", &|| Ok(Bench { resources: None, ..connected()? })),
        ("disconnected", &disconnected),
        ("disconnected, QP destroyed", &|| Ok(Bench { resources: None, ..disconnected()? })),
        ("refused", &|| bench(server, |channel| refused(channel, address))),
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
    // These are past resolving.
    let to = SocketAddr::from((Ipv6Addr::LOCALHOST, PORT));
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
        Ok(Bench { resources: None, id, channel, event: None, to })
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
            Ok(Bench { resources: None, id, channel, event: Some(event), to })
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
        let said = id.reject(LAST);
        info!("{said:?}");
    }
    drop(listener);
    Ok(())
}

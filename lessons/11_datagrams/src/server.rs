//! The server is one loop. Requests of all clients come into one queue of receives, and a client is a few bytes in a table. With
//! connections each client also has a queue pair, and those share the receives.

use std::{collections::BTreeMap, os::fd::AsFd};

use common::{args::Args, cm::*, deadline::Deadline, wc::IBV_WC_RECV, *};

use crate::bank::Bank;
use crate::desk::{Desk, Inbox};
use crate::message::{describe, Message};
use crate::{transport, BACKLOG, CONN_PARAM, GROUP, LINGER, MULTICAST, PORT, QKEY, QUEUE, RECEIVES};

pub fn run(args: &Args) -> Result<()> {
    let mut server = Server::listen(args)?;
    while server.sleep()? {
        while let Some(event) = server.events.try_get_cm_event()? {
            // A goodbye takes another path than the requests, so we first answer what came before it.
            server.take_requests()?;
            server.on_event(event)?;
        }
        server.take_requests()?;
        server.tell_group()?;
    }
    server.report();
    Ok(())
}

/// How answers go to a client: to its address, or over a queue pair of its own.
enum Way {
    Datagrams(Destination),
    Connection(CmId, QueuePair),
}

/// Fields are dropped from the top.
struct Server<'a> {
    args: &'a Args,
    bank: Bank,
    /// How many connections have ended.
    hung_up: u32,
    /// By the client's number. With datagrams we know the way only when the first request has come.
    ways: BTreeMap<u32, Way>,
    /// Where the message to the group goes, until it's sent.
    group: Option<Destination>,
    /// None until the first client comes.
    desk: Option<Desk>,
    _listener: CmId,
    events: EventChannel,
    quiet: Deadline,
}

impl<'a> Server<'a> {
    fn listen(args: &'a Args) -> Result<Self> {
        let _stage = stage("listen");
        let events = EventChannel::create()?;
        let _listener = address::try_each(&args.address, args.port, |address| {
            let id = events.create_id_of(transport(args))?;
            id.bind_addr(address)?;
            id.listen(BACKLOG)?;
            say!("listening on {address}");
            Ok(id)
        })?;
        let (bank, ways, quiet) = (Bank::default(), BTreeMap::new(), Deadline::knock("a client"));
        let (hung_up, group, desk) = (0, None, None);
        Ok(Self { args, bank, hung_up, ways, group, desk, _listener, events, quiet })
    }

    /// With datagrams a goodbye is a request like any other. A connection has a goodbye of its own.
    fn is_over(&self) -> bool {
        let gone = if transport(self.args) == PortSpace::Udp { self.bank.goodbyes } else { self.hung_up };
        self.args.count() > 0 && gone >= self.args.count()
    }

    /// Sleeps until there's something to do, and returns false when all is done.
    fn sleep(&self) -> Result<bool> {
        if self.is_over() && transport(self.args) == PortSpace::Tcp {
            return Ok(false);
        }
        let channel = self.desk.iter().map(|desk| desk.channel.as_fd());
        let fds: Vec<_> = std::iter::once(self.events.as_fd()).chain(channel).collect();
        match self.quiet.wait_readable(&fds) {
            // Nobody has asked again, so everybody has heard our answer, or has given up.
            Err(Error::Deadline { .. }) if self.is_over() => Ok(false),
            ready => ready.map(|_| true),
        }
    }

    fn on_event(&mut self, event: CmEvent) -> Result<()> {
        let _stage = stage("on_event");
        let (kind, id, group) = (event.event(), event.id(), event.ud_param());
        event.ack();
        match kind {
            RDMA_CM_EVENT_CONNECT_REQUEST => self.welcome(&id)?,
            RDMA_CM_EVENT_MULTICAST_JOIN => {
                self.group = self.desk.as_ref().map(|desk| desk.address(&group?)).transpose()?;
            }
            RDMA_CM_EVENT_DISCONNECTED => self.part_from(&id)?,
            other => info!("nothing to do for {other}"),
        }
        Ok(())
    }

    /// Names a queue pair. With datagrams it's the same for all, and nothing more will come over this id, so it may go.
    fn welcome(&mut self, id: &CmId) -> Result<()> {
        let _stage = stage("welcome");
        let desk = self.desk.take().map_or_else(|| self.open_desk(id), Ok)?;
        let client = self.bank.admit();
        let param = ConnParam { private_data: Message { client, number: 0, word: 0 }.encode(), ..CONN_PARAM };
        match &desk.inbox {
            Inbox::Own(qp) => id.accept_with(qp, &param)?,
            Inbox::Shared(srq) => {
                let attr = QpInitAttr { srq: Some(srq), ..QpInitAttr::new(&desk.cq, QUEUE) };
                let qp = id.create_qp(&desk.pd, &attr)?;
                id.accept(&param)?;
                self.ways.insert(client, Way::Connection(id.clone(), qp));
            }
        }
        self.desk = Some(desk);
        self.quiet = Deadline::answer("a request");
        Ok(())
    }

    /// On the device that the first client came through. `id->verbs` lives only as long as its id, so we make an id of our own.
    fn open_desk(&self, visitor: &CmId) -> Result<Desk> {
        let keeper = self.events.create_id_of(transport(self.args))?;
        let address = visitor.local_addr().map(|address| (address.ip(), 0).into());
        address.map_or(Ok(()), |address| keeper.bind_addr(address))?;
        // A datagram is at most one packet, and any of our receives may get the longest.
        let longest = visitor.verbs()?.query_port(PORT)?.active_mtu.bytes();
        let desk = Desk::create(&keeper, transport(self.args), true, RECEIVES, longest)?;
        if let (true, Inbox::Own(qp)) = (self.args.flag(&MULTICAST), &desk.inbox) {
            qp.join_multicast(GROUP)?;
        }
        Ok(desk)
    }

    fn take_requests(&mut self) -> Result<()> {
        let Some(desk) = self.desk.take() else { return Ok(()) };
        while let Some((wc, part)) = desk.next()? {
            // If everybody's queue pair breaks, we're done. A connection breaks for one client, and DISCONNECTED tells us.
            let wc = if transport(self.args) == PortSpace::Udp { wc.into_success()? } else { wc };
            match (wc.opcode(), part) {
                (Some(IBV_WC_RECV), Some(part)) => self.answer(&desk, part, &wc)?,
                // An answer was sent. Only a connection would know whether it arrived.
                (_, Some(part)) => desk.post_receive(part)?,
                (_, None) => {}
            }
        }
        self.desk = Some(desk);
        Ok(())
    }

    /// Answers a request out of the part that it came in.
    fn answer(&mut self, desk: &Desk, part: usize, wc: &WorkCompletion) -> Result<()> {
        let _stage = stage("answer");
        let (front, Some(request)) = desk.read(part, wc)? else { return desk.post_receive(part) };
        let Some(word) = self.bank.answer(&request) else { return desk.post_receive(part) };
        if let (Inbox::Own(_), None) = (&desk.inbox, self.ways.get(&request.client)) {
            self.ways.insert(request.client, Way::Datagrams(address_of(desk, &front, wc)?));
        }
        let answer = desk.request(part, &Message { word, ..request })?;
        match (&desk.inbox, self.ways.get(&request.client)) {
            (Inbox::Own(qp), Some(Way::Datagrams(to))) => desk.lend(part, qp.post_send(&answer.to(to))?),
            (_, Some(Way::Connection(_, qp))) => desk.lend(part, qp.post_send(&answer)?),
            _ => desk.post_receive(part)?,
        }
        self.quiet = match self.is_over() {
            true => Deadline::within(LINGER, "nobody who asks again"),
            false => Deadline::answer("a request. Has a client gone without a goodbye? Of datagrams nobody is told"),
        };
        Ok(())
    }

    /// A connection's client has hung up.
    fn part_from(&mut self, id: &CmId) -> Result<()> {
        let _stage = stage("part_from");
        id.disconnect()?;
        self.take_requests()?;
        self.ways.retain(|_, way| !matches!(way, Way::Connection(own, _) if own == id));
        self.hung_up += 1;
        Ok(())
    }

    /// When all have said goodbye: one datagram for all. The network makes the copies.
    fn tell_group(&mut self) -> Result<()> {
        let (Some(desk), true) = (&self.desk, self.is_over()) else { return Ok(()) };
        let (Inbox::Own(qp), Some(group)) = (&desk.inbox, self.group.take()) else { return Ok(()) };
        let _stage = stage("tell_group");
        qp.post_send(&SendWr::new(Operation::SendImm(self.bank.coins()), &[]).to(&group)).map(drop)
    }

    /// What it did, and what that took. Each number comes with its name.
    fn report(&self) {
        let _stage = stage("report");
        let Bank { clients, carried_out, came_again, .. } = &self.bank;
        say!("requests     carried_out={carried_out} came_again={came_again} coins={}", self.bank.coins());
        let (clients, bytes) = (clients.len(), RECEIVES * self.desk.as_ref().map_or(0, |desk| desk.room));
        let queue_pairs = if transport(self.args) == PortSpace::Udp { 1 } else { clients };
        say!("cost         clients={clients} queue_pairs={queue_pairs} receives={RECEIVES} bytes={bytes}");
    }
}

/// The way back to the sender. The completion names its queue pair, and the bytes in front name its machine.
fn address_of(desk: &Desk, front: &[u8], wc: &WorkCompletion) -> Result<Destination> {
    let _stage = stage("address_of");
    info!("in front: {}", describe(front));
    let way = desk.context.init_ah_from_wc(PORT, wc, front)?;
    Ok(Destination { ah: desk.pd.create_ah(&way)?, qp_num: wc.src_qp().unwrap_or(0), qkey: QKEY })
}

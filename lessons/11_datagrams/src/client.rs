//! The client: puts coins into its box, again and again. If no answer comes, the request was lost, or the answer, or the server is
//! slow. The client cannot know, so it asks again, with the same number.

use std::os::fd::AsFd;

use common::{args::Args, cm::*, deadline::Deadline, *};

use crate::desk::{Desk, Inbox};
use crate::message::{Message, ALL, GOODBYE, LEN};
use crate::{transport, COINS, CONN_PARAM, GROUP, MULTICAST, RECEIVES_OF_CLIENT, REQUESTS, SIZE, TIMEOUT, TRIES};

pub fn run(args: &Args) -> Result<()> {
    let events = EventChannel::create()?;
    let id = resolve(&events, args)?;
    let desk = Desk::create(&id, transport(args), false, RECEIVES_OF_CLIENT, LEN)?;
    join_group(&desk, &events, args)?;
    let mut client = connect(&id, desk, events, args)?;
    let requests = args.number(&REQUESTS).unwrap_or(0) as u32;
    for number in 1..=requests {
        let coins = client.ask(number, COINS)?;
        say!("request {number}: {coins} coins are in the box");
        if coins != number * COINS {
            let next = "Was a request carried out twice, or not at all?";
            return Err(Error::content("that is not what was put in", next));
        }
    }
    client.ask(requests + 1, GOODBYE)?;
    if args.flag(&MULTICAST) {
        client.hear_group()?;
    }
    client.close(&id)
}

/// As in lesson 06: which device leads there?
fn resolve(events: &EventChannel, args: &Args) -> Result<CmId> {
    let _stage = stage("resolve");
    address::try_each(&args.address, args.port, |address| {
        let id = events.create_id_of(transport(args))?;
        id.resolve_addr(address)?;
        events.wait_for(RDMA_CM_EVENT_ADDR_RESOLVED)?.ack();
        Ok(id)
    })
}

/// From now on we also hear what's sent to the group. It comes before the route, after which the kernel lets nobody join.
fn join_group(desk: &Desk, events: &EventChannel, args: &Args) -> Result<()> {
    let (Inbox::Own(qp), true) = (&desk.inbox, args.flag(&MULTICAST)) else { return Ok(()) };
    let _stage = stage("join_group");
    qp.join_multicast(GROUP)?;
    events.wait_for(RDMA_CM_EVENT_MULTICAST_JOIN)?.ack();
    Ok(())
}

/// Asks which queue pair has the service. Datagrams need no more than the answer, so no connection is made.
fn connect(id: &CmId, desk: Desk, events: EventChannel, args: &Args) -> Result<Client> {
    let _stage = stage("connect");
    id.resolve_route()?;
    events.wait_for(RDMA_CM_EVENT_ROUTE_RESOLVED)?.ack();
    id.connect(&CONN_PARAM)?;
    let event = events.wait_for(RDMA_CM_EVENT_ESTABLISHED)?;
    let stranger = || Error::content("this is no server of lesson 11", "Run lesson 11 on both sides");
    let number = Message::decode(event.private_data()).ok_or_else(stranger)?.client;
    // A connection's event has no address, because its queue pair knows where to send.
    let there = event.ud_param().ok();
    event.ack();
    let server = there.map(|there| desk.address(&there)).transpose()?;
    // A place for each request and for the goodbye, so that we don't overwrite one that may still be under way.
    let (size, places) = (args.number(&SIZE).unwrap_or(0).max(LEN), args.number(&REQUESTS).unwrap_or(0) + 1);
    let requests = desk.pd.reg_mr(places.saturating_mul(size), Access::LOCAL_READ)?;
    Ok(Client { desk, requests, size, server, number, asked_again: 0, heard: None, events })
}

/// Fields are dropped from the top.
struct Client {
    desk: Desk,
    requests: MemoryRegion,
    size: usize,
    /// Where requests go. None on a connection.
    server: Option<Destination>,
    /// What the server calls us.
    number: u32,
    asked_again: u32,
    /// What the group was told.
    heard: Option<u32>,
    events: EventChannel,
}

impl Client {
    /// Asks until an answer comes. The number stays the same, so that the server can tell whether it has done this already.
    fn ask(&mut self, number: u32, word: u32) -> Result<u32> {
        let _stage = stage("ask");
        let at = (number as usize - 1) * self.size;
        self.requests.write(at, &Message { client: self.number, number, word }.encode())?;
        // On a connection the devices repeat what's lost, so we ask once.
        let (tries, limit) = if self.server.is_some() { (TRIES, TIMEOUT) } else { (1, deadline::answer_limit()) };
        for ask in 0..tries {
            self.asked_again += u32::from(ask > 0);
            if let Inbox::Own(qp) = &self.desk.inbox {
                let request = SendWr::send(&self.requests, at..at + self.size);
                qp.post_send(&self.server.iter().fold(request, SendWr::to))?;
            }
            if let Some(answer) = self.wait_for(self.number, number, &Deadline::within(limit, "an answer"))? {
                return Ok(answer);
            }
            say!("request {number}: no answer in {} ms, and nobody tells why", limit.as_millis());
        }
        let what = format!("request {number} had no answer, {tries} times");
        Err(Error::content(what, "Is the server there? Is --size more than the MTU? Datagrams get lost without a word"))
    }

    /// Waits for the message to this client with this number, and returns its word, or None when the time is up.
    fn wait_for(&mut self, client: u32, number: u32, deadline: &Deadline) -> Result<Option<u32>> {
        loop {
            let Some((wc, part)) = self.desk.next()? else {
                match deadline.wait_readable(&[self.desk.channel.as_fd(), self.events.as_fd()]) {
                    Err(Error::Deadline { .. }) => return Ok(None),
                    Ok(1) => return Err(self.events.get_cm_event()?.instead_of("an answer")),
                    woken => woken.map(drop)?,
                }
                continue;
            };
            let wc = wc.into_success()?;
            // Our request was sent. For a datagram that's all it means, and nobody knows whether it arrived.
            let Some(part) = part else { continue };
            let (_, message) = self.desk.read(part, &wc)?;
            self.desk.post_receive(part)?;
            let Some(message) = message else { continue };
            match (message.client, message.number) {
                found if found == (client, number) => return Ok(Some(message.word)),
                (ALL, _) => self.heard = Some(message.word),
                (_, number) => say!("request {number}: one more answer. It was slow, or came twice"),
            }
        }
    }

    /// The server tells the group once. Whoever misses it does not hear it again.
    fn hear_group(&mut self) -> Result<()> {
        let _stage = stage("hear_group");
        if self.heard.is_none() {
            self.heard = self.wait_for(ALL, 0, &Deadline::answer("the word to the group"))?;
        }
        let lost = || Error::content("nothing came to the group", "Was it lost? It is sent once");
        say!("the group hears: {} coins in all boxes", self.heard.ok_or_else(lost)?);
        Ok(())
    }

    /// A client of datagrams just goes. One with a connection hangs up.
    fn close(self, id: &CmId) -> Result<()> {
        let _stage = stage("close");
        if self.server.is_none() {
            id.disconnect()?;
            self.events.wait_for(RDMA_CM_EVENT_DISCONNECTED)?.ack();
        }
        say!("client clean-up is complete: asked_again={}", self.asked_again);
        Ok(())
    }
}

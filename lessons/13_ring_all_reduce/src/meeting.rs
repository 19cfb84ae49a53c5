//! How ranks find each other. All know one address, the server's, and nobody knows how many come, or who is next to whom: as
//! in a training run, whose processes are told where rank 0 is.
//!
//! Each asks there. When all have asked, each is turned away with a ConnectReject that says where it has to go: no queue pair is
//! made for a question and an answer.

use std::{collections::BTreeMap, net::IpAddr, os::fd::AsFd, os::fd::BorrowedFd};

use common::{address, args::Args, cm::*, deadline::Deadline, *};

use crate::{plan::Plan, ACK_TIMEOUT, ANSWER, BACKLOG, ELEMENTS, PAUSE, QUESTION, SLICE, SLOW};

/// Where others knock at a rank, until everything is done. Fields are dropped from the top.
pub struct Door {
    _listener: CmId,
    knocks: EventChannel,
    /// Only rank 0 uses this. It's what it has told each of the others.
    told: BTreeMap<IpAddr, String>,
}

impl Door {
    /// Comes before the first knock anywhere, so that whoever is sent to us finds us listening.
    pub fn listen(host: &str, port: u16) -> Result<Self> {
        let _stage = stage("listen");
        let knocks = EventChannel::create()?;
        let _listener = address::try_each(host, port, |address| {
            let id = knocks.create_id()?;
            id.bind_addr(address)?;
            id.listen(BACKLOG)?;
            Ok(id)
        })?;
        Ok(Self { _listener, knocks, told: BTreeMap::new() })
    }

    /// Sleeps until somebody knocks with these words.
    pub fn wait_for(&self, words: &str, deadline: &Deadline) -> Result<(CmId, ConnParam)> {
        loop {
            deadline.wait_readable(&[self.knocks.as_fd()])?;
            if let Some(knock) = self.answer(Some(words))? {
                return Ok(knock);
            }
        }
    }

    /// Sleeps until one of these can be read. Whoever knocks meanwhile is turned away.
    pub fn wait_readable(&self, others: &[BorrowedFd], deadline: &Deadline) -> Result<()> {
        let fds = [others, &[self.knocks.as_fd()]].concat();
        while deadline.wait_readable(&fds)? == others.len() {
            self.answer(None)?;
        }
        Ok(())
    }

    /// Returns who knocks with these words, and what they ask for. Anybody else is turned away.
    fn answer(&self, words: Option<&str>) -> Result<Option<(CmId, ConnParam)>> {
        let event = self.knocks.get_cm_event()?;
        // The private data belongs to the event, so we copy it before the ack.
        let asked = ConnParam { private_data: event.private_data().to_vec(), ..event.conn_param() };
        let (kind, id) = (event.event(), event.id());
        event.ack();
        match kind == RDMA_CM_EVENT_CONNECT_REQUEST {
            true if words.is_some_and(|words| asked.private_data.starts_with(words.as_bytes())) => {
                Ok(Some((id, asked)))
            }
            true => self.turn_away(&id).map(|()| None),
            false => Ok(None),
        }
    }

    /// Tells one of our ranks its seat. Nobody acknowledges a ConnectReject, so a rank that didn't get it asks again, in the
    /// middle of our work, and the ring stands still until it's told.
    fn turn_away(&self, id: &CmId) -> Result<()> {
        let told = id.peer_addr().and_then(|from| self.told.get(&from.ip()));
        id.reject(told.map_or("the ring is closed", String::as_str).as_bytes())
    }
}

/// What a rank is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seat {
    pub rank: usize,
    pub plan: Plan,
    /// How many milliseconds this rank pauses at each slice, if it should be slow.
    pub pause: usize,
    /// The right neighbour's address.
    pub right: String,
}

impl Seat {
    pub fn encode(&self) -> String {
        let Self { rank, plan: Plan { ranks, elements, slice }, pause, right } = self;
        format!("{ANSWER} {rank} of {ranks} elements {elements} slice {slice} pause {pause} right {right}")
    }

    /// Private data comes padded with zeroes.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?.trim_end_matches('\0');
        let words: Vec<&str> = text.strip_prefix(ANSWER)?.split(' ').collect();
        let ["", rank, "of", ranks, "elements", elements, "slice", slice, "pause", pause, "right", right] = words[..]
        else {
            return None;
        };
        let number = |word: &str| word.parse::<usize>().ok();
        let plan = Plan { ranks: number(ranks)?, elements: number(elements)?, slice: number(slice)? };
        let seat = Self { rank: number(rank)?, plan, pause: number(pause)?, right: right.to_owned() };
        (seat.plan.is_possible() && seat.rank < seat.plan.ranks).then_some(seat)
    }
}

/// Rank 0 waits until all have asked, and gives out the seats, in the order of their addresses.
pub fn host(door: &mut Door, args: &Args) -> Result<Seat> {
    let number = |option| args.number(option).unwrap_or(0);
    let plan = Plan { ranks: args.count() as usize + 1, elements: number(&ELEMENTS), slice: number(&SLICE) };
    if !plan.is_possible() {
        let wrong = "-n is 1 to 8, --elements at most 16 million, --slice a multiple of 4, and not too small for them";
        return Err(Error::content(wrong, "See `lesson-13 server --help`"));
    }
    let guests = gather(door, &plan)?;
    let own = guests.values().next().and_then(|id| id.local_addr()).map(|own| own.ip());
    let addresses: Vec<IpAddr> = own.into_iter().chain(guests.keys().copied()).collect();
    let slow = args.text(&SLOW).parse().ok();
    let seat = |rank| Seat {
        rank,
        plan,
        pause: if slow == Some(rank) { number(&PAUSE) } else { 0 },
        right: addresses[plan.right_of(rank)].to_string(),
    };
    tell_all(door, guests, seat)?;
    Ok(seat(0))
}

/// Waits for everybody who asks for a seat, and sorts them by address. Nobody gets an answer yet. A rank that asks twice has
/// given up its first question.
fn gather(door: &Door, plan: &Plan) -> Result<BTreeMap<IpAddr, CmId>> {
    let _stage = stage("gather");
    say!("waiting for {} more to make a ring of {}", plan.half(), plan.ranks);
    let mut guests = BTreeMap::new();
    while guests.len() < plan.half() {
        let (id, _) = door.wait_for(QUESTION, &Deadline::knock("a rank that asks for a seat"))?;
        guests.extend(id.peer_addr().map(|from| (from.ip(), id)));
    }
    Ok(guests)
}

/// Sends each a ConnectReject. Its reason is 28, the program's own, and its private data has everything that the rank needs.
fn tell_all(door: &mut Door, guests: BTreeMap<IpAddr, CmId>, seat: impl Fn(usize) -> Seat) -> Result<()> {
    let _stage = stage("tell_all");
    door.told = (1..).zip(guests.keys()).map(|(rank, ip)| (*ip, seat(rank).encode())).collect();
    guests.into_values().try_for_each(|id| door.turn_away(&id))
}

/// All others ask rank 0, and wait until it knows.
pub fn ask(_: &mut Door, args: &Args) -> Result<Seat> {
    let _stage = stage("ask");
    let events = EventChannel::create()?;
    let id = resolve(&events, &args.address, args.port)?;
    id.connect(&ConnParam { private_data: QUESTION.into(), ..ConnParam::default() })?;
    // We wait as long as a server waits for its clients, because the others may come later.
    let event = events.get_cm_event()?;
    match Seat::decode(event.private_data()) {
        Some(seat) if event.event() == RDMA_CM_EVENT_REJECTED => Ok(seat),
        _ => Err(event.into_error(RDMA_CM_EVENT_REJECTED)),
    }
}

/// As in lesson 06, we ask which device leads there, and by which path.
pub fn resolve(events: &EventChannel, host: &str, port: u16) -> Result<CmId> {
    let _stage = stage("resolve");
    let id = address::try_each(host, port, |address| {
        let id = events.create_id()?;
        id.resolve_addr(address)?;
        events.wait_for(RDMA_CM_EVENT_ADDR_RESOLVED)?.ack();
        Ok(id)
    })?;
    id.set_ack_timeout(ACK_TIMEOUT)?;
    id.resolve_route()?;
    events.wait_for(RDMA_CM_EVENT_ROUTE_RESOLVED)?.ack();
    Ok(id)
}

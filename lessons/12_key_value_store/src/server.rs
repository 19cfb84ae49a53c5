//! The server: one thread, one loop, as in lesson 09. It hears of PUTs, and of GETs that are asked for. Of GETs by READ it hears
//! nothing: while clients READ, it sleeps.

use std::{collections::BTreeMap, os::fd::AsFd, time::Duration};

use common::{args::Args, cm::*, deadline::Deadline, *};

use crate::plain::{journal::Journal, layout::*, options::*, terms::*};
use crate::{house::*, record::Record};

/// Fields are dropped from the top.
struct Server {
    connections: BTreeMap<u8, Connection>,
    house: House,
    journal: Journal,
    answered: u64,
    /// How many clients are still to come and go. None means that it never ends.
    left: Option<u32>,
    _listener: CmId,
    events: EventChannel,
}

pub fn run(args: &Args) -> Result<()> {
    let mut server = Server::open(args)?;
    while server.left != Some(0) {
        server.sleep()?;
        while let Some(event) = server.events.try_get_cm_event()? {
            // A goodbye may overtake what was sent before it.
            server.take_requests()?;
            server.on_event(event)?;
        }
        server.take_requests()?;
    }
    let answered = server.answered;
    drop(server);
    say!("server shut-down is complete; answered={answered}");
    Ok(())
}

impl Server {
    fn open(args: &Args) -> Result<Self> {
        let _stage = stage("listen");
        let (journal, records) = Journal::open(args.text(&FILE))?;
        let events = EventChannel::create()?;
        let _listener = address::try_each(&args.address, args.port, |address| {
            let id = events.create_id()?;
            id.bind_addr(address)?;
            id.listen(BACKLOG)?;
            say!("listening on {address}, with {} records, the last of version {}", records.len(), journal.version);
            Ok(id)
        })?;
        // A listener on `::` has no device of its own, so we take the one that the first client comes through.
        let first = events.wait_for(RDMA_CM_EVENT_CONNECT_REQUEST)?;
        let slowly = Duration::from_millis(args.number(&SLOWLY).unwrap_or(0) as u64);
        let mut house = House::open(first.id(), slowly)?;
        records.values().try_for_each(|record| house.table.put(record))?;
        let (connections, left) = (BTreeMap::new(), Some(args.count()).filter(|count| *count > 0));
        let mut server = Self { connections, house, journal, answered: 0, left, _listener, events };
        server.on_event(first)?;
        Ok(server)
    }

    fn sleep(&self) -> Result<()> {
        match Deadline::knock("clients").wait_readable(&[self.events.as_fd(), self.house.channel.as_fd()]) {
            // That's no error. Clients that READ are busy, and this program doesn't hear of it.
            Err(Error::Deadline { .. }) if !self.connections.is_empty() => Ok(()),
            result => result.map(drop),
        }
    }

    fn on_event(&mut self, event: CmEvent) -> Result<()> {
        let _stage = stage("on_event");
        let (kind, id) = (event.event(), event.id());
        if kind == RDMA_CM_EVENT_DEVICE_REMOVAL {
            return Err(event.into_error(kind));
        }
        // The private data belongs to the event, so we copy it before the ack.
        let asked = ConnParam { private_data: event.private_data().to_vec(), ..event.conn_param() };
        event.ack();
        match (kind, self.number_of(|connection| connection.id == id)) {
            (RDMA_CM_EVENT_CONNECT_REQUEST, _) => self.knock(&id, &asked),
            (RDMA_CM_EVENT_ESTABLISHED, Some(number)) => info!("client {number} is connected"),
            (RDMA_CM_EVENT_DISCONNECTED, Some(number)) => self.leave(number, &id)?,
            (RDMA_CM_EVENT_REJECTED | RDMA_CM_EVENT_UNREACHABLE | RDMA_CM_EVENT_CONNECT_ERROR, Some(number)) => {
                self.dismiss(number, "was never there")?;
            }
            (other, _) => info!("nothing to do for {other}"),
        }
        Ok(())
    }

    fn number_of(&self, is_it: impl Fn(&Connection) -> bool) -> Option<u8> {
        self.connections.iter().find(|(_, connection)| is_it(connection)).map(|(number, _)| *number)
    }

    /// Somebody wants to come in. If we say no, the ConnectReject carries the reason.
    fn knock(&mut self, id: &CmId, asked: &ConnParam) {
        let _stage = stage("knock");
        if let Err(error) = self.admit(id, asked) {
            say!("{} is refused: {error}", id.peer_name());
            let why: String = error.to_string().chars().filter(char::is_ascii).take(148).collect();
            id.reject(why.as_bytes()).unwrap_or_else(|error| narrate::failure(&error.to_string()));
        }
    }

    fn admit(&mut self, id: &CmId, asked: &ConnParam) -> Result<()> {
        if !asked.private_data.starts_with(HELLO) {
            return Err(Error::content("only clients of lesson 12 come in here", "Run lesson 12 on both sides"));
        }
        let free = (1..=PLACES as u8).find(|number| !self.connections.contains_key(number));
        let full = || Error::content(format!("{PLACES} clients are here"), "Come again later");
        let number = free.ok_or_else(full)?;
        self.connections.insert(number, Connection::admit(&self.house, id.clone(), asked, number)?);
        say!("client {number} comes from {}", id.peer_name());
        Ok(())
    }

    /// A client says goodbye, or its kernel does if it was killed. Our own `rdma_disconnect` answers it.
    fn leave(&mut self, number: u8, id: &CmId) -> Result<()> {
        let _stage = stage("leave");
        id.disconnect()?;
        self.dismiss(number, "has gone")
    }

    /// Frees a client's place, with everything that it had.
    fn dismiss(&mut self, number: u8, why: &str) -> Result<()> {
        self.connections.remove(&number);
        say!("client {number} {why}");
        self.left = self.left.map(|left| left.saturating_sub(1));
        self.house.free_lock_of(number)
    }

    fn take_requests(&mut self) -> Result<()> {
        if self.house.channel.try_get_cq_event()?.is_some() {
            // Armed again before the poll, so that whatever comes after the poll wakes us.
            self.house.cq.req_notify()?;
        }
        while let Some(wc) = self.house.cq.poll_one()? {
            let request = self.house.take_request(&wc)?;
            let Some(number) = self.number_of(|connection| connection.qp.qp_num() == wc.qp_num) else { continue };
            match request {
                Some(request) => self.serve(number, &request)?,
                None if wc.is_success() || wc.is_flush() => {}
                None => self.dismiss(number, &wc.to_error().to_string())?,
            }
        }
        Ok(())
    }

    fn serve(&mut self, number: u8, request: &[u8]) -> Result<()> {
        let _stage = stage("serve");
        let found = match request.split_first() {
            Some((&PUT, record)) => self.put(record)?,
            Some((&ASK, key)) => self.house.table.get(&key_of(key))?,
            _ => None,
        };
        self.answered += 1;
        let answer = self.connections.get(&number).map_or(Ok(()), |connection| connection.answer(found.as_ref()));
        answer.unwrap_or_else(|error| narrate::failure(&error.to_string()));
        Ok(())
    }

    /// First into the file, then into the table, and only then the answer. So nobody ever sees what a crash could take back.
    fn put(&mut self, bytes: &[u8]) -> Result<Option<Record>> {
        let value = String::from_utf8_lossy(bytes.get(8..).unwrap_or_default()).into_owned();
        let record = Record { key: key_of(bytes), version: self.journal.version + 1, value };
        if !self.house.table.has_room(&record) {
            return Ok(None);
        }
        self.journal.keep(&record)?;
        self.house.table.put(&record)?;
        Ok(Some(Record { value: String::new(), ..record }))
    }
}

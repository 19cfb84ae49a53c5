//! The server: one thread, one loop, three descriptors. It never waits for a certain worker. It sleeps until anybody has
//! something, does what there is to do, and sleeps again. A worker that fails is dismissed, and the others go on.

mod rounds;

use std::{collections::BTreeMap, os::fd::AsFd, time::Duration, time::Instant};

use common::{args::Args, cm::*, deadline::Deadline, error::status_text, *};

use crate::{house::*, layout::*, training::Training, BACKLOG, CHECK, LOSS, MODE, PLACES, ROUNDS};

/// How often the clock wakes us.
const TICK: Duration = Duration::from_millis(500);

pub fn run(args: &Args) -> Result<()> {
    let mut server = Server::open(args)?;
    while !server.is_done() {
        server.sleep()?;
        while let Some(event) = server.events.try_get_cm_event()? {
            // A goodbye takes another path than the data and may overtake it, so we first take what came before it.
            server.take_completions()?;
            server.on_event(event)?;
        }
        server.take_completions()?;
        server.look_at_the_clock()?;
        server.go_on()?;
    }
    server.close()
}

/// Fields are dropped from the top.
struct Server {
    training: Training,
    /// How many workers must be there before the first round. After that it's 0.
    wanted: usize,
    /// Which worker took longest for its last gradient, and how long.
    slowest: (Duration, u8),
    /// By number, from 1 to [`PLACES`]. A number without a worker is free.
    connections: BTreeMap<u8, Connection>,
    /// None until the first worker comes.
    house: Option<House>,
    _listener: CmId,
    timer: Timer,
    events: EventChannel,
    /// Since when nothing has happened.
    quiet: Deadline,
}

impl Server {
    fn open(args: &Args) -> Result<Self> {
        let _stage = stage("listen");
        let (wanted, in_step) = (args.count().max(1) as usize, args.text(&MODE) == "sync");
        let wrong = |what| Error::content(what, "See `lesson-09 server --help`");
        (wanted <= PLACES).then_some(()).ok_or_else(|| wrong("-n is at most 8"))?;
        let loss = args.text(&LOSS).parse().ok().filter(|loss| *loss >= 0.0);
        let loss = loss.ok_or_else(|| wrong("--loss is a number from 0 on"))?;
        // In the mode async every gradient is a round of its own.
        let rounds = args.number(&ROUNDS).unwrap_or(1).saturating_mul(if in_step { 1 } else { wanted });
        let (events, timer) = (EventChannel::create()?, Timer::every(TICK)?);
        let _listener = address::try_each(&args.address, args.port, |address| {
            let id = events.create_id()?;
            id.bind_addr(address)?;
            id.listen(BACKLOG)?;
            say!("listening on {address}: {PLACES} places, and the first round begins with {wanted} workers");
            Ok(id)
        })?;
        let training = Training::new((loss, rounds.clamp(1, LAST_ROUND) as u32), in_step, args.flag(&CHECK));
        let (slowest, connections, quiet) = ((Duration::ZERO, 0), BTreeMap::new(), Deadline::knock("workers"));
        Ok(Self { training, wanted, slowest, connections, house: None, _listener, timer, events, quiet })
    }

    fn sleep(&self) -> Result<()> {
        let mut fds = vec![self.events.as_fd(), self.timer.as_fd()];
        fds.extend(self.house.as_ref().map(|house| house.channel.as_fd()));
        self.quiet.wait_readable(&fds).map(|_| ())
    }

    /// Every event has its case, and the event's id finds its worker.
    fn on_event(&mut self, event: CmEvent) -> Result<()> {
        let _stage = stage("on_event");
        self.quiet = Deadline::knock("workers");
        // The private data belongs to the event, so we copy it before the ack.
        let asked = ConnParam { private_data: event.private_data().to_vec(), ..event.conn_param() };
        let (kind, status, id) = (event.event(), event.status(), event.id());
        event.ack();
        let number = self.connections.iter().find(|(_, connection)| connection.id == id).map(|(number, _)| *number);
        let lost = |what| Error::content(format!("{what}, status {}", status_text(kind, status)), "Look at its log");
        match (kind, number) {
            (RDMA_CM_EVENT_CONNECT_REQUEST, _) => self.knock(&id, &asked),
            (RDMA_CM_EVENT_ESTABLISHED, Some(number)) => self.join(number),
            (RDMA_CM_EVENT_DISCONNECTED, Some(number)) => self.leave(number, &id),
            // It got our ConnectReply and doesn't want it any more, for example because it was killed meanwhile.
            (RDMA_CM_EVENT_REJECTED, Some(number)) => self.dismiss(number, &lost("it turned our ConnectReply away")),
            // However often our ConnectReply was repeated. We leave this deadline to the connection manager, because destroying
            // an id while its message is under way would stop us until then, and everybody with us.
            (RDMA_CM_EVENT_UNREACHABLE, Some(number)) => self.dismiss(number, &lost("it does not answer")),
            (RDMA_CM_EVENT_CONNECT_ERROR, Some(number)) => self.dismiss(number, &lost("it could not be connected")),
            // From now on its packets come through another device, and its QP isn't there.
            (RDMA_CM_EVENT_ADDR_CHANGE, Some(number)) => self.dismiss(number, &lost("our address has moved")),
            (RDMA_CM_EVENT_ADDR_CHANGE, None) => info!("an address has moved; who connects next comes by it"),
            // Each id on the device hears of it. The kernel waits until we've let go of everything there, so this is the end.
            (RDMA_CM_EVENT_DEVICE_REMOVAL, _) => {
                return Err(Error::Event { wanted: kind, got: kind, status, private_data: Vec::new() })
            }
            (RDMA_CM_EVENT_TIMEWAIT_EXIT, _) => info!("the last packets of an old connection have died out"),
            // Events for those who resolve, connect or join a multicast group, and events of workers that have gone.
            (other, _) => info!("nothing to do for {other}"),
        }
        Ok(())
    }

    /// Somebody wants to come in. If we say no, the reason goes with the ConnectReject, and the worker prints it.
    fn knock(&mut self, id: &CmId, asked: &ConnParam) {
        let _stage = stage("knock");
        match self.admit(id, asked) {
            Ok(number) => say!("worker {number} comes from {}", id.peer_name()),
            Err(error) => {
                say!("{} is refused: {error}", id.peer_name());
                let why: String = error.to_string().chars().filter(char::is_ascii).take(148).collect();
                id.reject(why.as_bytes()).unwrap_or_else(|error| narrate::failure(&error.to_string()));
            }
        }
    }

    fn admit(&mut self, id: &CmId, asked: &ConnParam) -> Result<u8> {
        let stranger = || Error::content("only workers of lesson 09 come in here", "Run lesson 09 on both sides");
        let wanted = read_hello(&asked.private_data).ok_or_else(stranger)?;
        if self.training.over {
            return Err(Error::content("the training is over", "Start the server anew"));
        }
        let house = match &mut self.house {
            Some(house) => house,
            none => none.insert(House::open(&self.events, id, self.training.round, &self.training.weights)?),
        };
        let mut numbers = if wanted == 0 { 1..=PLACES as u8 } else { wanted..=wanted };
        let why = match numbers.find(|number| !self.connections.contains_key(number)) {
            Some(number) if usize::from(number) <= PLACES => {
                self.connections.insert(number, Connection::admit(house, id, asked, number)?);
                return Ok(number);
            }
            Some(number) => format!("there is no worker {number}, only 1 to {PLACES}"),
            None if wanted == 0 => format!("the house is full: {PLACES} workers are here"),
            None => format!("worker {wanted} is here already"),
        };
        Err(Error::content(why, "Come again later, or as another worker"))
    }

    /// The worker's ReadyToUse has come, so from now on we can tell it something.
    fn join(&mut self, number: u8) {
        if let Some(connection) = self.connections.get_mut(&number) {
            (connection.state, connection.since) = (State::Idle, Instant::now());
            say!("worker {number} has joined");
        }
    }

    /// The goodbye. Our own `rdma_disconnect` answers it.
    fn leave(&mut self, number: u8, id: &CmId) {
        let _stage = stage("leave");
        id.disconnect().unwrap_or_else(|error| narrate::failure(&error.to_string()));
        if self.connections.get(&number).map(|connection| connection.state) != Some(State::Stopped) {
            return self.dismiss(number, &Error::content("it hung up in the middle", "Look at its log"));
        }
        say!("worker {number} says goodbye");
        self.connections.remove(&number);
    }

    /// Something is wrong with one worker. The others go on, and its place is free, with everything that it had.
    fn dismiss(&mut self, number: u8, why: &Error) {
        let _stage = stage("dismiss");
        narrate::failure(&format!("worker {number} is dismissed: {why}"));
        self.connections.remove(&number);
    }

    /// The goal is reached, and all workers that we've told so have gone.
    fn is_done(&self) -> bool {
        self.training.over && self.connections.values().all(|connection| connection.state == State::Accepted)
    }

    fn close(self) -> Result<()> {
        let _stage = stage("close");
        if let Some(house) = &self.house {
            say!("the workers have looked at {} examples, they say", house.counter.read_u64(0)?);
        }
        say!("weights: {:.4?}", self.training.weights);
        let verdict = self.training.verdict();
        drop(self);
        say!("server shut-down is complete");
        verdict?.into_iter().for_each(|words| say!("SUCCESS, {words}"));
        Ok(())
    }
}

//! The time from the start of the programs to their end: one thread listens to all machines and to the wire.
//!
//! The order in which things are recorded is that of cause and effect: see [`crate::intake`].

use crate::cards::Cards;
use crate::fault::Trap;
use crate::fetch;
use crate::interrupt::{Interrupt, Stopped};
use crate::machine::Machine;
use crate::outcome::Ended;
use crate::record::Recorder;
use crate::run::{ethernet, Run};
use crate::seat::{Seat, Stage};
use crate::terminal::Terminal;
use anyhow::Result;
use run::exit::Exit;
use run::file::names;
use run::programs::CLIENT;
use run::wire::{Scribe, Wire};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// How long the programs may run unless the run says otherwise.
const DEADLINE: Duration = Duration::from_secs(120);
/// A person may leave a shell open overnight, but not for ever.
const SHELL_DEADLINE: Duration = Duration::from_secs(24 * 3600);
/// How often we look at the clock.
const LOOK: Duration = Duration::from_secs(1);
/// How long a server may go on after the last client has ended.
const GRACE: Duration = Duration::from_secs(30);
/// The server's place among the nodes.
pub const SERVER: usize = 0;
/// The place of the node whose program has the terminal, if there is one: a shell's run has a client.
pub const SHELL: usize = 1;

/// All machines, the wire between them, and how far they have come.
pub struct Session<'a, 's> {
    pub run: &'a Run,
    interrupt: &'a Interrupt,
    pub recorder: &'a mut Recorder<'s>,
    pub seats: Vec<Seat>,
    pub cards: Cards,
    pub wire: Wire,
    /// What may still set off which fault, and its number.
    pub traps: Vec<(usize, &'a Trap)>,
    /// Whether a client has sent anything that a program on the server could have noticed.
    pub client_spoke: bool,
    /// Whose program is being killed: until it has ended the wire stands still, so that it is killed where it was.
    pub dying: Option<usize>,
    /// The signal that has ended the run.
    stopped: Option<i32>,
}

/// How the programs ended, and what else makes the run no good.
pub struct Finished {
    pub nodes: Vec<Ended>,
    pub stopped: Option<i32>,
}

impl<'a, 's> Session<'a, 's> {
    /// Takes machines whose agents have unpacked the programs, in the order of the run's nodes.
    pub fn new(
        run: &'a Run,
        wire: Wire,
        machines: Vec<Machine>,
        interrupt: &'a Interrupt,
        recorder: &'a mut Recorder<'s>,
    ) -> Result<Self> {
        let mut cards = Cards::default();
        let nodes = (0..).map(ethernet).zip(run.nodes.iter().zip(machines));
        let seats = nodes.map(|(ethernet, (node, machine))| Seat::new(node, machine, ethernet, &mut cards));
        let seats = seats.collect::<Result<_>>()?;
        let traps = run.options.faults.iter().enumerate().collect();
        let (client_spoke, dying, stopped) = Default::default();
        Ok(Self { run, interrupt, recorder, seats, cards, wire, traps, client_spoke, dying, stopped })
    }

    /// Runs the programs to their end, and tells how they ended.
    pub fn finish(mut self) -> Result<Finished> {
        self.inspect_all(|ended| &mut ended.before)?;
        match self.conversation() {
            Err(error) => match error.downcast_ref() {
                Some(Stopped::Interrupted(Some(signal))) => self.stop(*signal)?,
                _ => return Err(error),
            },
            Ok(()) => {
                self.wire.end(self.recorder)?;
                self.inspect_all(|ended| &mut ended.after)?;
                self.fetch()?;
            }
        }
        let nodes = self.seats.into_iter().map(|seat| seat.ended).collect();
        Ok(Finished { nodes, stopped: self.stopped })
    }

    /// A signal ends the run: the machines go with us, and what they have said is recorded.
    fn stop(&mut self, signal: i32) -> Result<()> {
        self.take_in()?;
        self.stopped = Some(signal);
        let running = running(&self.seats);
        self.recorder.stop(signal, &running)
    }

    fn conversation(&mut self) -> Result<()> {
        let begun = Instant::now();
        let end = begun + self.limit();
        self.start(SERVER)?;
        if self.seats[SERVER].stage == Stage::Running {
            self.seats[SERVER].agent.say("await")?;
        }
        let mut grace = None;
        let mut is_left = false;
        while !is_left && !self.is_over() {
            if self.seats[SERVER].stage == Stage::Done {
                self.start_clients()?;
            }
            let only_the_server_runs = self.clients().iter().all(|seat| seat.stage == Stage::Done);
            if only_the_server_runs && self.nobody_came() {
                let who = if self.seats.len() == 2 { "the client" } else { "each client" };
                return self
                    .recorder
                    .trouble(None, &format!("{who} failed before it sent anything: the server waits for nobody"));
            }
            if only_the_server_runs && self.clients().iter().any(|seat| seat.ended.ran) {
                grace.get_or_insert_with(|| Instant::now() + GRACE);
            }
            let limit = grace.map_or(end, |grace| end.min(grace));
            if Instant::now() >= limit {
                return self.give_up(limit == end);
            }
            self.tell_what_we_wait_for(begun, limit, limit == end);
            self.wait(limit)?;
            self.take_in()?;
            is_left = !self.pass_keys()?;
        }
        Ok(())
    }

    /// Says so where nothing was to be seen for a while.
    fn tell_what_we_wait_for(&mut self, begun: Instant, limit: Instant, is_overall: bool) {
        let until = limit.saturating_duration_since(begun).as_secs();
        let why =
            if is_overall { "--deadline".to_owned() } else { format!("{} s after the last client", GRACE.as_secs()) };
        let running = names(&running(&self.seats));
        let for_what = match self.clients().iter().any(|seat| seat.stage == Stage::Waiting) {
            true => "listen (ten seconds at most, and then the clients start all the same)",
            false => "end",
        };
        self.recorder.waits(|| format!("lab: waiting for {running} to {for_what} (until {until} s, {why})"));
    }

    fn clients(&self) -> &[Seat] {
        &self.seats[SERVER + 1..]
    }

    /// Whether all programs have ended. Whoever leaves the shell is done with all of them.
    fn is_over(&self) -> bool {
        match self.recorder.terminal {
            Some(_) => self.seats[SHELL].stage == Stage::Done,
            None => self.seats.iter().all(|seat| seat.stage == Stage::Done),
        }
    }

    fn limit(&self) -> Duration {
        self.run.options.deadline.unwrap_or(if self.recorder.terminal.is_some() { SHELL_DEADLINE } else { DEADLINE })
    }

    /// Whether all clients have failed, and the server's program cannot know that there was one.
    fn nobody_came(&self) -> bool {
        let failed = |seat: &Seat| seat.ended.ran && seat.qemu.is_some() && seat.ended.exit != Some(Exit::Status(0));
        !self.client_spoke && self.clients().iter().all(failed)
    }

    pub fn start_clients(&mut self) -> Result<()> {
        (SERVER + 1..self.seats.len()).try_for_each(|node| self.start(node))
    }

    /// Starts a node's program, once.
    fn start(&mut self, node: usize) -> Result<()> {
        let Some(command) = self.run.nodes[node].command.as_ref() else { return Ok(()) };
        let seat = &mut self.seats[node];
        if seat.stage != Stage::Waiting {
            return Ok(());
        }
        let mut text = command.as_str();
        if let (SHELL, Some(terminal)) = (node, &mut self.recorder.terminal) {
            terminal.lend(self.run.names().into_iter().map(str::to_owned).collect())?;
            text = "a shell";
        }
        seat.stage = Stage::Running;
        self.recorder.act(Some(node), "start", text)?;
        self.seats[node].agent.say("start")
    }

    /// Why this is the end, and which programs still run.
    fn give_up(&mut self, overall: bool) -> Result<()> {
        let mut still = format!("{} still running", names(&running(&self.seats)));
        let waits = self.seats.iter().any(|seat| seat.stage == Stage::Waiting);
        if let Some(test) = self.run.options.ready.as_ref().filter(|_| waits) {
            still.push_str(&format!(" and not ready: `{test}` has not succeeded"));
        }
        let last = if self.seats.len() == 2 { CLIENT } else { "last client" };
        self.recorder.trouble(
            None,
            &if overall {
                let limit = self.limit().as_secs();
                format!("the deadline of {limit} s has passed with {still} (--deadline SECONDS sets another)")
            } else {
                format!("the {last} ended {} s ago with {still}", GRACE.as_secs())
            },
        )
    }

    fn wait(&mut self, limit: Instant) -> Result<()> {
        self.recorder.flush()?;
        let mut streams: Vec<(BorrowedFd<'_>, bool)> = Vec::new();
        for (node, (seat, card)) in self.seats.iter().zip(self.cards.streams()).enumerate() {
            // The sockets of a machine without power are always readable: they are at their end.
            if seat.qemu.is_some() {
                let (card, wants_to_write) = card;
                streams.push((card.as_fd(), wants_to_write));
                let has_keys = node == SHELL && self.recorder.terminal.as_ref().is_some_and(Terminal::has_keys);
                streams.extend([(seat.output.as_fd(), has_keys), (seat.agent.console.as_fd(), false)]);
            }
        }
        streams.extend(self.recorder.terminal.as_ref().and_then(Terminal::keyboard).map(|keyboard| (keyboard, false)));
        let due = self.wire.due().filter(|_| self.dying.is_none()).map(|due| Instant::now() + due);
        // Now and then we look whether somebody wonders.
        let limit = limit.min(Instant::now() + LOOK);
        self.interrupt.wait(&streams, due.map_or(limit, |due| due.min(limit)))
    }

    /// Brings what is typed to the shell; false if the shell is to be left without its consent.
    fn pass_keys(&mut self) -> Result<bool> {
        let Some(terminal) = &mut self.recorder.terminal else { return Ok(true) };
        let seat = &mut self.seats[SHELL];
        if !terminal.read()? {
            self.recorder.trouble(None, "the shell was cut off with Ctrl-]")?;
            return Ok(false);
        }
        // So a program in the shell hears of a new size with the next key.
        if let Some((rows, columns)) = terminal.has_keys().then(|| terminal.new_size()).flatten() {
            seat.agent.say(&format!("inspect stty -F /dev/$lab_program rows {rows} cols {columns}"))?;
        }
        terminal.pass_keys(&mut seat.output);
        Ok(true)
    }

    /// Runs the inspection, if there is one, in each machine that has power.
    fn inspect_all(&mut self, place: fn(&mut Ended) -> &mut Vec<String>) -> Result<()> {
        let Some(command) = &self.run.options.inspect else { return Ok(()) };
        for node in 0..self.seats.len() {
            if self.seats[node].qemu.is_some() {
                self.recorder.act(Some(node), "inspect", command)?;
                let seat = &mut self.seats[node];
                *place(&mut seat.ended) = seat.inspect("sh /run/inspect", self.interrupt)?;
            }
        }
        Ok(())
    }

    /// Lets each machine that has power put the files that are wanted of it on its drive.
    fn fetch(&mut self) -> Result<()> {
        for seat in &mut self.seats {
            if seat.qemu.is_some() && !fetch::wanted(&self.run.options.out, &seat.ended.name).is_empty() {
                seat.inspect("sh /run/fetch", self.interrupt)?;
                seat.ended.fetched = true;
            }
        }
        Ok(())
    }
}

/// The nodes whose programs run.
fn running(seats: &[Seat]) -> Vec<&str> {
    seats.iter().filter(|seat| seat.stage == Stage::Running).map(|seat| seat.ended.name.as_str()).collect()
}

//! The time from the start of the programs to their end: one thread listens to both machines and to the wire.
//!
//! The order of the timeline is that of cause and effect. A log line leaves its machine before the packet that the
//! next call causes (a serial port is served at once, by the processor's own thread), so a frame is taken out of
//! its socket first, then the serial port of the same machine is emptied, and only then the frame is recorded
//! and forwarded. What the receiver prints about it can only come later.

use crate::agent::{Agent, Message};
use crate::interrupt::{Interrupt, Interrupted};
use crate::machine::Machine;
use crate::outcome::{Ended, Entry, What};
use crate::run::{Fault, Run, Side};
use crate::seat::{Seat, Stage};
use crate::switch::Switch;
use crate::terminal::{Terminal, Typed};
use anyhow::Result;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant, SystemTime};

/// How long a server may go on after its client has ended.
const GRACE: Duration = Duration::from_secs(30);
/// Both machines, the wire between them, and what has happened so far.
pub struct Session<'a> {
    run: &'a Run,
    interrupt: &'a Interrupt,
    observer: &'a mut dyn FnMut(&Entry),
    /// The terminal of the client's program, if that is a shell.
    terminal: Option<Terminal>,
    seats: [Seat; 2],
    switch: Switch,
    timeline: Vec<Entry>,
    started: (Instant, SystemTime),
    /// What may still set off which fault.
    traps: Vec<crate::run::Trap>,
    /// Whether the client has sent anything that a program on the server could have noticed.
    client_spoke: bool,
    /// Whose program is being killed: until it has ended the wire stands still, so that it is killed where it was.
    dying: Option<Side>,
    trouble: Option<String>,
}

/// All that a session leaves behind.
pub struct Finished {
    /// How both sides ended.
    pub ended: [Ended; 2],
    /// All that happened.
    pub timeline: Vec<Entry>,
    /// When it began.
    pub started: SystemTime,
    /// Why it was ended, if it did not end by itself.
    pub trouble: Option<String>,
    /// Whether it was ended by a signal.
    pub interrupted: bool,
}

impl<'a> Session<'a> {
    /// Takes two machines whose agents have unpacked the programs.
    ///
    /// # Errors
    /// A socket cannot be used.
    pub fn new(
        run: &'a Run,
        machines: [(Machine, Agent); 2],
        interrupt: &'a Interrupt,
        observer: &'a mut dyn FnMut(&Entry),
        terminal: Option<Terminal>,
    ) -> Result<Self> {
        let mut switch = Switch::default();
        let [server, client] = machines;
        let seats =
            [Seat::new(Side::Server, server, run, &mut switch)?, Seat::new(Side::Client, client, run, &mut switch)?];
        let started = (Instant::now(), SystemTime::now());
        let (timeline, traps) = (Vec::new(), run.traps.clone());
        Ok(Self {
            run,
            interrupt,
            observer,
            terminal,
            seats,
            switch,
            timeline,
            started,
            traps,
            client_spoke: false,
            dying: None,
            trouble: None,
        })
    }

    /// Runs the programs to their end.
    ///
    /// # Errors
    /// The wire or a machine fails. A program that fails is no error here.
    pub fn finish(mut self) -> Result<Finished> {
        let interrupted = match self.whole() {
            Ok(()) => false,
            Err(error) if error.is::<Interrupted>() => true,
            Err(error) => return Err(error),
        };
        if interrupted {
            self.trouble = Some(Interrupted.to_string());
        }
        let [server, client] = self.seats;
        Ok(Finished {
            ended: [server.ended, client.ended],
            timeline: self.timeline,
            started: self.started.1,
            trouble: self.trouble,
            interrupted,
        })
    }

    fn whole(&mut self) -> Result<()> {
        self.inspect_all(|ended| &mut ended.before)?;
        self.conversation()?;
        self.inspect_all(|ended| &mut ended.after)
    }

    fn conversation(&mut self) -> Result<()> {
        self.started = (Instant::now(), SystemTime::now());
        let end = self.started.0 + self.run.deadline;
        self.start(Side::Server)?;
        if self.seats[0].stage == Stage::Running {
            self.seats[0].agent.say("await");
        }
        let mut grace = None;
        loop {
            if self.seats[0].stage == Stage::Done {
                self.start(Side::Client)?;
            }
            match [self.seats[0].stage, self.seats[1].stage] {
                [Stage::Done, Stage::Done] => return Ok(()),
                // Whoever leaves the shell is done with its server, too.
                [_, Stage::Done] if self.terminal.is_some() => return Ok(()),
                [Stage::Running, Stage::Done] if self.run.commands[1].is_some() && self.nobody_came() => {
                    self.trouble =
                        Some("the client failed before it sent anything: the server waits for nobody".to_owned());
                    return Ok(());
                }
                [Stage::Running, Stage::Done] if self.run.commands[1].is_some() => {
                    grace.get_or_insert_with(|| Instant::now() + GRACE);
                }
                _ => {}
            }
            let limit = grace.map_or(end, |grace| end.min(grace));
            if Instant::now() >= limit {
                self.give_up(limit == end);
                return Ok(());
            }
            self.wait(limit)?;
            self.take_in()?;
            if !self.pass_keys()? {
                return Ok(());
            }
        }
    }

    /// Whether the client has failed, and the server's program cannot know that there was one.
    fn nobody_came(&self) -> bool {
        !self.client_spoke && self.seats[1].machine.is_some() && self.seats[1].ended.exit != Some(0)
    }

    /// Starts a side's program, once.
    fn start(&mut self, side: Side) -> Result<()> {
        let seat = &mut self.seats[side.index()];
        if seat.stage != Stage::Waiting {
            return Ok(());
        }
        if let (Side::Client, Some(terminal)) = (side, &mut self.terminal) {
            terminal.lend()?;
        }
        seat.agent.say("start");
        seat.stage = Stage::Running;
        Ok(())
    }

    /// Why this is the end, and which programs still run.
    fn give_up(&mut self, overall: bool) {
        let running = self.seats.iter().filter(|seat| seat.stage == Stage::Running);
        let names: Vec<&str> = running.map(|seat| seat.side.name()).collect();
        let still = format!("the {} still running", names.join(" and the "));
        self.trouble = Some(if overall {
            format!(
                "the deadline of {} s has passed with {still} (--deadline SECONDS sets another)",
                self.run.deadline.as_secs()
            )
        } else {
            format!("the client ended {} s ago with {still}", GRACE.as_secs())
        });
    }

    fn wait(&self, limit: Instant) -> Result<()> {
        let mut streams: Vec<(BorrowedFd<'_>, bool)> = Vec::new();
        for (seat, card) in self.seats.iter().zip(self.switch.streams()) {
            // The sockets of a machine without power are always readable: they are at their end.
            if seat.machine.is_some() {
                let (card, wants_to_write) = card;
                streams.push((card.as_fd(), wants_to_write));
                let has_keys = seat.side == Side::Client && self.terminal.as_ref().is_some_and(Terminal::has_keys);
                streams.extend([(seat.output.as_fd(), has_keys), (seat.agent.stream().as_fd(), false)]);
            }
        }
        streams.extend(self.terminal.as_ref().and_then(Terminal::keyboard).map(|keyboard| (keyboard, false)));
        let due = self.terminal.as_ref().and_then(Terminal::due);
        self.interrupt.wait(&streams, due.map_or(limit, |due| due.min(limit)))
    }

    /// Takes what has come from both machines and forwards what goes across the wire.
    fn take_in(&mut self) -> Result<()> {
        for side in Side::BOTH {
            self.switch.read(side.index());
            self.read_output(side);
            self.carry(side)?;
            self.hear(side)?;
        }
        self.switch.flush();
        if let Some(terminal) = &mut self.terminal {
            terminal.settle();
        }
        Ok(())
    }

    /// Brings what is typed to the shell; false if the shell is to be left without its consent.
    fn pass_keys(&mut self) -> Result<bool> {
        let Some(terminal) = &mut self.terminal else { return Ok(true) };
        let seat = &mut self.seats[Side::Client.index()];
        match terminal.read()? {
            Typed::Nothing => {}
            Typed::Keys => tell_size(terminal, &mut seat.agent),
            Typed::Escape => {
                self.trouble = Some("the shell was cut off with Ctrl-]".to_owned());
                return Ok(false);
            }
        }
        terminal.pass_keys(&mut seat.output);
        Ok(true)
    }

    /// Forwards what a machine has sent, unless the wire stands still. What a machine without power has sent is lost.
    fn carry(&mut self, side: Side) -> Result<()> {
        while self.dying.is_none() {
            let Some(frame) = self.switch.take(side.index())? else { break };
            if self.seats[side.index()].machine.is_some() {
                self.client_spoke |= side == Side::Client && is_for_a_program(&frame);
                self.switch.forward(side.index(), &frame);
                self.record(side, What::Frame(frame));
            }
        }
        Ok(())
    }

    fn read_output(&mut self, side: Side) {
        let mut bytes = [0; 65_536];
        let seat = &mut self.seats[side.index()];
        let mut lines = Vec::new();
        while let Ok(count @ 1..) = seat.output.read(&mut bytes) {
            lines.extend(seat.lines.push(&bytes[..count]));
            if let (Side::Client, Some(terminal)) = (side, &mut self.terminal) {
                terminal.show(&bytes[..count]);
            }
        }
        for line in lines {
            self.print(side, line);
        }
    }

    fn print(&mut self, side: Side, line: String) {
        self.seats[side.index()].ended.log.push(line.clone());
        self.record(side, What::Line(line.clone()));
        let sprung: Vec<_> = self.traps.iter().filter(|trap| line.contains(&trap.text)).cloned().collect();
        self.traps.retain(|trap| !line.contains(&trap.text));
        for trap in sprung {
            self.strike(trap.fault, trap.victim);
        }
    }

    fn strike(&mut self, fault: Fault, victim: Side) {
        let seat = &mut self.seats[victim.index()];
        match fault {
            Fault::Kill if seat.stage != Stage::Running => {
                self.record(victim, What::Note("there is no program to kill".to_owned()));
            }
            Fault::Kill => {
                seat.agent.say("kill");
                self.dying = Some(victim);
                self.record(victim, What::Note("the lab kills the program".to_owned()));
            }
            Fault::PowerOff => {
                seat.machine = None;
                seat.stage = Stage::Done;
                self.dying = self.dying.filter(|dying| *dying != victim);
                self.record(victim, What::Note("the lab cuts the power".to_owned()));
            }
        }
    }

    /// What the agent has to say.
    fn hear(&mut self, side: Side) -> Result<()> {
        while let Some(message) = self.seats[side.index()].agent.receive() {
            match message {
                Message::Listening => self.start(Side::Client)?,
                Message::Exit(status) => self.ended(side, status)?,
                _ => {}
            }
        }
        let seat = &mut self.seats[side.index()];
        if seat.agent.is_closed() {
            if let Some(mut machine) = seat.machine.take() {
                let error =
                    anyhow::anyhow!("the {}'s machine ended by itself\n{}", side.name(), seat.agent.console_end());
                return Err(machine.explain(error));
            }
        }
        Ok(())
    }

    fn ended(&mut self, side: Side, status: i32) -> Result<()> {
        // The program's last words left the machine before the agent told of its end.
        self.read_output(side);
        if let Some(rest) = self.seats[side.index()].lines.take_rest() {
            self.print(side, rest);
        }
        let seat = &mut self.seats[side.index()];
        seat.ended.exit = Some(status);
        seat.stage = Stage::Done;
        self.record(side, What::Note(format!("exit status {status}")));
        if self.dying == Some(side) {
            self.dying = None;
            Side::BOTH.iter().try_for_each(|side| self.carry(*side))?;
        }
        Ok(())
    }

    fn record(&mut self, side: Side, what: What) {
        let entry = Entry { at: self.started.0.elapsed(), side, what };
        (self.observer)(&entry);
        if let Some(terminal) = &mut self.terminal {
            terminal.insert(&entry);
        }
        self.timeline.push(entry);
    }

    /// Runs the inspection, if there is one, in each machine that has power.
    fn inspect_all(&mut self, place: fn(&mut Ended) -> &mut Vec<String>) -> Result<()> {
        let Some(command) = &self.run.inspect else { return Ok(()) };
        for seat in self.seats.iter_mut().filter(|seat| seat.machine.is_some()) {
            *place(&mut seat.ended) = seat.inspect(command, self.interrupt)?;
        }
        Ok(())
    }
}

/// Whether an Ethernet frame is for more than the kernel: not ARP, nor ICMPv6, by which neighbors are found.
fn is_for_a_program(frame: &[u8]) -> bool {
    match frame.get(12..14) {
        Some([0x08, 0x00]) => true,
        Some([0x86, 0xdd]) => frame.get(20) != Some(&58),
        _ => false,
    }
}

/// Gives the shell the size of the host's terminal, if that has changed. So a program in it hears of a new size with the
/// next key.
fn tell_size(terminal: &mut Terminal, agent: &mut Agent) {
    if let Some((rows, columns)) = terminal.new_size() {
        agent.say(&format!("inspect stty -F /dev/$lab_program rows {rows} cols {columns}"));
    }
}

//! The supervisor of a node: one thread, which sleeps until a packet, a system call or a timer wakes it.

use crate::face::ucma::{told, Done, Ids};
use crate::face::uverbs;
use crate::machine::{Asked, Asker, Call, Kind, Machine};
use crate::node::clock::Clock;
use crate::node::line::{Line, Step};
use crate::node::tap::Stepped;
use crate::node::{Context, Nic};
use crate::sleepers::Sleepers;
use crate::strict::{self, Idlers, Manners};
use nic::cm::CmEffect;
use nic::fact::Fact;
use nic::time::Time;
use roce::pause;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// We take this many packets and this many calls before the others have their turn.
const BATCH: usize = 64;
/// How often we look whether a program that waits for an event has a signal to attend to.
const GLANCE: Duration = Duration::from_millis(20);
/// How long a completion that is to come first may take.
const LATE: Duration = Duration::from_millis(100);

pub struct Supervisor {
    nic: Nic,
    ids: Ids,
    machine: Machine,
    /// By which the runner moves this node's time; None if it is the machine's.
    line: Option<Line>,
    sleepers: Sleepers,
    manners: Manners,
    idlers: Option<Idlers>,
    /// Commands that arm one: until when they wait, and for a completion of which queue.
    arming: Vec<(Instant, u32, Call, Asker)>,
    glanced: Instant,
}

/// What a turn leaves for the next one.
#[derive(Default)]
struct Left {
    /// Another time, which has not been moved to.
    step: Option<Step>,
    /// There may be more calls.
    has_calls: bool,
    is_deserted: bool,
}

/// The supervisor is awake, and has heard what time it is to be.
struct Woken {
    step: Option<Step>,
}

/// What programs have called is answered.
struct Called(Left);

/// Packets are taken.
struct Received(Left);

/// It's as late as it is to be.
struct Moved {
    left: Left,
    /// By a step of the runner, which waits to hear that all is done.
    has_stepped: bool,
}

/// Completion queues are armed: nothing more is done in this turn.
struct Armed(Moved);

impl Supervisor {
    pub fn new(mut nic: Nic, machine: Machine, line: Option<Line>, manners: Manners) -> Supervisor {
        let ids = Ids::new(nic.address(), Arc::clone(&nic.port.tap), manners.is_strict);
        nic.memory.has_two_keys = manners.is_strict;
        nic.closed_pipes = manners.is_strict.then(BTreeSet::new);
        if manners.reads_late {
            nic.read_late();
        }
        let (sleepers, arming) = (Sleepers::default(), Vec::new());
        let idlers = manners.is_strict.then(Idlers::default);
        Supervisor { ids, nic, machine, line, sleepers, manners, idlers, arming, glanced: Instant::now() }
    }

    /// Serves the node until no program is left on it.
    pub fn serve(mut self) {
        // Some may have been asked while the program was started.
        let mut left = Left { has_calls: true, ..Left::default() };
        while !left.is_deserted {
            left = self.turn(left);
            self.glance();
        }
        self.nic.port.tap.stepped(Stepped::Gone);
    }

    /// One turn. Each step takes what the one before it gives, so there's no other order.
    fn turn(&mut self, left: Left) -> Left {
        let woken = self.wait(left);
        let called = self.answer_calls(woken);
        let received = self.take_packets(called);
        let moved = self.move_time(received);
        let armed = self.arm(moved);
        self.tell_step(armed)
    }

    /// Sleeps until there's something to do. The runner says what time it is when it has seen all programs asleep, so it's heard
    /// before their calls are taken: what they have called by then is done before.
    fn wait(&mut self, left: Left) -> Woken {
        // What was fetched and had no turn yet nothing wakes us for.
        let at_once = left.has_calls.then_some(Duration::ZERO);
        let is_waited_for = self.ids.is_waited_for() || self.sleepers.is_any();
        let glance = (is_waited_for || self.idlers.is_some() && self.nic.owes()).then_some(GLANCE);
        let armed = self.arming.first().map(|(until, ..)| until.saturating_duration_since(Instant::now()));
        let due = self.due().filter(|_| self.line.is_none()).map(|due| due.since(self.nic.clock.now()));
        let wait = due.into_iter().chain(glance).chain(at_once).chain(armed).min();
        let time = wait.and_then(|wait| Timespec::try_from(wait).ok());
        let mut all = vec![PollFd::new(&self.machine, PollFlags::IN)];
        all.extend(self.line.iter().map(|line| PollFd::new(line, PollFlags::IN)));
        all.extend(self.nic.port.sockets().map(|socket| PollFd::new(socket, PollFlags::IN)));
        let _ = poll(&mut all, time.as_ref());
        Woken { step: left.step.or_else(|| self.line.as_ref().and_then(Line::take)) }
    }

    /// Answers what programs have called, up to a batch of it.
    fn answer_calls(&mut self, Woken { step }: Woken) -> Called {
        let mut left = Left { step, has_calls: true, is_deserted: false };
        for _ in 0..BATCH {
            let Some(asked) = self.machine.asked() else {
                left.has_calls = false;
                break;
            };
            left.is_deserted |= matches!(asked, Asked::Deserted);
            self.take(asked);
            self.settle();
        }
        Called(left)
    }

    /// Takes packets, after the calls: what a program has closed no packet reaches any more.
    fn take_packets(&mut self, Called(left): Called) -> Received {
        for _ in 0..BATCH {
            let Some((route, packet)) = self.nic.port.receive() else { break };
            self.nic.receive(route, packet);
        }
        self.settle();
        Received(left)
    }

    /// It's later now. If the runner says how late, that waits while there are more calls.
    fn move_time(&mut self, Received(mut left): Received) -> Moved {
        let step = if left.has_calls { None } else { left.step.take() };
        let has_stepped = step.is_some();
        if let Some(step) = step {
            self.step(step);
        } else if self.line.is_none() {
            self.nic.turn();
            self.sleepers.wake(self.nic.clock.now());
        }
        Moved { left, has_stepped }
    }

    /// It is another time, and perhaps a frame has come.
    fn step(&mut self, Step { time, frame }: Step) {
        self.nic.clock = Clock::Still(time);
        if let Some(pause) = frame.as_deref().and_then(pause::Frame::decode) {
            self.nic.paused(&pause);
        } else if let Some((route, packet)) = frame.and_then(|frame| self.nic.port.open(&frame)) {
            self.nic.receive(route, packet);
            self.settle();
        }
        self.nic.turn_until_nothing_is_due();
        self.nic.has_told |= self.sleepers.wake(time);
    }

    /// Arms the queues that have a completion now, and those for which none has come.
    fn arm(&mut self, moved: Moved) -> Armed {
        for (until, cq, call, asker) in std::mem::take(&mut self.arming) {
            let is_empty = self.nic.cqs.any(cq).is_some_and(|cq| cq.ring.waiting() == 0);
            if is_empty && Instant::now() < until {
                self.arming.push((until, cq, call, asker));
            } else {
                uverbs::written(&mut self.nic, &self.machine, &call, &asker);
            }
        }
        self.settle();
        Armed(moved)
    }

    /// Says that all is done that was due at the time that the runner has told, and when something is next.
    fn tell_step(&mut self, Armed(Moved { left, has_stepped }): Armed) -> Left {
        if has_stepped {
            let was_busy = std::mem::take(&mut self.nic.has_told) | self.machine.was_called();
            let due = self.due().map(|due| due.since(Time::START));
            self.nic.port.tap.stepped(Stepped::Next { due, was_busy });
        }
        left
    }

    /// Now and then, however much others have to do: looks who waits and is gone, or goes in circles.
    fn glance(&mut self) {
        if self.glanced.elapsed() < GLANCE {
            return;
        }
        self.ids.tick();
        self.sleepers.tick();
        if let Some(idlers) = &mut self.idlers {
            idlers.look(&self.nic, &self.machine);
        }
        self.glanced = Instant::now();
    }

    /// When something is due; None if nothing is until something happens.
    fn due(&self) -> Option<Time> {
        self.nic.due().into_iter().chain(self.sleepers.due()).min()
    }

    /// Tells programs what the connection manager has to say.
    fn settle(&mut self) {
        for event in std::mem::take(&mut self.nic.cm_events) {
            self.nic.with_cm(|net| self.ids.deliver(net, event));
        }
        self.ids.settle(&mut self.nic.cm, &mut self.machine);
    }

    fn take(&mut self, asked: Asked) {
        match asked {
            Asked::Opened { file, kind: Kind::Uverbs, process } => {
                if let Some(program) = process.executes().filter(|_| self.manners.is_strict) {
                    self.nic.port.tap.say(|| Fact::new("opened").with("program", program));
                }
                self.nic.contexts.insert(file, Context { process, events: None, free: 0, unmapped: BTreeMap::new() });
            }
            Asked::Written { call, kind: Kind::Uverbs, asker } => {
                match uverbs::arms(&asker).filter(|_| self.manners.arms_late) {
                    Some(cq) => self.arming.push((Instant::now() + LATE, cq, call, asker)),
                    None => uverbs::written(&mut self.nic, &self.machine, &call, &asker),
                }
            }
            Asked::Written { call, kind: Kind::RdmaCm, asker } => self.connect(call, asker),
            Asked::Maps { call, file, offset, length } if self.nic.may_map(file, offset, length) => call.pass(),
            Asked::Maps { call, .. } => drop(call.answer(Err(Errno::INVAL))),
            Asked::Closed { file, kind: Kind::Uverbs } => self.nic.closed(file),
            Asked::Closed { file, kind: Kind::RdmaCm } => self.nic.with_cm(|net| self.ids.closed(net, file)),
            // A library finds its descriptor in what it was given: an id, a queue pair.
            Asked::WrittenNowhere if self.manners.is_strict => self.nic.port.tap.say(|| Fact::new("nowhere")),
            Asked::WrittenNowhere => {}
            Asked::Closes { file } => self.ids.closes(file),
            Asked::ClosesOther { inode } => {
                if let Some(pipes) = &mut self.nic.closed_pipes {
                    pipes.insert(inode);
                }
            }
            Asked::Sleeps { call, time } if self.line.is_some() => self.sleepers.add(time, call),
            Asked::Sleeps { call, time } => match strict::hurried(time) {
                Some(time) => self.sleepers.add(time, call),
                None => call.pass(),
            },
            Asked::Opened { kind: Kind::RdmaCm, .. } | Asked::Deserted => {}
        }
    }

    /// A command of /dev/infiniband/rdma_cm.
    fn connect(&mut self, call: Call, asker: Asker) {
        let file_of = |descriptor: u32| self.machine.file_of(&call, descriptor as i32);
        let talks = self.nic.port.tap.talks;
        let done = self.nic.with_cm(|net| {
            let done = self.ids.command(net, &asker, file_of);
            if talks {
                net.out.insert(0, CmEffect::Say(told(&asker, &done)));
            }
            done
        });
        if matches!(done, Ok(Done::Listens)) {
            self.nic.port.tap.listens(self.nic.address());
        }
        self.ids.answer(&mut self.nic.cm, &mut self.machine, call, asker, done);
    }
}

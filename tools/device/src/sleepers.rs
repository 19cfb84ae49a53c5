//! Programs whose sleep is as long as we say. While time is virtual, they go on when it's as late as they want; a strict device
//! lets them go sooner.

use crate::machine::Call;
use nic::time::Time;
use std::time::Duration;

/// Those of a node.
#[derive(Debug, Default)]
pub struct Sleepers {
    /// Who has just called, and for how long: from when on is known when time is told next.
    new: Vec<(Duration, Call)>,
    /// Until when each sleeps.
    asleep: Vec<(Time, Call)>,
}

impl Sleepers {
    pub fn add(&mut self, time: Duration, call: Call) {
        self.new.push((time, call));
    }

    /// Now it is this time. Wakes all whose time has come; whether there was one.
    pub fn wake(&mut self, now: Time) -> bool {
        self.asleep.extend(self.new.drain(..).map(|(time, call)| (now + time, call)));
        let before = self.asleep.len();
        self.asleep.retain(|(until, call)| {
            let is_over = *until <= now;
            if is_over {
                call.answer(Ok(0));
            }
            !is_over
        });
        self.asleep.len() < before
    }

    /// When the next one is to be woken.
    pub fn due(&self) -> Option<Time> {
        self.asleep.iter().map(|(until, _)| *until).min()
    }

    /// Whether one sleeps: then [`Sleepers::tick`] is to be called now and then.
    pub fn is_any(&self) -> bool {
        !self.asleep.is_empty() || !self.new.is_empty()
    }

    /// Lets go who is gone, or has a signal to attend to.
    pub fn tick(&mut self) {
        self.new.retain(|(_, call)| !call.is_over());
        self.asleep.retain(|(_, call)| !call.is_over());
    }
}

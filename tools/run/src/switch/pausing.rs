//! Priority-based flow control (IEEE 802.1Qbb; today IEEE 802.1Q, clause 36): a switch tells a neighbour, of whom too much
//! waits, to send nothing of this priority, and to go on when less does. The queue is a port's, but who has filled it is counted where
//! frames come in: so a neighbour is told to pause all that it sends, wherever that goes to.

use super::cable::back;
use super::frame::{Carried, PRIORITIES};
use super::{Event, Happening, Out, Switch, What};
use roce::pause;
use std::time::Duration;

/// As long as can be said. It is said again when half of it is over.
const LONG: u16 = u16::MAX;
/// The sender of pause frames: a number of our own, which no node has.
const ADDRESS: [u8; 6] = [2, 0, 0, 0, 0, 0];

impl Switch {
    /// A frame that came by a cable waits in this switch from now on.
    pub(super) fn comes_to_wait(&mut self, now: Duration, frame: &Carried) {
        let (Some(cable), priority) = (frame.came_by, frame.priority()) else { return };
        self.cables[cable].stored[priority] += frame.length();
        let Some(pfc) = self.settings.pfc else { return };
        if self.cables[cable].stored[priority] > pfc.off && self.cables[cable].told[priority].is_none() {
            let port = self.name(self.cables[cable].from);
            self.tell(now, Event { port, what: What::Pause(priority as u8) });
            self.say(now, cable, priority as u8, LONG);
        }
    }

    /// A frame has left a port. If it came by a cable, it waits no more.
    pub(super) fn leaves(&mut self, now: Duration, frame: &Carried) {
        let (Some(cable), priority) = (frame.came_by, frame.priority()) else { return };
        self.cables[cable].stored[priority] -= frame.length();
        let Some(pfc) = self.settings.pfc else { return };
        if self.cables[cable].stored[priority] <= pfc.on && self.cables[cable].told[priority].take().is_some() {
            let port = self.name(self.cables[cable].from);
            self.tell(now, Event { port, what: What::Resume(priority as u8) });
            self.say(now, cable, priority as u8, 0);
        }
    }

    /// Still too much waits.
    pub(super) fn pause_again(&mut self, now: Duration, cable: usize, priority: u8) {
        let said = self.cables[cable].told[usize::from(priority)];
        // After another pause it is that one's turn.
        if said.is_some_and(|said| said + self.quanta(LONG) / 2 == now) {
            self.say(now, cable, priority, LONG);
        }
    }

    /// Tells whoever sends on a cable for how long to be silent.
    fn say(&mut self, now: Duration, cable: usize, priority: u8, quanta: u16) {
        let bytes = pause::Frame::about(priority, quanta).encode(ADDRESS).to_vec();
        self.out.push((now, Out::Passed { from: None, number: 0, frame: bytes.clone(), comment: None }));
        self.cables[back(cable)].push(Carried::new(0, 0, None, bytes));
        self.start(now, back(cable));
        if quanta > 0 {
            self.cables[cable].told[usize::from(priority)] = Some(now);
            self.at(now + self.quanta(quanta) / 2, Happening::Pauses(cable, priority));
        }
    }

    /// A pause frame has come by a cable: it is about the other direction.
    pub(super) fn obey(&mut self, now: Duration, cable: usize, pause: pause::Frame) {
        let other = back(cable);
        for (priority, quanta) in (0..PRIORITIES).zip(pause.quanta) {
            if let Some(quanta) = quanta {
                let until = now + self.quanta(quanta);
                self.cables[other].paused[priority] = until;
                self.at(until, Happening::Wakes(other));
            }
        }
    }

    fn quanta(&self, quanta: u16) -> Duration {
        Duration::from_nanos(u64::from(quanta) * pause::QUANTUM * 1_000_000_000 / self.settings.rate)
    }
}

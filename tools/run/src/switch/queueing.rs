//! What becomes of a frame at a port: it waits, it is marked, it is lost. And how much waits there.

use super::cable::CableEnd;
use super::event::{DROPPED, MARKED};
use super::frame::Carried;
use super::{Ecn, Event, Happening, Switch, What, LOOK};
use std::time::Duration;

impl Switch {
    /// A frame comes to the port of a cable.
    pub(super) fn queues(&mut self, now: Duration, cable: usize, mut frame: Carried) {
        let waiting = self.cables[cable].bytes[frame.priority()];
        if let Some(why) = self.why_lost(cable, &frame, waiting) {
            let (port, comment) = (self.name(self.cables[cable].to), Some(format!("lab: {DROPPED}: {why}")));
            self.passes(now, &frame, comment);
            return self.tell(now, Event { port, what: What::Drop(why) });
        }
        let share = self.settings.ecn.map_or(0.0, |ecn| ecn.share(waiting));
        if frame.can_be_marked() && share > 0.0 && self.lot.draw() < share {
            frame.mark();
            frame.marked =
                Some(format!("lab: {MARKED}: {waiting} bytes wait for {}", self.name(self.cables[cable].to)));
        }
        let is_last = match self.cables[cable].to {
            CableEnd::Node(node) => frame.to == Some(node),
            CableEnd::Switch(_) => false,
        };
        if is_last {
            let comment = frame.marked.take();
            self.passes(now, &frame, comment);
        }
        self.comes_to_wait(now, &frame);
        self.cables[cable].push(frame);
        self.start(now, cable);
        self.watch(now, cable);
    }

    /// Why a frame is lost at a port where so much waits of its priority, if it is.
    fn why_lost(&mut self, cable: usize, frame: &Carried, waiting: u64) -> Option<String> {
        let (lose, room) = (self.settings.lose, self.settings.room);
        if lose > 0 && matches!(self.cables[cable].to, CableEnd::Node(_)) && self.lot.draw() * (lose as f64) < 1.0 {
            return Some("lost by lot".to_owned());
        }
        let (taken, of) = match self.settings.pfc {
            Some(_) => {
                (frame.came_by.map_or(0, |from| self.cables[from].stored[frame.priority()]), " of one neighbour")
            }
            None => (waiting, ""),
        };
        (taken + frame.length() > room).then(|| format!("{taken} bytes{of} wait, and there is room for {room}"))
    }

    /// What waits for a cable has changed: it will be told how much it is.
    pub(super) fn watch(&mut self, now: Duration, cable: usize) {
        // What a node has not sent yet is its own affair.
        let is_port = matches!(self.cables[cable].from, CableEnd::Switch(_));
        if is_port && !std::mem::replace(&mut self.cables[cable].is_watched, true) {
            self.at(now + LOOK, Happening::Looks(cable));
        }
    }

    pub(super) fn look(&mut self, now: Duration, cable: usize) {
        let at = &mut self.cables[cable];
        let bytes = at.bytes.iter().sum();
        let (to, before) = (at.to, std::mem::replace(&mut at.looked, bytes));
        at.is_watched = false;
        if bytes != before {
            let port = self.name(to);
            self.tell(now, Event { port, what: What::Queue(bytes) });
        }
    }

    /// What an end of a cable is called.
    pub(super) fn name(&self, place: CableEnd) -> String {
        match place {
            CableEnd::Node(node) => self.names[node].clone(),
            CableEnd::Switch(switch) => format!("switch {}", switch + 1),
        }
    }
}

impl Ecn {
    /// The share of frames to be marked that come to a queue with this many bytes.
    pub fn share(&self, waiting: u64) -> f64 {
        match waiting {
            waiting if waiting >= self.all => 1.0,
            waiting if waiting <= self.none => 0.0,
            waiting => self.most * (waiting - self.none) as f64 / (self.all - self.none) as f64,
        }
    }
}

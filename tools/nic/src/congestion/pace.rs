//! The pace of a queue pair: when its next packet may go out, by the link's rate, by DCQCN's, and by the switch's word.
//!
//! A real NIC has a scheduler that picks the next queue pair for its port. Here each has two paces of its own, one for what it requests
//! and one for what it answers; where several send at once, the link sorts them out.

use super::pause::priority;
use super::reaction::Reaction;
use super::{time, Link};
use crate::time::Time;

#[derive(Debug, Default)]
pub struct Pace {
    /// Until when the next packet has to wait, as [`Pace::has_to_wait`] found last.
    pub waits_until: Option<Time>,
    /// When what was sent has left, at the rate.
    free: Option<Time>,
    /// There is none before the first CNP: the rate is the link's.
    reaction: Option<Reaction>,
}

impl Pace {
    /// Whether the next packet of this traffic class has to wait.
    pub fn has_to_wait(&mut self, class: u8, link: &Link, now: Time) -> bool {
        let free = self.free.filter(|free| *free > now);
        self.waits_until = free.max(link.pause.until(priority(class), now));
        self.waits_until.is_some()
    }

    /// A packet goes out that takes so many bytes of the link.
    pub fn sent(&mut self, bytes: u64, link: &Link, now: Time) {
        let mut rate = link.rate;
        if let (Some(reaction), Some(parameters)) = (&mut self.reaction, &link.dcqcn) {
            reaction.sent(bytes, parameters, link.rate);
            rate = reaction.rate(parameters, link.rate, now);
        }
        self.free = Some(now + time(bytes, rate));
    }

    /// A CNP has come. Gives the new rate in bit/s; None if we do not react.
    pub fn notified(&mut self, link: &Link, now: Time) -> Option<u64> {
        let parameters = link.dcqcn.as_ref()?;
        let reaction = self.reaction.get_or_insert_with(|| Reaction::new(parameters, link.rate, now));
        reaction.cut(parameters, link.rate, now);
        Some(reaction.rate(parameters, link.rate, now))
    }
}

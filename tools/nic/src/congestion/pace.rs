//! The pace of a queue pair: when its next packet may go out, considering the link's rate, DCQCN's, and what the switch has said.
//!
//! A real NIC has a scheduler that picks the next queue pair for its port. Here, each queue pair has two paces, one for its
//! requests and one for its answers, and if several send at once, the link sorts them out.

use super::pause::priority;
use super::reaction::Reaction;
use super::{time, Link};
use crate::time::Time;

#[derive(Debug, Default)]
pub struct Pace {
    /// Until when the next packet must wait, as [`Pace::has_to_wait`] has found most recently.
    pub waits_until: Option<Time>,
    /// When everything that was sent has left, at this rate.
    free: Option<Time>,
    /// Before the first CNP there's none, and the rate is the link's.
    reaction: Option<Reaction>,
}

impl Pace {
    /// Whether the next packet of this traffic class must wait.
    pub fn has_to_wait(&mut self, class: u8, link: &Link, now: Time) -> bool {
        let free = self.free.filter(|free| *free > now);
        self.waits_until = free.max(link.pause.until(priority(class), now));
        self.waits_until.is_some()
    }

    /// A packet goes out that takes this many bytes of the link.
    pub fn sent(&mut self, bytes: u64, link: &Link, now: Time) {
        let mut rate = link.rate;
        if let (Some(reaction), Some(parameters)) = (&mut self.reaction, &link.dcqcn) {
            reaction.sent(bytes, parameters, link.rate);
            rate = reaction.rate(parameters, link.rate, now);
        }
        self.free = Some(now + time(bytes, rate));
    }

    /// A CNP has come. Returns the new rate in bit/s, or None if we don't react.
    pub fn notified(&mut self, link: &Link, now: Time) -> Option<u64> {
        let parameters = link.dcqcn.as_ref()?;
        let reaction = self.reaction.get_or_insert_with(|| Reaction::new(parameters, link.rate, now));
        reaction.cut(parameters, link.rate, now);
        Some(reaction.rate(parameters, link.rate, now))
    }
}

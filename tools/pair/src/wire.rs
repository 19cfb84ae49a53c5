//! A wire that loses, doubles and delays.

use std::collections::{BTreeMap, VecDeque};

/// What the wire does to one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Lose,
    Double,
    /// It comes after this many packets that were sent later.
    Delay(u8),
}

/// What's under way, and what happens to it.
#[derive(Debug)]
pub struct Wire<T> {
    /// By the place of a packet among all that are sent.
    faults: BTreeMap<usize, Fault>,
    sent: usize,
    /// To which end, how many others pass before, and what happens to it.
    items: VecDeque<(usize, u8, Option<Fault>, T)>,
}

impl<T: Clone> Wire<T> {
    pub fn new(faults: BTreeMap<usize, Fault>) -> Wire<T> {
        Wire { faults, sent: 0, items: VecDeque::new() }
    }

    /// Sends something. Gives what happens to it.
    pub fn send(&mut self, to: usize, item: T) -> Option<Fault> {
        let fault = self.faults.get(&self.sent).copied();
        self.sent += 1;
        let passes: &[u8] = match &fault {
            None => &[0],
            Some(Fault::Lose) => &[],
            Some(Fault::Double) => &[0, 0],
            Some(Fault::Delay(others)) => std::slice::from_ref(others),
        };
        self.items.extend(passes.iter().map(|passes| (to, *passes, fault, item.clone())));
        fault
    }

    /// The next one that arrives: one that is late lets others pass, as long as there are any.
    pub fn take(&mut self) -> Option<(usize, Option<Fault>, T)> {
        let ready = self.items.iter().position(|(_, passes, ..)| *passes == 0).unwrap_or(0);
        self.items.iter_mut().take(ready).for_each(|(_, passes, ..)| *passes = passes.saturating_sub(1));
        self.items.remove(ready).map(|(to, _, fault, item)| (to, fault, item))
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

//! Keeps, for each queue, the memory that its requests need until they're done.
//!
//! From the post of a request to its completion the device reads or writes the request's regions, even if the program drops them
//! meanwhile. That's why a queue keeps a share of each. A receive queue completes each of its requests; a send queue only the
//! signaled ones, but in order, so the completion of one also says that all before it are done. RESET forgets what is posted,
//! and no completion will report it.
//!
//! Numbers are given in rising order, so each list stays sorted. Once a list has been as long as it gets, nothing more is
//! allocated.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use smallvec::SmallVec;

use crate::{ah, mr};

/// The shares of one request: one for each of its scatter/gather elements.
pub(crate) type Memory = SmallVec<[Rc<mr::Inner>; 1]>;

/// The requests of a send queue, oldest first.
#[derive(Default)]
pub(crate) struct SendLedger(RefCell<VecDeque<Sent>>);

struct Sent {
    wr_id: u64,
    signaled: bool,
    _memory: Memory,
    _to: Option<Rc<ah::Inner>>,
}

impl SendLedger {
    /// `to` is the address handle of a datagram.
    pub fn add(&self, wr_id: u64, signaled: bool, memory: Memory, to: Option<Rc<ah::Inner>>) {
        self.0.borrow_mut().push_back(Sent { wr_id, signaled, _memory: memory, _to: to });
    }

    /// Releases this request and all before it.
    pub fn complete(&self, wr_id: u64) {
        let mut sent = self.0.borrow_mut();
        if let Ok(position) = sent.binary_search_by_key(&wr_id, |request| request.wr_id) {
            sent.drain(..=position);
        }
    }

    /// The device has forgotten all of them.
    pub fn clear(&self) {
        self.0.borrow_mut().clear();
    }

    /// True if a completion with this number will come.
    pub fn will_complete(&self, wr_id: u64) -> bool {
        let sent = self.0.borrow();
        sent.binary_search_by_key(&wr_id, |request| request.wr_id).is_ok_and(|position| sent[position].signaled)
    }
}

/// The requests of a receive queue, or of an SRQ.
#[derive(Default)]
pub(crate) struct ReceiveLedger(RefCell<VecDeque<(u64, Memory)>>);

impl ReceiveLedger {
    pub fn add(&self, wr_id: u64, memory: Memory) {
        self.0.borrow_mut().push_back((wr_id, memory));
    }

    /// Releases this request. False if it isn't one of this queue's.
    pub fn complete(&self, wr_id: u64) -> bool {
        let mut posted = self.0.borrow_mut();
        let position = posted.binary_search_by_key(&wr_id, |(wr_id, _)| *wr_id);
        position.is_ok_and(|position| posted.remove(position).is_some())
    }

    /// The device has forgotten all of them.
    pub fn clear(&self) {
        self.0.borrow_mut().clear();
    }

    /// True if a completion with this number will come.
    pub fn will_complete(&self, wr_id: u64) -> bool {
        self.0.borrow().binary_search_by_key(&wr_id, |(wr_id, _)| *wr_id).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signaled_completion_releases_all_before_it() {
        let sent = SendLedger::default();
        let left = || sent.0.borrow().iter().map(|sent| sent.wr_id).collect::<Vec<_>>();
        for wr_id in 1..=4 {
            sent.add(wr_id, wr_id % 2 == 0, Memory::new(), None);
        }
        assert_eq!((1..=5).filter(|wr_id| sent.will_complete(*wr_id)).collect::<Vec<_>>(), [2, 4]);
        sent.complete(2);
        assert_eq!(left(), [3, 4]);
        sent.complete(2);
        assert_eq!(left(), [3, 4], "a number of the past releases nothing");
        // A flush reports unsignaled requests as well.
        sent.complete(3);
        assert_eq!(left(), [4]);
        sent.clear();
        assert!(!sent.will_complete(4));
    }

    #[test]
    fn receives_complete_in_any_order() {
        let posted = ReceiveLedger::default();
        for wr_id in 1..=3 {
            posted.add(wr_id, Memory::new());
        }
        assert!(posted.complete(2) && !posted.complete(2) && !posted.complete(4));
        assert_eq!((1..=4).filter(|wr_id| posted.will_complete(*wr_id)).collect::<Vec<_>>(), [1, 3]);
        posted.clear();
        assert!(!posted.will_complete(1));
    }
}

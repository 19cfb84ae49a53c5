//! Which request a packet is part of. This is the only place that knows.
//!
//! A request has the numbers from its own first to the next one's (IBTA 9.7): a READ takes as many as its response has packets. So
//! it's enough to keep where requests begin; that holds for answers as well, and needs no path MTU.

use crate::opcode::{Opcode, Operation, Part};
use std::collections::VecDeque;

/// How many requests of a direction are kept, the latest ones. Nobody answers or repeats older ones.
const MOST: usize = 4096;

/// The message that a packet is a part of, or answers: what one work request put on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The PSN of its first packet, counted from the first of the direction. No other request of this direction has it.
    pub first: i64,
    /// Whether the packet at hand is the first of it that was seen.
    pub begins: bool,
}

#[derive(Clone, Copy, Debug)]
struct Start {
    first: i64,
    /// Behind its last packet; of a READ it's not known.
    end: i64,
    /// Its first packet was not seen yet.
    lacks_first: bool,
}

/// The requests of one side, put together from packets that may be lost, overtaken or sent again.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    starts: VecDeque<Start>,
    /// What the latest one does, as long as it lacks its last packet.
    open: Option<Operation>,
}

impl Requests {
    /// The next packet of a request; `again` if its number is not newer than one before it.
    pub(super) fn see(&mut self, psn: i64, opcode: &Opcode, again: bool) -> Option<Request> {
        let is_first = opcode.is_first();
        let begins = if again { is_first && self.is_late(psn) } else { self.is_next(psn, opcode, is_first) };
        if begins {
            let end = if opcode.operation == Operation::ReadRequest { i64::MAX } else { psn + 1 };
            self.add(Start { first: psn, end, lacks_first: !is_first });
        }
        self.at(psn).map(|request| Request { begins, ..request })
    }

    /// The request that a number belongs to.
    pub(super) fn at(&self, psn: i64) -> Option<Request> {
        let start = match self.starts.back() {
            Some(last) if last.first <= psn => last,
            _ => self.starts.get(self.after(psn).checked_sub(1)?)?,
        };
        Some(Request { first: start.first, begins: false })
    }

    /// Whether a new packet begins a request, or goes on with the latest one.
    fn is_next(&mut self, psn: i64, opcode: &Opcode, is_first: bool) -> bool {
        let goes_on = !is_first && self.open == Some(opcode.operation);
        self.open = matches!(opcode.part, Part::First | Part::Middle).then_some(opcode.operation);
        if let Some(last) = self.starts.back_mut().filter(|_| goes_on) {
            last.end = psn + 1;
        }
        !goes_on
    }

    /// Whether a packet that comes too late begins a request, and none that is known.
    fn is_late(&self, psn: i64) -> bool {
        let before = self.after(psn).checked_sub(1).and_then(|at| self.starts.get(at));
        before.map_or(true, |before| before.end <= psn)
    }

    fn add(&mut self, start: Start) {
        let at = self.after(start.first);
        match self.starts.get_mut(at).filter(|next| next.lacks_first && !start.lacks_first) {
            Some(next) => (next.first, next.lacks_first) = (start.first, false),
            None => self.starts.insert(at, start),
        }
        if self.starts.len() > MOST {
            self.starts.pop_front();
        }
    }

    /// How many begin at this number or before it.
    fn after(&self, psn: i64) -> usize {
        match self.starts.back() {
            Some(last) if last.first > psn => self.starts.partition_point(|start| start.first <= psn),
            _ => self.starts.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opcode::lookup;

    const FIRST: u8 = 0;
    const MIDDLE: u8 = 1;
    const LAST: u8 = 2;
    const ONLY: u8 = 4;
    const READ: u8 = 12;

    /// The first numbers of the requests that these packets are taken for, and which packets begin one.
    fn taken(packets: &[(i64, u8)]) -> Vec<(i64, bool)> {
        let (mut requests, mut newest) = (Requests::default(), -1);
        let see = |&(psn, opcode): &(i64, u8)| {
            let again = psn <= newest;
            newest = newest.max(psn);
            let request = requests.see(psn, lookup(opcode), again).unwrap();
            (request.first, request.begins)
        };
        packets.iter().map(see).collect()
    }

    #[test]
    fn a_request_has_the_numbers_up_to_the_next_one() {
        let packets = [(0, ONLY), (1, FIRST), (2, MIDDLE), (3, LAST), (4, READ), (9, ONLY), (6, READ), (9, ONLY)];
        let first = [(0, true), (1, true), (1, false), (1, false), (4, true), (9, true), (4, false), (9, false)];
        assert_eq!(taken(&packets), first);
    }

    #[test]
    fn what_was_lost_comes_later_and_is_a_request_of_its_own() {
        assert_eq!(taken(&[(0, ONLY), (2, ONLY), (1, ONLY), (2, ONLY)]), [(0, true), (2, true), (1, true), (2, false)]);
        let headless = [(0, ONLY), (2, MIDDLE), (3, LAST), (1, FIRST), (2, MIDDLE), (3, LAST)];
        assert_eq!(taken(&headless), [(0, true), (2, true), (2, false), (1, true), (1, false), (1, false)]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut requests = Requests::default();
        for psn in 0..3 * MOST as i64 {
            requests.see(psn, lookup(ONLY), false);
        }
        assert_eq!((requests.starts.len(), requests.at(0)), (MOST, None));
    }
}

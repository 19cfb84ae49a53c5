//! Handles: small numbers in place of objects, as in a teaching kernel's API, or as file descriptors.
//!
//! A slot is used again, a handle never is: giving one back raises its slot's generation, and the old handle fits nothing.

use std::cell::Cell;

use common::{CompletionQueue, MemoryRegion, QpState, QueuePair};

use crate::error::{RdmaError, Result};
use crate::wc::Posted;

/// What `reg_mr` and `create_qp` return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle {
    slot: usize,
    generation: u64,
}

/// A queue pair, its two completion queues, and its requests that were posted and not polled yet.
pub struct Pair {
    pub qp: QueuePair,
    pub send_cq: CompletionQueue,
    pub recv_cq: CompletionQueue,
    /// Where we have moved it. (To ERR it goes by itself.)
    pub state: Cell<QpState>,
    /// How many requests each takes: its send queue, its receive queue.
    pub room: [usize; 2],
    pub posted: Posted,
}

pub enum Object {
    Region(MemoryRegion),
    Pair(Box<Pair>),
    Nothing,
}

/// All that a program has registered and created: each slot's generation, and what it holds.
#[derive(Default)]
pub struct Table(Vec<(u64, Object)>);

impl Table {
    pub fn add(&mut self, object: Object) -> Handle {
        let free = self.0.iter().position(|(_, object)| matches!(object, Object::Nothing));
        let slot = free.unwrap_or(self.0.len());
        match free {
            Some(slot) => self.0[slot].1 = object,
            None => self.0.push((0, object)),
        }
        Handle { slot, generation: self.0[slot].0 }
    }

    pub fn region(&self, handle: Handle) -> Result<&MemoryRegion> {
        match self.object(handle)? {
            Object::Region(region) => Ok(region),
            _ => Err(RdmaError::InvalidMr(handle)),
        }
    }

    pub fn pair(&self, handle: Handle) -> Result<&Pair> {
        match self.object(handle)? {
            Object::Pair(pair) => Ok(pair),
            _ => Err(RdmaError::InvalidQp(handle)),
        }
    }

    fn object(&self, handle: Handle) -> Result<&Object> {
        let slot = self.0.get(handle.slot).filter(|(generation, _)| *generation == handle.generation);
        slot.map(|(_, object)| object).ok_or(RdmaError::GivenBack(handle))
    }

    pub fn give_back(&mut self, handle: Handle) {
        if self.object(handle).is_ok() {
            self.0[handle.slot] = (handle.generation + 1, Object::Nothing);
        }
    }
}

#[cfg(test)]
#[test]
fn a_handle_that_was_given_back_stays_invalid() {
    let mut table = Table(vec![(0, Object::Nothing)]);
    for generation in 0..3 {
        let handle = Handle { slot: 0, generation };
        assert_eq!(table.pair(handle).err(), Some(RdmaError::InvalidQp(handle)));
        (0..2).for_each(|_| table.give_back(handle));
        assert_eq!(table.region(handle).err(), Some(RdmaError::GivenBack(handle)));
    }
    assert_eq!(table.add(Object::Nothing), Handle { slot: 0, generation: 3 });
}

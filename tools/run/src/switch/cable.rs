//! One direction of a cable: the queues in front of it, and what its other end has counted.

use super::frame::{Carried, PRIORITIES};
use std::collections::VecDeque;
use std::time::Duration;

/// An end of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CableEnd {
    Node(usize),
    Switch(usize),
}

#[derive(Debug)]
pub struct Cable {
    pub from: CableEnd,
    pub to: CableEnd,
    /// What waits, by its priority.
    queues: [VecDeque<Carried>; PRIORITIES],
    /// How many bytes wait, or are being sent, by their priority.
    pub bytes: [u64; PRIORITIES],
    /// Frames of the link itself, which go first, and know no pause.
    control: VecDeque<Carried>,
    sending: Option<Carried>,
    /// Until when nothing is sent of a priority.
    pub paused: [Duration; PRIORITIES],
    /// Bytes that have come by this cable and are still in the switch at its end.
    pub stored: [u64; PRIORITIES],
    /// When that switch has last told the other end to pause, if it is to.
    pub told: [Option<Duration>; PRIORITIES],
    /// Bytes in the queues that were told of last.
    pub looked: u64,
    pub is_watched: bool,
}

/// All cables of this many nodes, and of this many switches if these form a ring.
pub fn laid(nodes: usize, ring: usize) -> Vec<Cable> {
    let (node, switch) = (CableEnd::Node, |number| CableEnd::Switch(number % ring.max(1)));
    let of_nodes = (0..nodes).flat_map(|number| pair(node(number), switch(number)));
    of_nodes.chain((0..ring).flat_map(|number| pair(switch(number), switch(number + 1)))).collect()
}

fn pair(one: CableEnd, other: CableEnd) -> [Cable; 2] {
    [Cable::new(one, other), Cable::new(other, one)]
}

pub fn from_node(node: usize) -> usize {
    2 * node
}

pub fn to_node(node: usize) -> usize {
    2 * node + 1
}

/// From a switch to the next one of the ring.
pub fn to_next(nodes: usize, switch: usize) -> usize {
    2 * nodes + 2 * switch
}

/// The other direction.
pub fn back(cable: usize) -> usize {
    cable ^ 1
}

impl Cable {
    fn new(from: CableEnd, to: CableEnd) -> Cable {
        Cable {
            from,
            to,
            queues: Default::default(),
            bytes: Default::default(),
            control: VecDeque::new(),
            sending: None,
            paused: Default::default(),
            stored: Default::default(),
            told: Default::default(),
            looked: 0,
            is_watched: false,
        }
    }

    pub fn push(&mut self, frame: Carried) {
        if frame.is_control() {
            self.control.push_back(frame);
            return;
        }
        self.bytes[frame.priority()] += frame.length();
        self.queues[frame.priority()].push_back(frame);
    }

    /// Begins to send the next frame, if one may be sent, and gives its length.
    pub fn start(&mut self, now: Duration) -> Option<usize> {
        if self.sending.is_some() {
            return None;
        }
        let next = self.control.pop_front().or_else(|| {
            let may_be_sent = |priority: &usize| self.paused[*priority] <= now && !self.queues[*priority].is_empty();
            let priority = (0..PRIORITIES).rev().find(may_be_sent)?;
            self.queues[priority].pop_front()
        });
        self.sending = next;
        self.sending.as_ref().map(|frame| frame.bytes.len())
    }

    pub fn sends_control(&self) -> bool {
        self.sending.as_ref().is_some_and(Carried::is_control)
    }

    /// The frame that was being sent is on the cable.
    pub fn finish(&mut self) -> Option<Carried> {
        let sent = self.sending.take()?;
        if !sent.is_control() {
            self.bytes[sent.priority()] -= sent.length();
        }
        Some(sent)
    }
}

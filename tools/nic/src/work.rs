//! Work requests, which a program posts, and the queue of receives (specification, volume 1, 10.7 and 11.4.1).

use crate::completion::WcOpcode;
use crate::memory::{Bind, Sge};
use crate::packet::Feth;
use roce::opcode::Service;
use std::collections::VecDeque;
use std::fmt;
use std::net::IpAddr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    pub address: u64,
    /// The key that the peer has given us.
    pub rkey: u32,
}

/// Where a datagram goes: an address handle, and which queue pair there it's for (11.4.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// A machine, or a multicast group.
    pub address: IpAddr,
    /// The traffic class of packets that go there.
    pub class: u8,
    /// The queue pair; [`Destination::GROUP`] for all of a group.
    pub qp: u32,
    /// The key of the receiving queue pair. If its highest bit is set, the sending queue pair's own key is used instead (3.5.3).
    pub qkey: u32,
}

impl Destination {
    /// The number that stands for all queue pairs of a multicast group (chapter 10).
    pub const GROUP: u32 = 0xff_ffff;
}

/// What a send request should do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// SEND. The peer's next receive says where the bytes go.
    Send,
    /// SEND, after which the named key of the peer's opens nothing any more.
    SendInvalidate(u32),
    /// SEND of an unreliable datagram.
    Datagram(Destination),
    Write(Remote),
    Read(Remote),
    CompareSwap {
        remote: Remote,
        compare: u64,
        swap: u64,
    },
    FetchAdd {
        remote: Remote,
        add: u64,
    },
    /// Replaces eight bytes at once.
    AtomicWrite(Remote),
    /// FLUSH: is answered once everything written before has been placed.
    Flush {
        remote: Remote,
        feth: Feth,
    },
    /// Binds a memory window. Nothing is sent.
    Bind(Bind),
    /// Makes a key of our own invalid. Nothing is sent.
    LocalInvalidate(u32),
    /// A number that isn't an operation. It fails when its turn comes.
    Unknown,
}

impl Work {
    /// What gets a response of its own. That's READs and atomics, whose response brings bytes, and also ATOMIC WRITE and FLUSH.
    /// If the response is lost, we have to ask again.
    pub fn wants_response(self) -> bool {
        matches!(self, Work::Read(_)) || self.is_one_packet()
    }

    /// One packet out and one back, whatever its length.
    pub fn is_one_packet(self) -> bool {
        self.is_atomic() || matches!(self, Work::AtomicWrite(_) | Work::Flush { .. })
    }

    /// Changes eight bytes, and brings back what was there.
    pub fn is_atomic(self) -> bool {
        matches!(self, Work::CompareSwap { .. } | Work::FetchAdd { .. })
    }

    /// What needs no packet.
    pub fn is_local(self) -> bool {
        matches!(self, Work::Bind(_) | Work::LocalInvalidate(_))
    }

    /// Whether a service can do it, that is, whether it has the opcodes for it (table 38 in 9.2).
    pub fn is_offered_by(self, service: Service) -> bool {
        match self {
            Work::Datagram(_) => service == Service::Ud,
            Work::Unknown => false,
            Work::Send | Work::Write(_) | Work::Bind(_) => service.is_connected(),
            _ => service.is_reliable(),
        }
    }

    pub fn opcode(self) -> WcOpcode {
        self.words().0
    }

    /// What its completion calls it, and its name in logged decisions.
    fn words(self) -> (WcOpcode, &'static str) {
        match self {
            Work::Send => (WcOpcode::Send, "SEND"),
            Work::SendInvalidate(_) => (WcOpcode::Send, "SEND with invalidate"),
            Work::Datagram(_) => (WcOpcode::Send, "datagram"),
            Work::Write(_) => (WcOpcode::RdmaWrite, "WRITE"),
            Work::Read(_) => (WcOpcode::RdmaRead, "READ"),
            Work::CompareSwap { .. } => (WcOpcode::CompSwap, "compare and swap"),
            Work::FetchAdd { .. } => (WcOpcode::FetchAdd, "fetch and add"),
            Work::AtomicWrite(_) => (WcOpcode::AtomicWrite, "ATOMIC WRITE"),
            Work::Flush { .. } => (WcOpcode::Flush, "FLUSH"),
            Work::Bind(_) => (WcOpcode::BindMw, "bind"),
            Work::LocalInvalidate(_) => (WcOpcode::LocalInv, "local invalidate"),
            Work::Unknown => (WcOpcode::Send, "an unknown operation"),
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words().1)
    }
}

/// The program's bytes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Local {
    /// Copied when the request was posted.
    Inline(Vec<u8>),
    /// Registered memory that the device reads or writes.
    SgList(Vec<Sge>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendRequest {
    pub wr_id: u64,
    pub work: Work,
    pub local: Local,
    pub length: u32,
    /// Four bytes for the receiver's completion.
    pub immediate: Option<u32>,
    /// The program also wants a completion if it succeeds.
    pub signaled: bool,
    pub solicited: bool,
    /// Must wait until all READs and atomics that were posted earlier are done.
    pub fence: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiveRequest {
    pub wr_id: u64,
    pub sge: Vec<Sge>,
}

impl ReceiveRequest {
    pub fn room(&self) -> u64 {
        self.sge.iter().map(|sge| u64::from(sge.length)).sum()
    }
}

/// Posted receives, of one queue pair or shared by several (an SRQ).
#[derive(Debug, Default)]
pub struct ReceiveQueue {
    entries: VecDeque<ReceiveRequest>,
    capacity: usize,
    /// The protection domain of the receives' memory.
    pd: u32,
    limit: usize,
}

impl ReceiveQueue {
    pub fn new(capacity: usize, pd: u32) -> ReceiveQueue {
        ReceiveQueue { entries: VecDeque::new(), capacity, pd, limit: 0 }
    }

    pub fn pd(&self) -> u32 {
        self.pd
    }

    /// Adds a receive. False if the queue is full.
    pub fn post(&mut self, request: ReceiveRequest) -> bool {
        let fits = self.entries.len() < self.capacity;
        if fits {
            self.entries.push_back(request);
        }
        fits
    }

    /// Changes its size. The new one must have room for the receives that wait there.
    pub fn resize(&mut self, capacity: usize) {
        self.capacity = capacity;
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn take(&mut self) -> Option<ReceiveRequest> {
        self.entries.pop_front()
    }

    /// Asks to be notified once when fewer receives than this are left; 0 means never.
    pub fn arm_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Whether the limit has been reached since it was armed.
    pub fn reached_limit(&mut self) -> bool {
        let reached = self.entries.len() < self.limit;
        if reached {
            self.limit = 0;
        }
        reached
    }
}

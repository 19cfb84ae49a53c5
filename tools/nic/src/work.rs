//! Work requests: what a program posts, and the queue of receives (specification, volume 1, 10.8 and 11.4.1).

use crate::completion::WcOpcode;
use crate::memory::Sge;
use std::collections::VecDeque;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    pub address: u64,
    /// The key that the peer has told us.
    pub rkey: u32,
}

/// What a send request is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// SEND: the peer's next receive says where.
    Send,
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
}

impl Work {
    /// READs and atomics: the response brings bytes, so a lost response means asking again.
    pub fn wants_response(self) -> bool {
        matches!(self, Work::Read(_)) || self.is_atomic()
    }

    /// Eight bytes, one packet there and one back.
    pub fn is_atomic(self) -> bool {
        matches!(self, Work::CompareSwap { .. } | Work::FetchAdd { .. })
    }

    pub fn opcode(self) -> WcOpcode {
        match self {
            Work::Send => WcOpcode::Send,
            Work::Write(_) => WcOpcode::RdmaWrite,
            Work::Read(_) => WcOpcode::RdmaRead,
            Work::CompareSwap { .. } => WcOpcode::CompSwap,
            Work::FetchAdd { .. } => WcOpcode::FetchAdd,
        }
    }
}

/// Its name in decisions.
impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Work::Send => "SEND",
            Work::Write(_) => "WRITE",
            Work::Read(_) => "READ",
            Work::CompareSwap { .. } => "compare and swap",
            Work::FetchAdd { .. } => "fetch and add",
        })
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
    /// A completion is wanted for a success, too.
    pub signaled: bool,
    pub solicited: bool,
    /// Not before all READs and atomics posted earlier are done.
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

/// Posted receives: of one queue pair, or shared by several (an SRQ).
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

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn take(&mut self) -> Option<ReceiveRequest> {
        self.entries.pop_front()
    }

    /// Asks to be told once when fewer receives than this are left; 0 for never.
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

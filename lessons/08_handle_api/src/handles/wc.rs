//! A queue pair with its requests, and their completions: four statuses for the two dozen of verbs.

use std::collections::BTreeMap;

use common::wc::{IBV_WC_LOC_PROT_ERR, IBV_WC_REM_ACCESS_ERR, IBV_WC_SUCCESS};
use common::{CompletionQueue, Error, QueuePair, Result, WorkCompletion};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Success,
    /// Our own device found that our memory isn't fit for the request.
    LocProtErr,
    /// The peer's device refused: key, range or permission.
    RemAccessErr,
    /// Anything else. The log has the name that verbs give it.
    GeneralErr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opcode {
    Write,
    Read,
    Send,
    Receive,
}

#[derive(Debug, Clone, Copy)]
pub struct Wc {
    pub wr_id: u64,
    pub status: Status,
    pub opcode: Opcode,
    /// How many bytes were transferred, which is none if it failed.
    pub byte_len: usize,
}

impl Wc {
    pub fn check(self) -> Result<()> {
        let what = format!("work request {} ended with {:?}", self.wr_id, self.status);
        let next = "The last line with WC before this one has the name that verbs give it: see docs/completions.md";
        (self.status == Status::Success).then_some(()).ok_or_else(|| Error::content(what, next))
    }
}

pub struct Pair {
    pub qp: QueuePair,
    pub send_cq: CompletionQueue,
    pub recv_cq: CompletionQueue,
    pub connected: bool,
    /// How many requests each takes: its send queue, its receive queue.
    pub room: [usize; 2],
    /// What each request that's posted and not yet polled asked for, and how many bytes. Verbs give us neither the opcode
    /// of a failed request nor the length of a WRITE. And by counting them we know when the CQ would overflow.
    pub posted: BTreeMap<u64, (Opcode, usize)>,
}

impl Pair {
    /// Refuses what the device would refuse, and what it would take and then have no room to report.
    pub fn check(&self, opcode: Opcode) -> Result<()> {
        if !self.connected {
            let what = "the queue pair takes no request: it leads nowhere";
            return Err(Error::content(what, "Connect it first, with connect_qp"));
        }
        let is_receive = |opcode| opcode == Opcode::Receive;
        let room = self.room[usize::from(is_receive(opcode))];
        if self.posted.values().filter(|(posted, _)| is_receive(*posted) == is_receive(opcode)).count() < room {
            return Ok(());
        }
        let what = format!("the queue is full: {room} requests are posted and not polled");
        Err(Error::content(what, "Poll completions before you post more, or create the queue pair with a larger CQ"))
    }

    /// The device's completion in this API's words. None if it's from an earlier connection.
    pub fn complete(&mut self, wc: &WorkCompletion) -> Option<Wc> {
        let (opcode, length) = self.posted.remove(&wc.wr_id)?;
        let (status, byte_len) = match wc.status {
            IBV_WC_SUCCESS => (Status::Success, wc.byte_len().unwrap_or(length)),
            IBV_WC_LOC_PROT_ERR => (Status::LocProtErr, 0),
            IBV_WC_REM_ACCESS_ERR => (Status::RemAccessErr, 0),
            _ => (Status::GeneralErr, 0),
        };
        Some(Wc { wr_id: wc.wr_id, status, opcode, byte_len })
    }
}

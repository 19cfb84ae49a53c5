//! Completions: `struct rdma_wc`, with four statuses for the two dozen of verbs.

use std::cell::RefCell;
use std::collections::HashMap;

use common::wc::{IBV_WC_LOC_PROT_ERR, IBV_WC_REM_ACCESS_ERR, IBV_WC_SUCCESS};
use common::WorkCompletion;

use crate::error::{RdmaError, Result};

#[allow(non_camel_case_types)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Status {
    #[default]
    RDMA_WC_SUCCESS,
    /// Our own device found our memory not fit for the request.
    RDMA_WC_LOC_PROT_ERR,
    /// The peer's device refused: key, range or permission.
    RDMA_WC_REM_ACCESS_ERR,
    /// Anything else. The log has the name that verbs give it.
    RDMA_WC_GENERAL_ERR,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Opcode {
    #[default]
    Write,
    Read,
    Send,
    Receive,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wc {
    pub wr_id: u64,
    pub status: Status,
    pub opcode: Opcode,
    /// How many bytes were transferred: none if it failed.
    pub byte_len: u64,
}

impl Wc {
    pub fn check(self) -> Result<()> {
        match self.status {
            Status::RDMA_WC_SUCCESS => Ok(()),
            _ => Err(RdmaError::Failed(self)),
        }
    }
}

/// What each request that is posted and not polled asked for, and how much. Verbs tell neither the opcode of a request that
/// failed nor the length of a WRITE; and whoever counts the requests knows when the CQ would overflow.
#[derive(Default)]
pub struct Posted(pub RefCell<HashMap<u64, (Opcode, u64)>>);

impl Posted {
    /// How many are of the same queue.
    pub fn count(&self, opcode: Opcode) -> usize {
        let is_receive = |opcode| opcode == Opcode::Receive;
        self.0.borrow().values().filter(|(posted, _)| is_receive(*posted) == is_receive(opcode)).count()
    }

    /// The device's completion in this API's words.
    pub fn complete(&self, wc: &WorkCompletion) -> Wc {
        let (opcode, length) = self.0.borrow_mut().remove(&wc.wr_id).unwrap_or_default();
        let (status, byte_len) = match wc.status {
            IBV_WC_SUCCESS => (Status::RDMA_WC_SUCCESS, wc.byte_len().map_or(length, |len| len as u64)),
            IBV_WC_LOC_PROT_ERR => (Status::RDMA_WC_LOC_PROT_ERR, 0),
            IBV_WC_REM_ACCESS_ERR => (Status::RDMA_WC_REM_ACCESS_ERR, 0),
            _ => (Status::RDMA_WC_GENERAL_ERR, 0),
        };
        Wc { wr_id: wc.wr_id, status, opcode, byte_len }
    }
}

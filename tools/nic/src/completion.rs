//! Completions, and the queues in which a program finds them (specification, volume 1, 11.4.2 and 10.2.2).

use std::collections::VecDeque;

/// How a work request ended: the numbers of `ibv_wc_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Success = 0,
    LocLenErr = 1,
    LocQpOpErr = 2,
    LocProtErr = 4,
    WrFlushErr = 5,
    BadRespErr = 7,
    RemInvReqErr = 9,
    RemAccessErr = 10,
    RemOpErr = 11,
    RetryExcErr = 12,
    RnrRetryExcErr = 13,
}

impl Status {
    /// The name in C.
    pub fn name(self) -> &'static str {
        match self {
            Status::Success => "IBV_WC_SUCCESS",
            Status::LocLenErr => "IBV_WC_LOC_LEN_ERR",
            Status::LocQpOpErr => "IBV_WC_LOC_QP_OP_ERR",
            Status::LocProtErr => "IBV_WC_LOC_PROT_ERR",
            Status::WrFlushErr => "IBV_WC_WR_FLUSH_ERR",
            Status::BadRespErr => "IBV_WC_BAD_RESP_ERR",
            Status::RemInvReqErr => "IBV_WC_REM_INV_REQ_ERR",
            Status::RemAccessErr => "IBV_WC_REM_ACCESS_ERR",
            Status::RemOpErr => "IBV_WC_REM_OP_ERR",
            Status::RetryExcErr => "IBV_WC_RETRY_EXC_ERR",
            Status::RnrRetryExcErr => "IBV_WC_RNR_RETRY_EXC_ERR",
        }
    }
}

/// What was done: the numbers of `ibv_wc_opcode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WcOpcode {
    Send = 0,
    RdmaWrite = 1,
    RdmaRead = 2,
    CompSwap = 3,
    FetchAdd = 4,
    Recv = 128,
    RecvRdmaWithImm = 129,
}

/// One entry of a completion queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The program's own number of the work request.
    pub wr_id: u64,
    pub status: Status,
    /// What was done. With an error a program must not look at it.
    pub opcode: WcOpcode,
    pub length: u32,
    pub immediate: Option<u32>,
    pub qp: u32,
    pub src_qp: u32,
    pub solicited: bool,
}

/// Which completions raise an event: once, then the program has to ask again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Armed {
    /// None.
    #[default]
    No,
    /// Those that the sender marked, and errors.
    Solicited,
    /// The next one.
    Any,
}

/// What pushing a completion gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// It lies in the queue.
    Quietly,
    /// And the queue was armed: wake the program.
    Ring,
    /// There was no room: it is lost, and the queue is broken.
    Overflow,
    /// It is lost in a queue that was broken before.
    Lost,
}

#[derive(Debug)]
pub struct CompletionQueue {
    entries: VecDeque<Completion>,
    capacity: usize,
    armed: Armed,
    broken: bool,
}

impl CompletionQueue {
    pub fn new(capacity: usize) -> CompletionQueue {
        CompletionQueue { entries: VecDeque::new(), capacity, armed: Armed::No, broken: false }
    }

    /// Asks for an event (`ibv_req_notify_cq`). What already lies here raises none: so arm first, then look. To ask for
    /// solicited ones only does not take back that all were asked for.
    pub fn arm(&mut self, armed: Armed) {
        if self.armed != Armed::Any {
            self.armed = armed;
        }
    }

    pub fn push(&mut self, completion: Completion) -> Pushed {
        if self.entries.len() >= self.capacity {
            let was_broken = std::mem::replace(&mut self.broken, true);
            return if was_broken { Pushed::Lost } else { Pushed::Overflow };
        }
        self.entries.push_back(completion);
        let rings = match self.armed {
            Armed::No => false,
            Armed::Solicited => completion.solicited || completion.status != Status::Success,
            Armed::Any => true,
        };
        if rings {
            self.armed = Armed::No;
            Pushed::Ring
        } else {
            Pushed::Quietly
        }
    }

    /// Takes the oldest completion (`ibv_poll_cq`).
    pub fn pop(&mut self) -> Option<Completion> {
        self.entries.pop_front()
    }

    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Forgets what a queue pair has completed: it is being destroyed.
    pub fn forget(&mut self, qp: u32) {
        self.entries.retain(|completion| completion.qp != qp);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(queue: &mut CompletionQueue, status: Status, solicited: bool) -> Pushed {
        let (opcode, immediate) = (WcOpcode::Recv, None);
        queue.push(Completion { wr_id: 1, status, opcode, length: 0, immediate, qp: 17, src_qp: 18, solicited })
    }

    #[test]
    fn an_armed_queue_rings_once_and_a_full_one_breaks() {
        use Status::{Success, WrFlushErr};
        let mut queue = CompletionQueue::new(8);
        for (armed, status, solicited, expected) in [
            (vec![], Success, true, Pushed::Quietly),
            (vec![Armed::Any, Armed::Solicited], Success, false, Pushed::Ring),
            (vec![], Success, false, Pushed::Quietly),
            (vec![Armed::Solicited], Success, false, Pushed::Quietly),
            (vec![], Success, true, Pushed::Ring),
            (vec![Armed::Solicited], WrFlushErr, false, Pushed::Ring),
            (vec![Armed::Solicited], WrFlushErr, false, Pushed::Ring),
            (vec![], WrFlushErr, true, Pushed::Quietly),
            (vec![Armed::Any], Success, false, Pushed::Overflow),
            (vec![], Success, false, Pushed::Lost),
        ] {
            armed.iter().for_each(|armed| queue.arm(*armed));
            assert_eq!(push(&mut queue, status, solicited), expected, "{armed:?} {status:?} {solicited}");
        }
        assert!(queue.is_broken() && queue.pop().is_some());
    }
}

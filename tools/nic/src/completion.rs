//! Completions, and when a queue of them wakes its program (specification, volume 1, 11.4.2).

/// How a work request ended, with the numbers of `ibv_wc_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Success = 0,
    LocLenErr = 1,
    LocQpOpErr = 2,
    LocProtErr = 4,
    WrFlushErr = 5,
    MwBindErr = 6,
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
            Status::MwBindErr => "IBV_WC_MW_BIND_ERR",
            Status::BadRespErr => "IBV_WC_BAD_RESP_ERR",
            Status::RemInvReqErr => "IBV_WC_REM_INV_REQ_ERR",
            Status::RemAccessErr => "IBV_WC_REM_ACCESS_ERR",
            Status::RemOpErr => "IBV_WC_REM_OP_ERR",
            Status::RetryExcErr => "IBV_WC_RETRY_EXC_ERR",
            Status::RnrRetryExcErr => "IBV_WC_RNR_RETRY_EXC_ERR",
        }
    }
}

/// What was done, with the numbers of `ibv_wc_opcode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WcOpcode {
    Send = 0,
    RdmaWrite = 1,
    RdmaRead = 2,
    CompSwap = 3,
    FetchAdd = 4,
    BindMw = 5,
    LocalInv = 6,
    Flush = 8,
    AtomicWrite = 9,
    Recv = 128,
    RecvRdmaWithImm = 129,
}

impl WcOpcode {
    /// The name in C.
    pub fn name(self) -> &'static str {
        match self {
            WcOpcode::Send => "IBV_WC_SEND",
            WcOpcode::RdmaWrite => "IBV_WC_RDMA_WRITE",
            WcOpcode::RdmaRead => "IBV_WC_RDMA_READ",
            WcOpcode::CompSwap => "IBV_WC_COMP_SWAP",
            WcOpcode::FetchAdd => "IBV_WC_FETCH_ADD",
            WcOpcode::BindMw => "IBV_WC_BIND_MW",
            WcOpcode::LocalInv => "IBV_WC_LOCAL_INV",
            WcOpcode::Flush => "IBV_WC_FLUSH",
            WcOpcode::AtomicWrite => "IBV_WC_ATOMIC_WRITE",
            WcOpcode::Recv => "IBV_WC_RECV",
            WcOpcode::RecvRdmaWithImm => "IBV_WC_RECV_RDMA_WITH_IMM",
        }
    }
}

/// One entry of a completion queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The program's own number of the work request.
    pub wr_id: u64,
    pub status: Status,
    /// What was done. After an error, a program must not look at it.
    pub opcode: WcOpcode,
    pub length: u32,
    pub immediate: Option<u32>,
    /// The key that this message made invalid.
    pub invalidated: Option<u32>,
    pub qp: u32,
    pub src_qp: u32,
    /// A datagram's 40-byte header precedes the message.
    pub grh: bool,
    pub solicited: bool,
}

/// Which completions raise an event. They do it once; then the program has to ask again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Armed {
    /// None.
    #[default]
    No,
    /// Those that the sender marked as solicited, and errors.
    Solicited,
    /// The next one.
    Any,
}

/// When a queue wakes its program.
#[derive(Debug, Default)]
pub struct Alarm(Armed);

impl Alarm {
    /// Asks for an event (`ibv_req_notify_cq`). Completions that are already in the queue raise none, so a program arms first and
    /// then looks. If all of them were asked for, asking for solicited ones only doesn't take that back.
    pub fn arm(&mut self, armed: Armed) {
        if self.0 != Armed::Any {
            self.0 = armed;
        }
    }

    /// Whether this completion wakes the program. If it does, the next one won't, until the program has asked again.
    pub fn rings(&mut self, completion: &Completion) -> bool {
        let rings = match self.0 {
            Armed::No => false,
            Armed::Solicited => completion.solicited || completion.status != Status::Success,
            Armed::Any => true,
        };
        if rings {
            self.0 = Armed::No;
        }
        rings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_armed_queue_rings_once() {
        use Status::{Success, WrFlushErr};
        let mut alarm = Alarm::default();
        for (armed, status, solicited, rings) in [
            (vec![], Success, true, false),
            (vec![Armed::Any, Armed::Solicited], Success, false, true),
            (vec![], Success, false, false),
            (vec![Armed::Solicited], Success, false, false),
            (vec![], Success, true, true),
            (vec![Armed::Solicited], WrFlushErr, false, true),
            (vec![], WrFlushErr, true, false),
        ] {
            armed.iter().for_each(|armed| alarm.arm(*armed));
            let (opcode, immediate, invalidated) = (WcOpcode::Recv, None, None);
            let (wr_id, length, qp, src_qp, grh) = (1, 0, 17, 18, false);
            let completion =
                Completion { wr_id, status, opcode, length, immediate, invalidated, qp, src_qp, grh, solicited };
            assert_eq!(alarm.rings(&completion), rings, "{armed:?} {status:?} {solicited}");
        }
    }
}

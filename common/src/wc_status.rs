//! `ibv_wc_status`: how a work request ended, and what that means (man 3 ibv_poll_cq; IBTA volume 1, section 10.10).

use crate::c_enum::c_enum;

c_enum! {
    /// How a work request ended.
    WcStatus = ibv_wc_status else "status" {
        IBV_WC_SUCCESS IBV_WC_LOC_LEN_ERR IBV_WC_LOC_QP_OP_ERR IBV_WC_LOC_EEC_OP_ERR IBV_WC_LOC_PROT_ERR IBV_WC_WR_FLUSH_ERR
        IBV_WC_MW_BIND_ERR IBV_WC_BAD_RESP_ERR IBV_WC_LOC_ACCESS_ERR IBV_WC_REM_INV_REQ_ERR IBV_WC_REM_ACCESS_ERR
        IBV_WC_REM_OP_ERR IBV_WC_RETRY_EXC_ERR IBV_WC_RNR_RETRY_EXC_ERR IBV_WC_LOC_RDD_VIOL_ERR IBV_WC_REM_INV_RD_REQ_ERR
        IBV_WC_REM_ABORT_ERR IBV_WC_INV_EECN_ERR IBV_WC_INV_EEC_STATE_ERR IBV_WC_FATAL_ERR IBV_WC_RESP_TIMEOUT_ERR
        IBV_WC_GENERAL_ERR IBV_WC_TM_ERR IBV_WC_TM_RNDV_INCOMPLETE
    }
}

impl WcStatus {
    /// The status in words.
    pub fn meaning(self) -> &'static str {
        match self {
            IBV_WC_SUCCESS => "done",
            IBV_WC_LOC_LEN_ERR => "the message and the posted buffer differ in length",
            IBV_WC_LOC_QP_OP_ERR => "this QP cannot do that",
            IBV_WC_LOC_PROT_ERR => "an SGE is not covered by its lkey",
            IBV_WC_WR_FLUSH_ERR => "not known to be done: the QP went to ERR",
            IBV_WC_BAD_RESP_ERR => "the peer's answer made no sense",
            IBV_WC_LOC_ACCESS_ERR => "the region does not allow what arrived for it",
            IBV_WC_REM_INV_REQ_ERR => "the peer's device calls the request invalid",
            IBV_WC_REM_ACCESS_ERR => "the peer's device denies access to that memory",
            IBV_WC_REM_OP_ERR => "the peer's device could not do it",
            IBV_WC_RETRY_EXC_ERR => "no answer, after all retries",
            IBV_WC_RNR_RETRY_EXC_ERR => "the peer was not ready to receive, after all retries",
            _ => "see man ibv_poll_cq",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_status_has_a_name_and_an_unknown_one_a_number() {
        assert!((0..=23).all(|status| WcStatus(status).to_string().starts_with("IBV_WC_")));
        assert_eq!(WcStatus(4711).to_string(), "status 4711");
    }

    /// What was under way when the QP went to ERR may have been carried out.
    #[test]
    fn a_flush_does_not_say_that_nothing_was_done() {
        assert!(IBV_WC_WR_FLUSH_ERR.meaning().starts_with("not known to be done"));
    }
}

//! `ibv_wc`, the work completion: how a work request ended (man 3 ibv_poll_cq).
//!
//! Only `wr_id`, `status`, `qp_num` and `vendor_err` are defined when the status is an error. So the opcode and the length
//! are there only on success.

use std::fmt;

use rdma_sys::{ibv_wc, ibv_wc_flags};

use crate::c_enum::c_enum;
use crate::error::{Error, Result};

pub use crate::wc_status::*;

c_enum! {
    /// `ibv_wc_opcode`: what a work request was.
    WcOpcode = ibv_wc_opcode else "opcode" {
        IBV_WC_SEND IBV_WC_RDMA_WRITE IBV_WC_RDMA_READ IBV_WC_COMP_SWAP IBV_WC_FETCH_ADD IBV_WC_RECV IBV_WC_RECV_RDMA_WITH_IMM
    }
}

/// One completion, copied out of the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkCompletion {
    /// The number that the work request was posted with.
    pub wr_id: u64,
    /// How it ended.
    pub status: WcStatus,
    /// The device's own error code.
    pub vendor_err: u32,
    /// The QP whose work request this was.
    pub qp_num: u32,
    opcode: WcOpcode,
    byte_len: u32,
    wc_flags: u32,
    imm_data: u32,
    src_qp: u32,
    /// Of InfiniBand: the way back to the sender of a datagram.
    lids: (u16, u8, u8),
}

impl WorkCompletion {
    pub(crate) fn new(wc: &ibv_wc) -> Self {
        Self {
            wr_id: wc.wr_id,
            status: WcStatus(wc.status),
            vendor_err: wc.vendor_err,
            qp_num: wc.qp_num,
            opcode: WcOpcode(wc.opcode),
            byte_len: wc.byte_len,
            wc_flags: wc.wc_flags,
            // SAFETY: 32 bits, whichever member is in use.
            imm_data: u32::from_be(unsafe { wc.imm_data_invalidated_rkey_union.imm_data }),
            src_qp: wc.src_qp,
            lids: (wc.slid, wc.sl, wc.dlid_path_bits),
        }
    }

    /// True if the work request did what it was asked.
    pub fn is_success(&self) -> bool {
        self.status == IBV_WC_SUCCESS
    }

    /// True if the QP went to the ERR state before the request was known to be done: an echo of something earlier. It may
    /// have been carried out all the same. Before you post it again, ask the peer.
    pub fn is_flush(&self) -> bool {
        self.status == IBV_WC_WR_FLUSH_ERR
    }

    /// `ibv_wc_opcode`, if the status is success: else the field holds nothing.
    pub fn opcode(&self) -> Option<WcOpcode> {
        self.is_success().then_some(self.opcode)
    }

    /// How many bytes arrived, if this is a successful receive or READ: for other requests the field holds nothing.
    pub fn byte_len(&self) -> Option<usize> {
        let carries = matches!(self.opcode()?, IBV_WC_RECV | IBV_WC_RECV_RDMA_WITH_IMM | IBV_WC_RDMA_READ);
        carries.then_some(self.byte_len as usize)
    }

    /// The 32 bits that the peer's program sent along, in this machine's byte order, if this is a successful receive with some.
    pub fn imm_data(&self) -> Option<u32> {
        // SoftRoCE also sets the flag for the SEND that carried some, but there the field is empty.
        let receive = matches!(self.opcode()?, IBV_WC_RECV | IBV_WC_RECV_RDMA_WITH_IMM);
        let with_imm = self.wc_flags & ibv_wc_flags::IBV_WC_WITH_IMM.0 != 0;
        (receive && with_imm).then_some(self.imm_data)
    }

    /// The QP that a datagram came from. (UD only: on connected QPs the field holds nothing.)
    pub fn src_qp(&self) -> Option<u32> {
        self.is_success().then_some(self.src_qp)
    }

    /// The C struct again, as far as [`init_ah_from_wc`](crate::Context::init_ah_from_wc) reads it.
    pub(crate) fn to_c(&self) -> ibv_wc {
        // SAFETY: plain data, for which zero is a value.
        let mut wc: ibv_wc = unsafe { std::mem::zeroed() };
        (wc.slid, wc.sl, wc.dlid_path_bits) = self.lids;
        (wc.wc_flags, wc.src_qp) = (self.wc_flags, self.src_qp);
        wc
    }

    /// The completion, or its error.
    ///
    /// # Errors
    /// `Error::Completion` if its status isn't success.
    pub fn into_success(self) -> Result<Self> {
        match self.is_success() {
            true => Ok(self),
            false => Err(self.to_error()),
        }
    }

    /// A failed completion as an error.
    pub fn to_error(&self) -> Error {
        Error::Completion { wr_id: self.wr_id, qp_num: self.qp_num, status: self.status, vendor_err: self.vendor_err }
    }
}

impl fmt::Display for WorkCompletion {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "wr_id={} status={}", self.wr_id, self.status)?;
        match self.opcode() {
            Some(opcode) => write!(f, " opcode={opcode}")?,
            None => write!(f, " ({}) vendor_err=0x{:x}", self.status.0, self.vendor_err)?,
        }
        if let Some(len) = self.byte_len() {
            write!(f, " byte_len={len}")?;
        }
        if let Some(imm) = self.imm_data() {
            write!(f, " imm_data=0x{imm:x}")?;
        }
        write!(f, " qp_num={}", self.qp_num)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wc(status: WcStatus, opcode: WcOpcode) -> WorkCompletion {
        WorkCompletion {
            wr_id: 2,
            status,
            vendor_err: 0,
            qp_num: 17,
            opcode,
            byte_len: 16,
            wc_flags: 2,
            imm_data: 7,
            src_qp: 0,
            lids: (0, 0, 0),
        }
    }

    #[test]
    fn success_shows_opcode_and_length_where_defined() {
        let text = wc(IBV_WC_SUCCESS, IBV_WC_RECV).to_string();
        assert_eq!(text, "wr_id=2 status=IBV_WC_SUCCESS opcode=IBV_WC_RECV byte_len=16 imm_data=0x7 qp_num=17");
        let sent = wc(IBV_WC_SUCCESS, IBV_WC_SEND);
        assert_eq!((sent.byte_len(), sent.imm_data()), (None, None));
    }

    #[test]
    fn an_error_has_no_opcode() {
        let failed = wc(IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV);
        assert_eq!((failed.opcode(), failed.byte_len(), failed.imm_data()), (None, None, None));
        assert_eq!(failed.to_string(), "wr_id=2 status=IBV_WC_WR_FLUSH_ERR (5) vendor_err=0x0 qp_num=17");
    }
}

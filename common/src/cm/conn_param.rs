//! `rdma_conn_param`: what both sides may ask for in `rdma_connect` and `rdma_accept` (man 3 rdma_connect).

use rdma_sys::rdma_conn_param;

/// The parameters of a connection. Each field shows in the REQ or REP message.
#[derive(Debug, Clone, Default)]
pub struct ConnParam {
    /// Bytes for the peer's program: at most 56 in a REQ, 196 in a REP.
    pub private_data: Vec<u8>,
    /// How many RDMA READs (and atomics) of the peer this side answers at a time. 0 makes READ impossible.
    pub responder_resources: u8,
    /// How many RDMA READs (and atomics) this side has under way at a time.
    pub initiator_depth: u8,
    /// How often a packet without an answer is sent again, 0 to 7. Set by the client for both.
    pub retry_count: u8,
    /// How often to try again when the peer has no receive posted, 0 to 7. 7 means for ever.
    pub rnr_retry_count: u8,
}

impl ConnParam {
    /// The C struct. It points into `self`, so it must not outlive it.
    pub(super) fn to_c(&self) -> rdma_conn_param {
        rdma_conn_param {
            private_data: self.private_data.as_ptr().cast(),
            // Checked by the caller against the message's limit, which is below 256.
            private_data_len: self.private_data.len() as u8,
            responder_resources: self.responder_resources,
            initiator_depth: self.initiator_depth,
            flow_control: 0,
            retry_count: self.retry_count,
            rnr_retry_count: self.rnr_retry_count,
            srq: 0,
            // Used only for QPs that librdmacm did not create.
            qp_num: 0,
        }
    }
}

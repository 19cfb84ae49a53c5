//! `ibv_qp_cap`: how much room the queues of a queue pair have (man 3 ibv_create_qp).

use rdma_sys::ibv_qp_cap;

/// `ibv_qp_cap`: how much room the queues need. The device may round up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QpCap {
    /// Requests that may wait in the send queue.
    pub max_send_wr: u32,
    /// Requests that may wait in the receive queue.
    pub max_recv_wr: u32,
    /// Pieces of memory in one request of the send queue.
    pub max_send_sge: u32,
    /// Pieces of memory in one receive.
    pub max_recv_sge: u32,
    /// Bytes that a request may carry inline.
    pub max_inline_data: u32,
}

impl QpCap {
    /// One request in each queue, one piece of memory in each request, nothing inline: to be changed field by field.
    pub const SMALL: Self =
        Self { max_send_wr: 1, max_recv_wr: 1, max_send_sge: 1, max_recv_sge: 1, max_inline_data: 0 };

    pub(crate) fn from_c(cap: &ibv_qp_cap) -> Self {
        Self {
            max_send_wr: cap.max_send_wr,
            max_recv_wr: cap.max_recv_wr,
            max_send_sge: cap.max_send_sge,
            max_recv_sge: cap.max_recv_sge,
            max_inline_data: cap.max_inline_data,
        }
    }
}

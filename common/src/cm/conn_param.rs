//! `rdma_conn_param`: what both sides may ask for in `rdma_connect` and `rdma_accept` (man 3 rdma_connect).

use std::fmt;

use rdma_sys::rdma_conn_param;

use crate::error::{Error, Kind, Result};

/// Room for private data in each message, in bytes (IBTA volume 1, section 12.6; the RDMA-CM IP header takes 36 of a REQ's 92).
pub(super) const REQ_PRIVATE_DATA: usize = 56;
pub(super) const REP_PRIVATE_DATA: usize = 196;
pub(super) const REJ_PRIVATE_DATA: usize = 148;
/// The same of datagrams.
pub(super) const SIDR_REQ_PRIVATE_DATA: usize = 180;
pub(crate) const SIDR_REP_PRIVATE_DATA: usize = 136;

/// The parameters of a connection. Each field shows in the REQ or REP message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnParam {
    /// Bytes for the peer's program: at most 56 in a REQ, 196 in a REP.
    pub private_data: Vec<u8>,
    /// How many RDMA READs (and atomics) of the peer this side answers at a time. 0 makes READ impossible.
    pub responder_resources: u8,
    /// How many RDMA READs (and atomics) this side has under way at a time.
    pub initiator_depth: u8,
    /// How often a packet without an answer is sent again, 0 to 7. Set by the client for both.
    pub retry_count: u8,
    /// How often the *peer's* device tries again when this side has no receive posted, 0 to 7. 7 means for ever.
    pub rnr_retry_count: u8,
}

impl ConnParam {
    /// These parameters, with no more READs under way than the other side has offered: what `rdma_accept(3)` demands of
    /// the answer to a connect request. Nobody else looks after that.
    pub fn clamped_to(self, requested: &ConnParam) -> Self {
        Self {
            responder_resources: self.responder_resources.min(requested.responder_resources),
            initiator_depth: self.initiator_depth.min(requested.initiator_depth),
            ..self
        }
    }

    /// What an event says about the peer, without the private data.
    pub(super) fn from_c(c: &rdma_conn_param) -> Self {
        Self {
            private_data: Vec::new(),
            responder_resources: c.responder_resources,
            initiator_depth: c.initiator_depth,
            retry_count: c.retry_count,
            rnr_retry_count: c.rnr_retry_count,
        }
    }

    /// The C struct. It points into `self`, so it must not outlive it.
    pub(crate) fn to_c(&self) -> rdma_conn_param {
        rdma_conn_param {
            private_data: self.private_data.as_ptr().cast(),
            // The caller has checked it against the message's limit, which is less than 256.
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

impl fmt::Display for ConnParam {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if *self == Self::default() {
            // Lesson 01 has not met any of these yet.
            return write!(f, "with all parameters 0");
        }
        write!(f, "responder_resources={} initiator_depth={}", self.responder_resources, self.initiator_depth)?;
        write!(f, " retry_count={} rnr_retry_count={}", self.retry_count, self.rnr_retry_count)?;
        write!(f, " private_data={} bytes", self.private_data.len())
    }
}

/// Private data must fit into its message.
pub(crate) fn fits(call: &str, len: usize, room: usize) -> Result<()> {
    if len <= room {
        return Ok(());
    }
    let what = format!("{len} bytes of private data do not fit: {call} takes at most {room}");
    Err(Error::of(Kind::Misuse, what, "Send long data with a SEND after the connection is established"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_data_that_does_not_fit_is_refused_before_the_call() {
        assert!(fits("rdma_connect", 56, REQ_PRIVATE_DATA).is_ok());
        let error = fits("rdma_connect", 57, REQ_PRIVATE_DATA).unwrap_err();
        assert!(error.to_string().contains("rdma_connect takes at most 56"), "{error}");
    }
}

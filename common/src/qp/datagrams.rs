//! Queue pairs for datagrams, and the connection manager, which names one to a client and lets one join multicast groups (man 3
//! rdma_accept, rdma_join_multicast).
//!
//! Hidden: a QP leaves its groups when it is dropped, because the kernel doesn't destroy it before; and `rdma_leave_multicast`
//! waits until the events of the join are acknowledged.

use std::net::SocketAddr;

use rdma_sys::{rdma_accept, rdma_join_multicast, rdma_leave_multicast};

use crate::cm::conn_param::{fits, ConnParam, SIDR_REP_PRIVATE_DATA};
use crate::cm::id::CmId;
use crate::error::{minus_one, Error, Kind, Result};
use crate::qp::QueuePair;
use crate::{address, narrate, slow};

impl CmId {
    /// `rdma_accept` with `conn_param.qp_num`: sends the SIDR_REP, which names this QP. The id itself needs none.
    ///
    /// # Errors
    /// `Kind::NoDevice`; `Kind::Misuse` for more than 136 bytes of private data; `Error::Call`, EINVAL, if no client is asking.
    #[track_caller]
    pub fn accept_with(&self, qp: &QueuePair, param: &ConnParam) -> Result<()> {
        fits("rdma_accept", param.private_data.len(), SIDR_REP_PRIVATE_DATA)?;
        slow!("rdma_accept qp_num={} private_data={} bytes", qp.qp_num(), param.private_data.len());
        self.device()?;
        let mut param = param.to_c();
        param.qp_num = qp.qp_num();
        // SAFETY: the id is alive, and has a device; the call copies the parameters and the private data.
        minus_one("rdma_accept", unsafe { rdma_accept(self.raw(), &mut param) })
    }
}

impl QueuePair {
    /// `rdma_join_multicast`: from now on datagrams to the group also come here. Answered by MULTICAST_JOIN, which has the way
    /// to the group. The QP leaves when it is dropped.
    ///
    /// # Errors
    /// `Kind::Misuse` if the QP has no id; `Error::Call`, EINVAL, for an id of connections. Later ones come as MULTICAST_ERROR.
    #[track_caller]
    pub fn join_multicast(&self, group: SocketAddr) -> Result<()> {
        slow!("rdma_join_multicast {}", group.ip());
        let no_id = || Error::of(Kind::Misuse, "this QP has no id that could join", "Make it with CmId::create_qp");
        let id = self.id().ok_or_else(no_id)?;
        id.device()?;
        let (mut to, context) = (address::to_c(group), std::ptr::null_mut());
        // SAFETY: the id is alive, and has a device; the call copies the address.
        let result = unsafe { rdma_join_multicast(id.raw(), address::as_c(&mut to), context) };
        minus_one("rdma_join_multicast", result)?;
        self.groups().push(group);
        Ok(())
    }

    /// `rdma_leave_multicast`, for each group that the QP has joined.
    pub(crate) fn leave_groups(&self) {
        let Some(id) = self.id() else { return };
        for group in self.groups().drain(..) {
            slow!("rdma_leave_multicast {}", group.ip());
            if id.has_unacked() {
                narrate::failure("rdma_leave_multicast would wait for ever: an event of this id is not acknowledged");
                continue;
            }
            let mut from = address::to_c(group);
            // SAFETY: the id is alive, and so is its QP; the call reads the address.
            let result = unsafe { rdma_leave_multicast(id.raw(), address::as_c(&mut from)) };
            if let Err(error) = minus_one("rdma_leave_multicast", result) {
                narrate::failure(&error.to_string());
            }
        }
    }
}

//! A connection: asked for, accepted or refused, and ended (man 3 rdma_connect, rdma_accept, rdma_reject, rdma_disconnect).
//!
//! Each call sends a message, and returns before there is an answer: that is an event. Hidden: librdmacm looks into the device
//! without asking whether the id has one; so each call asks first.

use rdma_sys::{rdma_accept, rdma_connect, rdma_disconnect, rdma_reject};

use super::conn_param::*;
use super::id::CmId;
use crate::error::{minus_one, Result};
use crate::{info, slow};

impl CmId {
    /// `rdma_connect`: sends the REQ. Answered by ESTABLISHED, REJECTED, UNREACHABLE or CONNECT_ERROR. For datagrams it is a
    /// SIDR_REQ, which is answered by ESTABLISHED or UNREACHABLE.
    ///
    /// # Errors
    /// `Kind::NoDevice`; `Kind::Misuse` for more than 56 bytes of private data, 180 with datagrams; `Error::Call`, EINVAL, if the route is not
    /// resolved. Later ones come as the event.
    #[track_caller]
    pub fn connect(&self, param: &ConnParam) -> Result<()> {
        let room = if self.is_datagrams() { SIDR_REQ_PRIVATE_DATA } else { REQ_PRIVATE_DATA };
        fits("rdma_connect", param.private_data.len(), room)?;
        slow!("rdma_connect {}", param);
        self.device()?;
        // SAFETY: the id is alive, and has a device; the call copies the parameters and the private data.
        minus_one("rdma_connect", unsafe { rdma_connect(self.raw(), &mut param.to_c()) })?;
        info!("rdma_connect returned: the answer will be an event");
        Ok(())
    }

    /// `rdma_accept`: moves the server's QP to RTS and sends the REP. Answered by ESTABLISHED.
    ///
    /// # Errors
    /// `Kind::NoDevice`; `Kind::Misuse` for more than 196 bytes of private data; `Error::Call`, EINVAL, if no client is asking.
    #[track_caller]
    pub fn accept(&self, param: &ConnParam) -> Result<()> {
        fits("rdma_accept", param.private_data.len(), REP_PRIVATE_DATA)?;
        slow!("rdma_accept {}", param);
        self.device()?;
        // SAFETY: the id is alive, and has a device; the call copies the parameters and the private data.
        minus_one("rdma_accept", unsafe { rdma_accept(self.raw(), &mut param.to_c()) })
    }

    /// `rdma_reject`: sends a REJ with reason 28 (consumer reject) and up to 148 bytes that say why; for datagrams a SIDR_REP
    /// with status 2 and up to 136.
    ///
    /// # Errors
    /// `Kind::Misuse` for more bytes; `Error::Call`, EINVAL, if no client is asking.
    #[track_caller]
    pub fn reject(&self, why: &[u8]) -> Result<()> {
        let room = if self.is_datagrams() { SIDR_REP_PRIVATE_DATA } else { REJ_PRIVATE_DATA };
        fits("rdma_reject", why.len(), room)?;
        slow!("rdma_reject private_data={} bytes", why.len());
        // SAFETY: the id is alive; the call copies the private data, whose length is less than 256.
        minus_one("rdma_reject", unsafe { rdma_reject(self.raw(), why.as_ptr().cast(), why.len() as u8) })
    }

    /// `rdma_disconnect`: moves the QP to ERR and sends a DREQ, or the DREP if the peer's DREQ came first. Both sides
    /// call it: a side that stays silent lets the other wait for its time-out.
    ///
    /// # Errors
    /// `Kind::NoDevice`; `Error::Call`, EINVAL, if there was no connection.
    #[track_caller]
    pub fn disconnect(&self) -> Result<()> {
        slow!("rdma_disconnect");
        self.device()?;
        // SAFETY: the id is alive, and has a device.
        minus_one("rdma_disconnect", unsafe { rdma_disconnect(self.raw()) })
    }
}

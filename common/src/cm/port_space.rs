//! `rdma_port_space`: connections or datagrams (man 3 rdma_create_id).
//!
//! For an id of [`PortSpace::Udp`] [`CmId::connect`](super::id::CmId::connect) sends a SIDR_REQ: which QP has this service?
//! [`CmId::accept_with`](super::id::CmId::accept_with) sends the SIDR_REP: this one, with this Q_Key. That is all: the ids of
//! both may go, and many clients may be sent to one QP.

use rdma_sys::rdma_port_space;

/// `rdma_port_space`: what an id is for. Each port space has its own ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PortSpace {
    /// `RDMA_PS_TCP`: reliable connections.
    #[default]
    Tcp,
    /// `RDMA_PS_UDP`: datagrams.
    Udp,
}

impl PortSpace {
    pub(super) fn to_c(self) -> rdma_port_space::Type {
        match self {
            Self::Tcp => rdma_port_space::RDMA_PS_TCP,
            Self::Udp => rdma_port_space::RDMA_PS_UDP,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tcp => "RDMA_PS_TCP",
            Self::Udp => "RDMA_PS_UDP",
        }
    }
}

//! The RDMA connection manager (man 7 rdma_cm): ids, their events, and the channel that the events come through.

pub mod conn_param;
mod connection;
pub mod event;
pub mod event_channel;
pub mod id;
pub mod port_space;

pub use crate::cm_event_type::*;

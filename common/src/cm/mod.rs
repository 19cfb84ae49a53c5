//! The RDMA connection manager (man 7 rdma_cm): ids, their events, and the channel that the events come through.

/// The events, by their C names: `RDMA_CM_EVENT_CONNECT_REQUEST` and its siblings. An event that a newer kernel adds
/// is just another number.
pub use rdma_sys::rdma_cm_event_type::*;

pub mod conn_param;
pub mod event;
pub mod event_channel;
pub mod id;

//! Lessons in the lab: what they do on the kernel's rdma_rxe, and what only a kernel does to them.

mod common_library;
mod going_fast;
mod gone_peers;
mod over_tcp;
mod parameter_server;
mod rules;
mod servers;
mod stories;
mod sweep;

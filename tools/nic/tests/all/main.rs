//! The NIC without its socket: two of them, a wire that loses, doubles and delays, and packets that nobody should send.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

mod congestion;
mod connections;
mod contract;
mod fluid;
mod hostile;
mod messages;
mod multicast;
mod network;
mod packets;
mod pair;
#[path = "../../examples/judge/program.rs"]
mod program;
mod reads;
mod sidr;
mod unreliable;
mod windows;

//! The NIC without its socket: two of them, a wire that loses, doubles and delays, and packets that nobody should send.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

mod congestion;
mod connections;
mod contract;
mod hostile;
mod messages;
mod multicast;
mod packets;
mod pair;
mod reads;
mod sidr;
mod unreliable;
mod windows;

//! A RoCEv2 NIC without input and output: what it does is decided by the packet or call that comes, and by the time.
//!
//! | | |
//! |---|---|
//! | [`psn`], [`packet`], [`datagram`] | what crosses the network, byte by byte |
//! | [`memory`] | keys, bounds and rights: who may touch which bytes |
//! | [`work`], [`completion`] | what a program posts, and how it learns that it is done |
//! | [`qp`] | the queue pair: states, requester, responder |
//! | [`cm`] | the connection manager: messages on QP 1, and the states of a connection |
//! | [`outside`], [`errno`] | what all of these want done in the world, and why a call is refused |
//!
//! `unsafe` is where the program's own memory is touched, which is what a NIC calls DMA.

#![deny(unsafe_code)]
// Names that say it all need no comment; who reads this reads the source.
#![allow(missing_docs)]

pub mod cm;
pub mod completion;
pub mod datagram;
pub mod errno;
#[allow(unsafe_code)]
pub mod memory;
pub mod outside;
pub mod packet;
pub mod psn;
pub mod qp;
pub mod work;

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
//! `unsafe` is where the program's own memory is touched, which is what a NIC calls DMA. Elsewhere nobody can allow it.

#![deny(unsafe_code)]
// Names that say it all need no comment; who reads this reads the source.
#![allow(missing_docs)]

#[forbid(unsafe_code)]
pub mod cm;
#[forbid(unsafe_code)]
pub mod completion;
#[forbid(unsafe_code)]
pub mod datagram;
#[forbid(unsafe_code)]
pub mod errno;
#[allow(unsafe_code)]
pub mod memory;
#[forbid(unsafe_code)]
pub mod outside;
#[forbid(unsafe_code)]
pub mod packet;
#[forbid(unsafe_code)]
pub mod psn;
#[forbid(unsafe_code)]
pub mod qp;
#[forbid(unsafe_code)]
pub mod work;

//! A RoCEv2 NIC without input and output: what it does depends only on the packet or the call that comes, and on the time.
//!
//! | | |
//! |---|---|
//! | [`psn`], [`packet`], [`datagram`] | what crosses the network, byte by byte |
//! | [`memory`] | keys, bounds and rights: who may touch which bytes |
//! | [`work`], [`completion`] | what a program posts, and how it learns that it is done |
//! | [`qp`] | the queue pair: states, requester, responder |
//! | [`congestion`] | what is done so that queues in switches stay short: DCQCN, and pauses obeyed |
//! | [`multicast`] | which queue pairs take what is sent to a group |
//! | [`cm`] | the connection manager: messages on QP 1, and the states of a connection |
//! | [`fact`] | what was done, for whoever watches: fields for programs, a sentence for people |
//! | [`outside`], [`errno`] | what all of these want done in the world, and why a call is refused |
//! | [`time`] | when: nobody here reads a clock |

#![forbid(unsafe_code)]
// Whoever reads this crate reads its source, and a name that says everything needs no comment.
#![allow(missing_docs)]

pub mod cm;
pub mod completion;
pub mod congestion;
pub mod datagram;
pub mod errno;
pub mod fact;
pub mod memory;
pub mod multicast;
pub mod outside;
pub mod packet;
pub mod psn;
pub mod qp;
pub mod time;
pub mod work;

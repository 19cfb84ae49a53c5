//! A RoCEv2 NIC to be read: it runs in user space, poses as `libibverbs.so.1` and `librdmacm.so.1`, and puts real RoCEv2
//! packets into a UDP socket. Every lesson of this project runs on it in milliseconds, without RDMA hardware, kernel module,
//! emulated machine or privilege. It is not fast, and it is no reference: captures are recorded from the kernel's `rdma_rxe`.
//!
//! docs/device.md walks through it with the packets of lesson 04. The order to read in:
//!
//! | | |
//! |---|---|
//! | [`psn`], [`packet`], [`datagram`] | what crosses the network, byte by byte |
//! | [`memory`] | keys, bounds and rights: who may touch which bytes |
//! | [`work`], [`completion`] | what a program posts, and how it learns that it is done |
//! | [`qp`] | the queue pair: states, requester, responder |
//! | [`cm`] | the connection manager: messages on QP 1, and the states of a connection |
//! | [`outside`] | what all of these want done in the world: they do no input or output themselves |
//! | [`nic`] | the rim: socket, thread, doorbell, timers |
//! | [`verbs`], [`rdmacm`] | the faces: the C functions that programs call |
//!
//! `unsafe` is where the program's own memory is touched, where C calls, and where the socket gets its options. Elsewhere the
//! compiler refuses it, and in the core nobody can allow it again.

#![deny(unsafe_code)]
// Names that say it all need no comment; who reads this reads the source.
#![allow(missing_docs)]

#[allow(unsafe_code)]
pub mod rdmacm;
pub mod rim;
#[allow(unsafe_code)]
pub mod verbs;

/// The device of this process; None if there can be none. Why not is said once, on standard error.
pub fn device() -> Option<&'static rim::Device> {
    rim::device(rdmacm::deliver)
}

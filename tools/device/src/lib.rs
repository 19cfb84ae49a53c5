//! A RoCEv2 NIC to be read: it runs in user space, poses as `libibverbs.so.1` and `librdmacm.so.1`, and puts real RoCEv2
//! packets into a UDP socket. Every lesson of this project runs on it in milliseconds, without RDMA hardware, kernel module,
//! emulated machine or privilege. It is not fast, and it is no reference: captures are recorded from the kernel's `rdma_rxe`.
//!
//! docs/device.md walks through it with the packets of lesson 04. What the device decides is in the crate [`nic`]; here is what
//! is around it:
//!
//! | | |
//! |---|---|
//! | [`rim`] | socket, thread, doorbell, timers |
//! | [`verbs`], [`rdmacm`] | the faces: the C functions that programs call |
//!
//! `unsafe` is where C calls, and where the socket gets its options. Elsewhere the compiler refuses it.

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

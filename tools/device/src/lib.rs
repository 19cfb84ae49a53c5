//! A RoCEv2 NIC to be read, behind the distribution's own rdma-core: it runs in user space, answers the system calls by which
//! programs meet an RDMA device, and puts real RoCEv2 packets into a UDP socket. Every lesson of this project runs on it in
//! milliseconds, without RDMA hardware, kernel module, emulated machine or privilege. It is not fast, and it is no reference:
//! captures are recorded from the kernel's `rdma_rxe`.
//!
//! docs/device_inside.md walks through it with the packets of lesson 04. What the device decides is in the crate [`nic`]; here is what
//! is around it:
//!
//! | | |
//! |---|---|
//! | [`machine`] | what makes a program believe that it has a device: system calls, descriptors, sysfs |
//! | [`abi`], [`ring`] | the structs of the kernel's headers, and the queues that programs share with the device |
//! | [`face`] | what programs write to the device's two files |
//! | [`node`] | the NIC with its socket, and all that programs have made on it |
//! | [`supervisor`] | one node's thread: packets, system calls and timers in turn |
//! | [`sleepers`] | programs whose sleep is as long as we say |
//! | [`strict`] | what a program must not rely on doesn't hold |
//!
//! `unsafe` is where system calls are that no crate offers, where queues are shared, and where the socket gets its options.
//! Elsewhere the compiler refuses it.

#![deny(unsafe_code)]
// Names that say it all need no comment; who reads this reads the source.
#![allow(missing_docs)]

pub mod abi;
pub mod face;
pub mod machine;
pub mod node;
#[allow(unsafe_code)]
pub mod ring;
pub mod sleepers;
pub mod strict;
pub mod supervisor;

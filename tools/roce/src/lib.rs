//! RoCEv2 on the wire, packet by packet, both ways: from bytes to their meaning, and back. No input, no output.
//!
//! [`link`] finds the UDP datagram in a frame, also inside a tunnel, [`packet`] the headers in it, which [`headers`] and [`cm`] declare field by
//! field as the specification does, in the terms of [`field`]. [`opcode`] says which headers a packet has, [`aeth`] what an
//! answer says, [`icrc`] checks the packet, and [`track`] sorts packets into connections and counts them from the start.
//! [`pause`] is the one frame of the link itself: what a switch with full queues sends. [`tcp`] reads TCP headers, and [`iwarp`] what RDMA
//! puts into TCP; [`nvme`] names what NVMe over RDMA sends.

// Names that say it all need no comment.
#![allow(missing_docs)]

pub mod aeth;
pub mod bth;
pub mod cm;
pub mod field;
pub mod headers;
pub mod icrc;
pub mod iwarp;
pub mod link;
pub mod lower;
pub mod nvme;
pub mod opcode;
pub mod packet;
pub mod pause;
pub mod tcp;
pub mod track;

pub use link::other::{Other, Others};
pub use link::LinkType;
pub use packet::{Frame, Packet};

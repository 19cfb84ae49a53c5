//! RoCEv2 on the wire: reading captures, decoding packets, explaining them.
//!
//! [`capture`] reads frames from a file and [`pcapng`] writes them; the file of a [`run`] holds log [`lines`] of its
//! [`programs`], too, and a [`recorder`] writes it. From a frame to its meaning: [`link`] finds the UDP datagram, [`packet`]
//! the headers in it, which [`headers`] and [`cm`] declare field by field as the specification does. [`icrc`] checks the packet, [`track`] sorts packets into
//! connections and counts them from the start, [`show`] prints it all, [`lanes`] draws it beside the log lines. [`story`]
//! knows what happens in each lesson, and [`annotate`] writes that into a capture. [`compare`] says whether two captures
//! tell the same story, [`rules`] choose packets of a run that something shall happen to, and [`play`] shows a run in a
//! browser.

pub mod aeth;
pub mod annotate;
pub mod capture;
pub mod cm;
pub mod compare;
pub mod field;
pub mod headers;
pub mod icrc;
pub mod lanes;
pub mod lines;
pub mod link;
pub mod lower;
pub mod opcode;
pub mod packet;
pub mod pcapng;
pub mod play;
pub mod programs;
pub mod recorder;
pub mod repository;
pub mod rules;
pub mod run;
pub mod show;
pub mod story;
pub mod track;

pub use link::{LinkType, Other};
pub use packet::{Frame, Packet};

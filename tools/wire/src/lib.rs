//! RoCEv2 on the wire: reading captures, decoding packets, explaining them.
//!
//! [`capture`] reads frames from a file and [`pcapng`] writes them; the file of a [`run`] holds log [`lines`] of its
//! [`programs`], too, and a [`recorder`] writes it. From a frame to its meaning: [`link`] finds the UDP datagram, [`packet`]
//! the headers in it, which [`headers`] and [`cm`] declare field by field as the specification does. [`icrc`] checks the packet, [`track`] sorts packets into
//! connections and counts them from the start, [`show`] prints it all, [`lanes`] draws it beside the log lines. [`story`]
//! knows what happens in each lesson, and [`annotate`] writes that into a capture. [`compare`] says whether two captures
//! tell the same story, [`rules`] choose packets of a run that something shall happen to, and [`play`] shows a run in a
//! browser.

pub mod annotate;
pub mod compare;
pub mod play;
pub mod show;

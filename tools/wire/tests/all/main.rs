//! What captures, stories and the tools for them must do, whoever recorded the file.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

mod agreement;
mod annotate;
mod captures;
mod causes;
mod command;
mod compare;
mod compare_command;
mod compare_kinds;
mod compare_properties;
mod congestion;
mod edit;
mod exercise;
mod explain;
mod files;
mod growth;
mod hostile;
mod iwarp;
mod nvme;
// Frames are counted only where debug assertions are compiled in.
#[cfg(debug_assertions)]
mod once;
mod packed;
mod packets;
mod pipes;
mod play;
mod profile;
mod script;
mod stories;
mod tunnels;
mod unread;

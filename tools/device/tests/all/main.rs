//! Programs on the device: the lessons, those of others, and what they leave.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

mod all_reduce;
mod calls;
mod ci;
mod commands;
mod events;
mod explain;
mod fresh;
mod kernel;
mod machine;
mod port;
mod programs;
mod suite;

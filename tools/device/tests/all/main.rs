//! Programs on the device: the lessons, those of others, and what they leave.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

mod faces;
mod kernel;
mod port;
mod programs;

//! The lab itself: its machines, its wire, its shell, other people's programs in it, and what it does when its host is the
//! problem.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

mod faults;
mod foreign;
mod nodes;
mod programs;
mod shell;
#[path = "../support/mod.rs"]
mod support;
#[path = "../../../wire/tests/tshark/mod.rs"]
mod tshark;
mod two_machines;

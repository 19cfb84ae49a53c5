//! The scripts of lab/, on machines that are invented for them.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

mod capture;
mod doctor;
mod setup;
#[path = "../support/mod.rs"]
mod support;

//! The scripts of tools/lab/, and the Makefile, on machines that are invented for them.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

mod capture;
mod doctor;
mod make;
mod setup;
#[path = "../support/mod.rs"]
mod support;

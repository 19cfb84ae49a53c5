//! The lab: lessons in it, its machines, and the scripts that set it up.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

mod lessons;
mod machines;
mod scripts;
mod support;

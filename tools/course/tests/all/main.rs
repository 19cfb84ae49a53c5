//! Changes and exercises: each fits the source of today, and a sample runs.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

mod attempts;
mod changes;

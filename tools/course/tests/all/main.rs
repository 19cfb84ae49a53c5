//! Changes and exercises: each fits the source of today, and what the judge says to whoever tries one.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

mod attempts;
mod begin;
mod changed_words;
mod changes;
mod grade;
mod holes;
mod mutants;
mod one_wait;
mod staircase;

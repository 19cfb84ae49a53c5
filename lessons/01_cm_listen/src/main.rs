//! Lesson 01.
fn main() {}

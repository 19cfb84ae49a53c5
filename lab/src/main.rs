//! Two SoftRoCE machines on this one.
fn main() {}

//! Plain Rust, which calls no device: what the two sides agree on, the server's file, and a client's words.

pub mod journal;
pub mod layout;
pub mod options;
pub mod script;
pub mod terms;

//! An API in which memory regions and queue pairs are small numbers, as files are to a process.
pub mod api;
pub mod calls;
pub mod program;
pub mod wc;

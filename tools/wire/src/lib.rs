//! Captures of RoCEv2, explained: [`show`] prints them, [`compare`] says whether two tell the same story, [`annotate`] writes
//! the steps of a lesson into one, [`explain`] says what went wrong in one, and [`play`] shows a run in a browser. Packets are read
//! by the crate [`roce`], files by [`run`]; `browser`, a feature, is for a page that has all this as WebAssembly.

pub mod annotate;
#[cfg(feature = "browser")]
pub mod browser;
pub mod compare;
pub mod explain;
pub mod packed;
pub mod play;
pub mod reading;
pub mod show;

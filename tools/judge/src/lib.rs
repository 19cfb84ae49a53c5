//! What a run file must show, and whether it does. What's [`expected`] is written in a line each; [`judge`] looks for it in
//! [what is seen](seen) of a run, and a [`Finding`] says what there was. It opens no file.

#![allow(missing_docs)] // Names that say it all need no comment.

pub mod expected;
mod finding;
pub mod seen;

pub use finding::{judge, Finding, MOST_SHOWN};

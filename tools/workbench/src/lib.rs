//! The workbench: two NICs that a reader can touch, in a page. A run of it is a pure function of a text, the [`script`]: which calls
//! both programs make and when, and what happens on the wire between them. Whatever somebody clicks becomes a line of the script,
//! and then it's run again from the beginning, in virtual time.
//!
//! | | |
//! |---|---|
//! | [`script`] | reads a text |
//! | [`mod@bench`] | runs it: two [`node`]s and a [`wire`] |
//! | [`sentence`] | says what happened |
//! | [`shown`] | what a page gets of it |
//! | [`challenge`] | what to make happen, and whether it has |
//! | [`change`] | changes of lessons that can be tried here |
//! | [`browser`] | what a page calls |
//!
//! It opens no file and no socket, starts no thread and reads no clock.

pub mod bench;
pub mod browser;
pub mod challenge;
pub mod change;
pub mod node;
pub mod script;
pub mod sentence;
pub mod shown;
pub mod wire;

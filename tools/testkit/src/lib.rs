//! What the tests of several crates ask: what happened in a [run](ran), what its file says when somebody [falls], whether [tshark]
//! reads a capture as we do, [many cases](each::each) side by side, and [what something costs](clock::cost). And what they ask it
//! of: [frames] made byte by byte, [tunnels around them](wrapped), and a run whose [sentences are others](reworded::reworded).

#![allow(missing_docs)] // Names that say it all need no comment.
#![allow(clippy::unwrap_used)] // A test may end with a panic.

pub mod clock;
pub mod each;
pub mod falls;
pub mod frames;
pub mod ran;
pub mod reworded;
pub mod tshark;
pub mod wrapped;

//! Programs on the device: the lessons as they are, with their options, with peers and wires that do them wrong, and other
//! people's programs. Build them first: `cargo build --workspace --all-targets`. One test program, so that those which wait for
//! something do so side by side.

mod common_library;
mod compare;
mod congestion;
mod datagrams;
mod debuggers;
mod errors;
mod faults;
mod going_fast;
mod gone;
mod handle_api;
mod history;
mod in_c;
mod key_value_store;
mod killed;
mod lessons;
mod link;
mod odd_peers;
mod parameter_server;
mod python;
mod ring_all_reduce;
mod rules;
mod said;
mod servers;
mod strangers;
mod strict;
pub mod support;
mod variants;
mod waiting;

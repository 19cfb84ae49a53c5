//! What tests make of the two NICs of the crate `pair`.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

pub mod managers;

use nic::completion::{Completion, Status};
use nic::memory::Access;
pub use nic::qp::Attributes;
use nic::qp::{Limits, Service, State};
pub use pair::end::request;
pub use pair::{attributes, End, Fault, Pair, Wire, CLIENT, MTU, OURS, PD, PEERS, SERVER};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::collections::BTreeMap;

/// What happens to packets, by their place among all that are sent.
pub type Faults = BTreeMap<usize, Fault>;

/// What happens to fewer than `most` packets. `passes` is the weight of no fault at all, and a fault of any kind has a weight of 3.
pub fn faults(passes: u32, most: usize) -> impl Strategy<Value = Faults> {
    let late = (1..6u8).prop_map(Fault::Delay);
    let fault = prop_oneof![1 => Just(Fault::Lose), 1 => Just(Fault::Double), 1 => late].prop_map(Some);
    let fates = proptest::collection::vec(prop_oneof![passes => Just(None), 3 => fault], 0..most);
    fates.prop_map(|fates| fates.into_iter().enumerate().filter_map(|(at, fault)| Some((at, fault?))).collect())
}

/// A queue pair of a reliable connection in RTS with a buffer of this many bytes, which the peer may do anything to.
pub fn end(number: u32, peer: u32, size: usize, attributes: Attributes) -> End {
    of(Service::Rc, number, peer, size, attributes)
}

/// The same of any service.
pub fn of(service: Service, number: u32, peer: u32, size: usize, attributes: Attributes) -> End {
    let limits = Limits { send: 64, receive: 64, send_sge: 4, receive_sge: 128, inline: 64 };
    let access = Access(15 | Access::FLUSH_GLOBAL.0);
    let end = End::new(pair::Setup { service, number, peer, size, access, limits, uses_shared: false }, &attributes);
    assert_eq!(end.qp.state(), State::Rts);
    end
}

/// The same for each of this many packets.
pub fn all(count: usize, fault: Fault) -> Faults {
    (0..count).map(|at| (at, fault)).collect()
}

/// How requests or receives ended, each by its number.
pub fn ended(told: &[Completion]) -> Vec<(u64, Status)> {
    told.iter().map(|wc| (wc.wr_id, wc.status)).collect()
}

/// Looks at this many cases.
pub fn hold<S: Strategy>(cases: u32, inputs: S, look: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let config = ProptestConfig { failure_persistence: None, max_shrink_iters: 2_000, cases, ..Default::default() };
    TestRunner::new(config).run(&inputs, look).unwrap_or_else(|error| panic!("{error}"));
}

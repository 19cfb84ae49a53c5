//! Every kind of figure can still be measured: one round with tiny counts, whose numbers mean nothing. Needs what the lab needs,
//! and `cargo build --workspace`.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

use std::process::Command;

#[test]
fn all_can_be_measured() {
    let output = Command::new(env!("CARGO_BIN_EXE_bench")).arg("--smoke").output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{text}");
    let rows = ["ib_write_lat", "ib_read_bw", "ib_atomic_lat", "depth 64", "with credits", "TCP, one stream"];
    for wanted in rows.iter().chain(&["warm", "rdma_rxe in the lab", "tshark -T fields", "wire compare"]) {
        assert!(text.contains(wanted), "no {wanted}: {text}");
    }
}

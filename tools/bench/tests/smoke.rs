//! Every kind of figure can still be measured: one round with tiny counts, whose numbers mean nothing. Needs what the lab needs,
//! and `cargo build --workspace`.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

use std::process::Command;

fn smoke(kind: &str, wanted: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_bench")).args(["--smoke", kind]).output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{kind}: {text}");
    for wanted in wanted {
        assert!(text.contains(wanted), "{kind}: no {wanted}: {text}");
    }
}

#[test]
fn common_beside_perftest() {
    smoke("verbs", &["ib_write_lat", "ib_read_bw", "ib_atomic_lat"]);
}

#[test]
fn techniques() {
    smoke("techniques", &["depth 64", "with credits"]);
}

#[test]
fn rdma_beside_tcp() {
    smoke("tcp", &["TCP, one stream"]);
}

#[test]
fn connections() {
    smoke("connections", &["rping", "ucmatose"]);
}

#[test]
fn lab() {
    smoke("lab", &["warm", "rdma_rxe in the lab"]);
}

#[test]
fn wire_beside_tshark() {
    smoke("wire", &["tshark -T fields", "wire compare"]);
}

#[test]
fn builds() {
    smoke("builds", &["rdma-sys alone"]);
}

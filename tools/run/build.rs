//! Does nothing but depend on `syn`, with all that bindgen asks of it. Cargo compiles a crate once for each set of features that it's
//! asked for, and everything of the course needs `run`. So what the macros of clap and serde are built with stays the same,
//! whether a command builds lessons, and with them bindgen, or a NIC alone.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
}

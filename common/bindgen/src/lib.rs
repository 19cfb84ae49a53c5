//! Today's bindgen under the version number that rdma-sys asks for.
//!
//! rdma-sys 0.3.0 makes its declarations with bindgen 0.59, which reads headers with libclang 14 and 15 only: from 16 on
//! libclang names unnamed structures otherwise. The functions that rdma-sys calls have not changed since, so the root
//! `Cargo.toml` puts this crate in the old one's place, and any libclang from 9 on does.

pub use today::*;

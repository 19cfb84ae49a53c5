//! `wr_id`: the number of a work request, by which its completion names it (man 3 ibv_post_send).

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// The next work request's number. One count for the whole program: it names a request among all that are under way.
static NEXT_WR_ID: AtomicU64 = AtomicU64::new(1);

pub(crate) fn next_wr_id() -> u64 {
    next_wr_ids(1).start
}

/// `count` consecutive ones.
pub(crate) fn next_wr_ids(count: usize) -> Range<u64> {
    let first = NEXT_WR_ID.fetch_add(count as u64, Ordering::Relaxed);
    first..first + count as u64
}

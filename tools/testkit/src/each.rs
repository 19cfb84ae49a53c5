//! Many cases of one kind: runs mostly wait for something, so several go side by side.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Looks at all cases, this many at a time.
pub fn each<C: Sync>(at_a_time: usize, cases: &[C], look: impl Fn(&C) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    look(case);
                }
            });
        }
    });
}

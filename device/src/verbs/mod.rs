//! The C face of libibverbs. Each function has its manual page, section 3; what is not supported is refused with the errno
//! that a NIC would give.
//!
//! A program holds C structs and reads their fields; behind each struct lies what only the library uses. Four verbs have no
//! symbol: `ibv_post_send`, `ibv_post_recv`, `ibv_poll_cq` and `ibv_req_notify_cq` are inline in verbs.h, and jump through a
//! table in `ibv_context`.
//!
//! # Safety
//! All of these take pointers from C. Everywhere the same holds, as the manual pages say: a pointer is one that the library
//! has given out and the program has not yet given back, and what a program passes to be read or written is its own for the
//! time of the call.
#![allow(clippy::missing_safety_doc, clippy::undocumented_unsafe_blocks)]

pub mod context;
pub mod cq;
pub mod device;
pub mod events;
pub mod memory;
pub mod post;
pub mod qp;
pub mod srq;
pub mod strangers;

use libc::c_int;

/// Sets `errno` and gives a null pointer.
pub(crate) fn null<T>(errno: c_int) -> *mut T {
    set_errno(errno);
    std::ptr::null_mut()
}

/// Sets `errno` and gives -1.
pub(crate) fn minus_one(errno: c_int) -> c_int {
    set_errno(errno);
    -1
}

fn set_errno(errno: c_int) {
    // SAFETY: the pointer to this thread's errno is always good.
    unsafe { *libc::__errno_location() = errno };
}

/// 0, or the errno: what most verbs return.
pub(crate) fn code(result: Result<(), c_int>) -> c_int {
    result.err().unwrap_or(0)
}

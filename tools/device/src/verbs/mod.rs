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

use crate::device;
use crate::rim::{Device, Face};
use libc::c_int;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// Something that a program holds: a struct of C, which it may read and write, and behind it what only the library knows.
#[repr(C)]
pub(crate) struct Object<C, Own> {
    pub c: C,
    pub own: Own,
}

impl<C, Own> Object<C, Own> {
    /// Gives a new one to the program. What lies behind the struct may know where it is.
    pub fn give(c: C, own: impl FnOnce(Face) -> Own) -> *mut C {
        let mut place = Box::new(MaybeUninit::<Self>::uninit());
        let own = own(place.as_ptr() as Face);
        place.write(Object { c, own });
        Box::into_raw(place).cast()
    }

    /// What lies behind the struct. The struct itself is not looked at: another thread may be writing there.
    ///
    /// # Safety
    /// It is one of these, and not given back while the result is used.
    pub unsafe fn own<'a>(given: *mut C) -> &'a Own {
        unsafe { &(*given.cast::<Self>()).own }
    }

    /// Takes it back from the program.
    ///
    /// # Safety
    /// It is one of these, and nobody uses it any more.
    pub unsafe fn take_back(given: *mut C) -> Self {
        *unsafe { Box::from_raw(given.cast()) }
    }
}

/// Verbs that return 0, or the errno.
pub(crate) fn verb(act: impl FnOnce(&'static Device) -> Result<(), c_int>) -> c_int {
    device().ok_or(libc::ENODEV).and_then(act).err().unwrap_or(0)
}

/// Calls that return 0, or -1 with `errno` set.
pub(crate) fn call(act: impl FnOnce(&'static Device) -> Result<(), c_int>) -> c_int {
    device().ok_or(libc::ENODEV).and_then(act).map_or_else(minus_one, |()| 0)
}

/// Calls that return an object, or null with `errno` set.
pub(crate) fn object<T>(act: impl FnOnce(&'static Device) -> Result<*mut T, c_int>) -> *mut T {
    device().ok_or(libc::ENODEV).and_then(act).unwrap_or_else(null)
}

/// Sets `errno` and gives a null pointer.
pub(crate) fn null<T>(number: c_int) -> *mut T {
    set_errno(number);
    null_mut()
}

/// Sets `errno` and gives -1.
pub(crate) fn minus_one(number: c_int) -> c_int {
    set_errno(number);
    -1
}

fn set_errno(number: c_int) {
    // SAFETY: the pointer to this thread's errno is always good.
    unsafe { *libc::__errno_location() = number };
}

/// Why the last call failed.
pub(crate) fn errno() -> c_int {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() }
}

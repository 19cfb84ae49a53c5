//! Async events: what no work request is about.

use super::call;
use libc::c_int;
use rdma_sys::{ibv_async_event, ibv_context};
use std::ptr::addr_of_mut;

/// `ibv_get_async_event(3)`: blocks, or not, as `async_fd` is set.
#[no_mangle]
pub unsafe extern "C" fn ibv_get_async_event(_context: *mut ibv_context, to: *mut ibv_async_event) -> c_int {
    call(|device| unsafe {
        let raised = device.raised.pop(|_| ())?;
        // The element is a union of pointers to the C structs: whichever it is, it is the address of the face.
        addr_of_mut!((*to).element).cast::<usize>().write(raised.face);
        addr_of_mut!((*to).event_type).cast::<u32>().write(raised.event as u32);
        Ok(())
    })
}

/// `ibv_ack_async_event(3)`: nothing waits for it here. What an event was about may be destroyed before.
#[no_mangle]
pub unsafe extern "C" fn ibv_ack_async_event(_event: *mut ibv_async_event) {}

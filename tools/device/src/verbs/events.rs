//! Async events: what no work request is about.

use super::call;
use crate::device;
use libc::c_int;
use rdma_sys::{ibv_async_event, ibv_context};
use std::ptr::{addr_of, addr_of_mut};

/// `ibv_get_async_event(3)`: blocks, or not, as `async_fd` is set.
#[no_mangle]
pub unsafe extern "C" fn ibv_get_async_event(_context: *mut ibv_context, to: *mut ibv_async_event) -> c_int {
    call(|device| unsafe {
        // Counted before anybody can see that it is gone: what it is about is not destroyed meanwhile.
        let raised = device.raised.pop(|raised| device.unacked(raised.face).add())?;
        // The element is a union of pointers to the C structs: whichever it is, it is the address of the face.
        addr_of_mut!((*to).element).cast::<usize>().write(raised.face);
        addr_of_mut!((*to).event_type).cast::<u32>().write(raised.event as u32);
        Ok(())
    })
}

/// `ibv_ack_async_event(3)`: with this, what the event was about may be destroyed.
#[no_mangle]
pub unsafe extern "C" fn ibv_ack_async_event(event: *mut ibv_async_event) {
    if let Some(device) = device() {
        device.unacked(unsafe { addr_of!((*event).element).cast::<usize>().read() }).acknowledge(1);
    }
}

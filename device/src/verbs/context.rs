//! The device's context: the struct that `ibv_open_device` gives, and that ids of the connection manager point to.

use super::{cq, post, srq};
use crate::nic::device;
use libc::c_char;
use rdma_sys::{ibv_context, ibv_device, ibv_node_type, ibv_transport_type, verbs_context};
use std::sync::OnceLock;

/// The variable with the name under which the device is listed, if it shall have another one.
const NAME: &str = "NIC_NAME";
const DEFAULT_NAME: &str = "nic0";

/// The one context of this process, as an address.
static CONTEXT: OnceLock<usize> = OnceLock::new();

/// The context; null if there can be no device.
pub fn context() -> *mut ibv_context {
    let Some(device) = device() else { return std::ptr::null_mut() };
    *CONTEXT.get_or_init(|| make(device.raised.fd()) as usize) as *mut ibv_context
}

/// Makes it, for the rest of the process's life.
fn make(async_fd: i32) -> *mut ibv_context {
    // SAFETY: in both structs zeroes are null pointers, zero numbers and absent functions.
    let (mut device, mut whole) =
        unsafe { (Box::new(std::mem::zeroed::<ibv_device>()), Box::new(std::mem::zeroed::<verbs_context>())) };
    (device.node_type, device.transport_type) = (ibv_node_type::IBV_NODE_CA, ibv_transport_type::IBV_TRANSPORT_IB);
    let name = std::env::var(NAME).unwrap_or_else(|_| DEFAULT_NAME.into());
    for field in [&mut device.name, &mut device.dev_name] {
        // The last byte stays zero: it ends the text.
        field[..63].iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from as c_char);
    }
    let context = &mut whole.context;
    (context.device, context.async_fd, context.num_comp_vectors) = (Box::into_raw(device), async_fd, 1);
    context.cmd_fd = -1;
    // `abi_compat` stays null: "no extended verbs here". C's inline functions then use the plain ones, or say EOPNOTSUPP.
    context.ops.poll_cq = Some(cq::poll_cq);
    context.ops.req_notify_cq = Some(cq::req_notify_cq);
    context.ops.post_send = Some(post::post_send);
    context.ops.post_recv = Some(post::post_recv);
    context.ops.post_srq_recv = Some(srq::post_srq_recv);
    // SAFETY: a part of the allocation, which is never freed.
    unsafe { &mut (*Box::into_raw(whole)).context }
}

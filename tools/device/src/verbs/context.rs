//! The device's context: the struct that `ibv_open_device` gives, and that ids of the connection manager point to.

use super::{cq, post, srq};
use crate::device;
use crate::rim::Device;
use libc::c_char;
use rdma_sys::{ibv_context, ibv_device, ibv_node_type, ibv_transport_type};
use std::sync::OnceLock;

/// The variable with the name under which the device is listed, if it shall have another one.
const NAME: &str = "NIC_NAME";
const DEFAULT_NAME: &str = "nic0";

/// What lives as long as the process, as addresses: the device's struct, and the context that all ids point to.
static DEVICE: OnceLock<usize> = OnceLock::new();
static CONTEXT: OnceLock<usize> = OnceLock::new();

/// The context of all ids; null if there can be no device.
pub fn context() -> *mut ibv_context {
    let Some(nic) = device() else { return std::ptr::null_mut() };
    *CONTEXT.get_or_init(|| open(nic) as usize) as *mut ibv_context
}

/// Another context, for who opens the device by name. What is made from different ones does not go together in programs.
pub fn open(nic: &Device) -> *mut ibv_context {
    // SAFETY: zeroes are null pointers, zero numbers and absent functions.
    let mut context = unsafe { Box::new(std::mem::zeroed::<ibv_context>()) };
    context.device = *DEVICE.get_or_init(|| Box::into_raw(make_device()) as usize) as *mut ibv_device;
    (context.async_fd, context.num_comp_vectors, context.cmd_fd) = (nic.raised.fd(), 1, -1);
    // `abi_compat` stays null: "no extended verbs here". C's inline functions then use the plain ones, or say EOPNOTSUPP.
    context.ops.poll_cq = Some(cq::poll_cq);
    context.ops.req_notify_cq = Some(cq::req_notify_cq);
    context.ops.post_send = Some(post::post_send);
    context.ops.post_recv = Some(post::post_recv);
    context.ops.post_srq_recv = Some(srq::post_srq_recv);
    Box::into_raw(context)
}

/// Ends what [`open`] has made.
///
/// # Safety
/// It is [`open`]'s, and nobody uses it any more.
pub unsafe fn close(context: *mut ibv_context) {
    if CONTEXT.get() != Some(&(context as usize)) {
        drop(unsafe { Box::from_raw(context) });
    }
}

fn make_device() -> Box<ibv_device> {
    // SAFETY: zeroes are null pointers and empty names.
    let mut device = unsafe { Box::new(std::mem::zeroed::<ibv_device>()) };
    (device.node_type, device.transport_type) = (ibv_node_type::IBV_NODE_CA, ibv_transport_type::IBV_TRANSPORT_IB);
    let name = std::env::var(NAME).unwrap_or_else(|_| DEFAULT_NAME.into());
    for field in [&mut device.name, &mut device.dev_name] {
        // The last byte stays zero: it ends the text.
        field[..63].iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from as c_char);
    }
    device
}

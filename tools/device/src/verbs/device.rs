//! Finding and asking the device: what programs call that have no connection manager.

use super::context::{close, context, open};
use super::{call, minus_one, object, verb};
use crate::device;
use libc::{c_char, c_int};
use nic::cm::{gid, Cm};
use nic::qp::Qp;
use rdma_sys::*;
use std::ptr::null_mut;

/// The limits that `ibv_query_device` tells, and that creating verbs keep to.
pub mod most {
    pub const QUEUE: u32 = 16_384;
    pub const SGE: u32 = 32;
    pub const INLINE: u32 = 1024;
    pub const COMPLETIONS: i32 = 65_536;
    pub const READS: u8 = 128;
    pub const OBJECTS: i32 = 65_536;
}

/// One GID in the form of `ibv_query_gid_ex`.
#[repr(C)]
pub struct GidEntry {
    gid: [u8; 16],
    index: u32,
    port: u32,
    kind: u32,
    netdev: u32,
}

/// `ibv_get_device_list(3)`.
#[no_mangle]
pub unsafe extern "C" fn ibv_get_device_list(count: *mut c_int) -> *mut *mut ibv_device {
    let context = context();
    let devices = if context.is_null() { [null_mut(); 2] } else { [unsafe { (*context).device }, null_mut()] };
    if !count.is_null() {
        unsafe { *count = c_int::from(!context.is_null()) };
    }
    Box::into_raw(Box::new(devices)).cast()
}

/// `ibv_free_device_list(3)`.
#[no_mangle]
pub unsafe extern "C" fn ibv_free_device_list(list: *mut *mut ibv_device) {
    drop(unsafe { Box::from_raw(list.cast::<[*mut ibv_device; 2]>()) });
}

/// `ibv_get_device_name(3)`.
#[no_mangle]
pub unsafe extern "C" fn ibv_get_device_name(device: *mut ibv_device) -> *const c_char {
    unsafe { (*device).name.as_ptr() }
}

/// `ibv_get_device_guid(3)`, in network byte order.
#[no_mangle]
pub unsafe extern "C" fn ibv_get_device_guid(_device: *mut ibv_device) -> u64 {
    device().map_or(0, |device| Cm::guid(device.lock().address()).to_be())
}

/// `ibv_open_device(3)`.
#[no_mangle]
pub unsafe extern "C" fn ibv_open_device(_device: *mut ibv_device) -> *mut ibv_context {
    object(|nic| Ok(open(nic)))
}

/// `ibv_close_device(3)`.
#[no_mangle]
pub unsafe extern "C" fn ibv_close_device(context: *mut ibv_context) -> c_int {
    unsafe { close(context) };
    0
}

/// `ibv_query_device(3)`.
#[no_mangle]
pub unsafe extern "C" fn ibv_query_device(_context: *mut ibv_context, attr: *mut ibv_device_attr) -> c_int {
    let mut told: ibv_device_attr = unsafe { std::mem::zeroed() };
    told.fw_ver.iter_mut().zip(env!("CARGO_PKG_VERSION").bytes()).for_each(|(to, from)| *to = from as c_char);
    told.node_guid = unsafe { ibv_get_device_guid(null_mut()) };
    told.sys_image_guid = told.node_guid;
    (told.max_mr_size, told.page_size_cap, told.phys_port_cnt) = (u64::MAX, 0xffff_f000, 1);
    (told.max_qp_wr, told.max_sge, told.max_srq_sge) = (most::QUEUE as i32, most::SGE as i32, most::SGE as i32);
    (told.max_cqe, told.max_srq_wr) = (most::COMPLETIONS, most::QUEUE as i32);
    for objects in [&mut told.max_qp, &mut told.max_cq, &mut told.max_mr, &mut told.max_pd, &mut told.max_srq] {
        *objects = most::OBJECTS;
    }
    let reads = i32::from(most::READS);
    (told.max_qp_rd_atom, told.max_qp_init_rd_atom, told.max_res_rd_atom) = (reads, reads, reads * most::OBJECTS);
    (told.atomic_cap, told.max_pkeys) = (ibv_atomic_cap::IBV_ATOMIC_HCA, 1);
    unsafe { attr.write(told) };
    0
}

/// `ibv_query_port(3)`. Only the fields that this struct has always had are written: a caller's may be shorter than ours.
#[no_mangle]
pub unsafe extern "C" fn ibv_query_port(_context: *mut ibv_context, port: u8, attr: *mut ibv_port_attr) -> c_int {
    if port != 1 {
        return libc::EINVAL;
    }
    const ETHERNET: u8 = 2;
    const LINK_UP: u8 = 5;
    unsafe {
        ((*attr).state, (*attr).phys_state) = (ibv_port_state::IBV_PORT_ACTIVE, LINK_UP);
        ((*attr).max_mtu, (*attr).active_mtu) = (ibv_mtu::IBV_MTU_4096, ibv_mtu::IBV_MTU_1024);
        ((*attr).gid_tbl_len, (*attr).pkey_tbl_len, (*attr).max_msg_sz) = (1, 1, Qp::LONGEST);
        ((*attr).link_layer, (*attr).active_width, (*attr).active_speed) = (ETHERNET, 1, 1);
    }
    0
}

/// `ibv_query_gid(3)`: there is one.
#[no_mangle]
pub unsafe extern "C" fn ibv_query_gid(_context: *mut ibv_context, port: u8, index: c_int, to: *mut ibv_gid) -> c_int {
    call(|device| unsafe {
        only(port.into(), index)?;
        (*to).raw = gid(device.lock().address());
        Ok(())
    })
}

/// There is one port, and of GIDs and partitions one each.
fn only(port: u32, index: c_int) -> Result<(), c_int> {
    (port == 1 && index == 0).then_some(()).ok_or(libc::EINVAL)
}

/// `ibv_query_gid_ex(3)`, whose name in the library begins with an underscore.
#[no_mangle]
pub unsafe extern "C" fn _ibv_query_gid_ex(
    _context: *mut ibv_context,
    port: u32,
    index: u32,
    to: *mut GidEntry,
    flags: u32,
    size: usize,
) -> c_int {
    const ROCE_V2: u32 = 2;
    verb(|device| {
        if flags != 0 || size < std::mem::size_of::<GidEntry>() || port != 1 {
            return Err(libc::EINVAL);
        }
        if index != 0 {
            return Err(libc::ENODATA);
        }
        let gid = gid(device.lock().address());
        unsafe { to.write(GidEntry { gid, index, port, kind: ROCE_V2, netdev: 1 }) };
        Ok(())
    })
}

/// Of the library's private interface, for `ibv_devinfo`: the GID's type as sysfs counts them.
#[no_mangle]
pub unsafe extern "C" fn ibv_query_gid_type(_c: *mut ibv_context, _port: u8, index: u32, kind: *mut u32) -> c_int {
    const ROCE_V2: u32 = 1;
    if index != 0 {
        return minus_one(libc::EINVAL);
    }
    unsafe { *kind = ROCE_V2 };
    0
}

/// `ibv_query_pkey(3)`: the default partition.
#[no_mangle]
pub unsafe extern "C" fn ibv_query_pkey(_context: *mut ibv_context, port: u8, index: c_int, key: *mut u16) -> c_int {
    call(|_| unsafe {
        only(port.into(), index)?;
        *key = 0xffff;
        Ok(())
    })
}

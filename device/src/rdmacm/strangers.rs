//! What programs that are not of this project want besides: rping, ucmatose, perftest.

use crate::verbs::minus_one;
use libc::{addrinfo, c_char, c_int, c_void, nfds_t, pollfd, sockaddr_storage};
use rdma_sys::{ibv_qp_type, rdma_addrinfo, rdma_port_space};
use std::ptr::null_mut;

/// The passive side asks: the address is to be bound to.
const RAI_PASSIVE: c_int = 1;

/// `rdma_getaddrinfo(3)`: the first address that the C library finds, of IPv4 if the device is.
#[no_mangle]
pub unsafe extern "C" fn rdma_getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const rdma_addrinfo,
    to: *mut *mut rdma_addrinfo,
) -> c_int {
    let is_ipv4 = crate::nic::device().map_or(true, |device| device.lock().address().is_ipv4());
    let (mut wanted, mut found): (addrinfo, *mut addrinfo) = (unsafe { std::mem::zeroed() }, null_mut());
    wanted.ai_family = if is_ipv4 { libc::AF_INET } else { libc::AF_INET6 };
    let passive = !hints.is_null() && unsafe { (*hints).ai_flags } & RAI_PASSIVE != 0;
    wanted.ai_flags = if passive { libc::AI_PASSIVE } else { 0 };
    if unsafe { libc::getaddrinfo(node, service, &wanted, &mut found) } != 0 {
        return minus_one(libc::ENODATA);
    }
    unsafe {
        let mut address: sockaddr_storage = std::mem::zeroed();
        let length = (*found).ai_addrlen;
        let bytes = (length as usize).min(std::mem::size_of::<sockaddr_storage>());
        std::ptr::copy_nonoverlapping(
            (*found).ai_addr.cast::<u8>(),
            (&mut address as *mut sockaddr_storage).cast(),
            bytes,
        );
        libc::freeaddrinfo(found);
        let address: *mut sockaddr_storage = Box::into_raw(Box::new(address));
        let mut info: rdma_addrinfo = std::mem::zeroed();
        (info.ai_family, info.ai_qp_type) = (wanted.ai_family, ibv_qp_type::IBV_QPT_RC as c_int);
        info.ai_port_space = rdma_port_space::RDMA_PS_TCP as c_int;
        if passive {
            (info.ai_src_addr, info.ai_src_len) = (address.cast(), length);
        } else {
            (info.ai_dst_addr, info.ai_dst_len) = (address.cast(), length);
        }
        *to = Box::into_raw(Box::new(info));
    }
    0
}

/// `rdma_freeaddrinfo(3)`.
#[no_mangle]
pub unsafe extern "C" fn rdma_freeaddrinfo(info: *mut rdma_addrinfo) {
    let info = unsafe { Box::from_raw(info) };
    for address in [info.ai_src_addr, info.ai_dst_addr] {
        if !address.is_null() {
            drop(unsafe { Box::from_raw(address.cast::<sockaddr_storage>()) });
        }
    }
}

/// Of rsocket.h: for descriptors that are no rsockets it is `poll(2)`.
#[no_mangle]
pub unsafe extern "C" fn rpoll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    unsafe { libc::poll(fds, count, timeout) }
}

/// `rdma_create_qp_ex`: no extended queue pairs.
#[no_mangle]
pub unsafe extern "C" fn rdma_create_qp_ex(_id: *mut c_void, _attr: *mut c_void) -> c_int {
    minus_one(libc::EOPNOTSUPP)
}

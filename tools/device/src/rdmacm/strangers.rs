//! What programs that are not of this project want besides: rping, ucmatose, perftest.

use super::address;
use crate::verbs::{call, minus_one};
use libc::{addrinfo, c_char, c_int, c_void, nfds_t, pollfd, sockaddr_storage};
use rdma_sys::{ibv_qp_type, rdma_addrinfo, rdma_port_space};
use std::mem::zeroed;
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
    call(|device| unsafe {
        let (mut wanted, mut found): (addrinfo, *mut addrinfo) = (zeroed(), null_mut());
        wanted.ai_family = if device.lock().address().is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let passive = !hints.is_null() && (*hints).ai_flags & RAI_PASSIVE != 0;
        wanted.ai_flags = if passive { libc::AI_PASSIVE } else { 0 };
        if libc::getaddrinfo(node, service, &wanted, &mut found) != 0 {
            return Err(libc::ENODATA);
        }
        let (address, length) = (address::read((*found).ai_addr), (*found).ai_addrlen);
        libc::freeaddrinfo(found);
        let (ip, port) = address.ok_or(libc::ENODATA)?;
        let storage = Box::into_raw(Box::new(zeroed::<sockaddr_storage>()));
        address::write(storage.cast(), ip, port);
        let mut info: rdma_addrinfo = zeroed();
        (info.ai_family, info.ai_qp_type) = (wanted.ai_family, ibv_qp_type::IBV_QPT_RC as c_int);
        info.ai_port_space = rdma_port_space::RDMA_PS_TCP as c_int;
        if passive {
            (info.ai_src_addr, info.ai_src_len) = (storage.cast(), length);
        } else {
            (info.ai_dst_addr, info.ai_dst_len) = (storage.cast(), length);
        }
        *to = Box::into_raw(Box::new(info));
        Ok(())
    })
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

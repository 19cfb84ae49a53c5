//! Addresses in C's form.

use libc::{in6_addr, in_addr, sockaddr, sockaddr_in, sockaddr_in6};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Reads an address and port; None for another family. IPv4 in IPv6's clothes is IPv4, and `::` is any address, as 0.0.0.0.
pub(super) unsafe fn read(address: *const sockaddr) -> Option<(IpAddr, u16)> {
    if address.is_null() {
        return None;
    }
    match i32::from(unsafe { (*address).sa_family }) {
        libc::AF_INET => {
            let address = unsafe { address.cast::<sockaddr_in>().read_unaligned() };
            Some((Ipv4Addr::from(address.sin_addr.s_addr.to_ne_bytes()).into(), u16::from_be(address.sin_port)))
        }
        libc::AF_INET6 => {
            let address = unsafe { address.cast::<sockaddr_in6>().read_unaligned() };
            let ip = Ipv6Addr::from(address.sin6_addr.s6_addr);
            Some((ip.to_ipv4_mapped().map_or(ip.into(), IpAddr::V4), u16::from_be(address.sin6_port)))
        }
        _ => None,
    }
}

/// Writes an address and port where there is room for any.
pub(super) unsafe fn write(to: *mut libc::c_void, ip: IpAddr, port: u16) {
    match ip {
        IpAddr::V4(ip) => unsafe {
            let mut address: sockaddr_in = std::mem::zeroed();
            (address.sin_family, address.sin_port) = (libc::AF_INET as u16, port.to_be());
            address.sin_addr = in_addr { s_addr: u32::from_ne_bytes(ip.octets()) };
            to.cast::<sockaddr_in>().write(address);
        },
        IpAddr::V6(ip) => unsafe {
            let mut address: sockaddr_in6 = std::mem::zeroed();
            (address.sin6_family, address.sin6_port) = (libc::AF_INET6 as u16, port.to_be());
            address.sin6_addr = in6_addr { s6_addr: ip.octets() };
            to.cast::<sockaddr_in6>().write(address);
        },
    }
}

//! Host names and addresses, from what a person types to the `sockaddr` that librdmacm takes.

use std::mem;
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6, ToSocketAddrs};

use libc::{sockaddr, sockaddr_in, sockaddr_in6, sockaddr_storage};

use crate::error::{Error, Kind, Result};
use crate::{info, slow};

/// The addresses of a host name, or the address itself; IPv4 or IPv6 (getaddrinfo(3)).
///
/// # Errors
/// `Kind::NoAddress` if nobody knows the name.
#[track_caller]
pub fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>> {
    slow!("getaddrinfo {host} port {port}");
    let next = "Check the spelling, `getent hosts NAME`, or give the address itself";
    let found = (host, port)
        .to_socket_addrs()
        .map_err(|error| Error::of(Kind::NoAddress, format!("no address for the host {host:?}: {error}"), next))?;
    Ok(found.collect())
}

/// Calls `with` for one address of the host after the other, until it succeeds. A name often has an IPv6 address to
/// which no path leads, as well as an IPv4 address to which one does. The error is that of the last address.
///
/// # Errors
/// That of the last address; `Kind::NoAddress` if the host has no address.
#[track_caller]
pub fn try_each<T>(host: &str, port: u16, mut with: impl FnMut(SocketAddr) -> Result<T>) -> Result<T> {
    let mut last = Error::of(Kind::NoAddress, format!("no address for the host {host:?}"), "Give the address itself");
    for address in resolve(host, port)? {
        match with(address) {
            Ok(done) => return Ok(done),
            Err(error) => {
                info!("not by way of {address}: {error}");
                last = error;
            }
        }
    }
    Err(last)
}

/// The C form, IPv4 or IPv6.
pub(crate) fn to_c(address: SocketAddr) -> sockaddr_storage {
    // SAFETY: all zeroes is a valid sockaddr_storage; sockaddr_in and sockaddr_in6 fit into it and are aligned in it.
    unsafe {
        let mut storage: sockaddr_storage = mem::zeroed();
        match address {
            SocketAddr::V4(v4) => {
                let c = &mut *(&mut storage as *mut sockaddr_storage).cast::<sockaddr_in>();
                c.sin_family = libc::AF_INET as libc::sa_family_t;
                c.sin_port = v4.port().to_be();
                c.sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
            }
            SocketAddr::V6(v6) => {
                let c = &mut *(&mut storage as *mut sockaddr_storage).cast::<sockaddr_in6>();
                c.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                c.sin6_port = v6.port().to_be();
                c.sin6_addr.s6_addr = v6.ip().octets();
                c.sin6_scope_id = v6.scope_id();
            }
        }
        storage
    }
}

/// The pointer that the C calls take. It is good as long as `storage`.
pub(crate) fn as_c(storage: &mut sockaddr_storage) -> *mut sockaddr {
    (storage as *mut sockaddr_storage).cast()
}

/// Back from C; None if it is neither IPv4 nor IPv6. An IPv4 address that came mapped into IPv6 is shown as IPv4.
pub(crate) fn from_c(storage: &sockaddr_storage) -> Option<SocketAddr> {
    // SAFETY: the family says which struct is there, and both fit into the storage.
    unsafe {
        match i32::from(storage.ss_family) {
            libc::AF_INET => {
                let c = &*(storage as *const sockaddr_storage).cast::<sockaddr_in>();
                let ip = c.sin_addr.s_addr.to_ne_bytes().into();
                Some(SocketAddrV4::new(ip, u16::from_be(c.sin_port)).into())
            }
            libc::AF_INET6 => {
                let c = &*(storage as *const sockaddr_storage).cast::<sockaddr_in6>();
                let (ip, port) = (c.sin6_addr.s6_addr.into(), u16::from_be(c.sin6_port));
                let v6 = SocketAddrV6::new(ip, port, 0, c.sin6_scope_id);
                Some(match ip.to_ipv4_mapped() {
                    Some(v4) => SocketAddr::new(IpAddr::V4(v4), port),
                    None => v6.into(),
                })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for text in ["10.47.91.1:7471", "[fd47:91::1]:7471", "[fe80::1%3]:1"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(from_c(&to_c(address)), Some(address));
        }
    }

    #[test]
    fn bytes_are_in_network_order() {
        let c = to_c("1.2.3.4:7471".parse().unwrap());
        // SAFETY: a sockaddr_storage is longer than 8 bytes.
        let bytes = unsafe { std::slice::from_raw_parts((&c as *const sockaddr_storage).cast::<u8>(), 8) };
        assert_eq!(bytes[2..8], [0x1d, 0x2f, 1, 2, 3, 4]);
    }

    #[test]
    fn both_families_resolve_and_an_unknown_name_is_told() {
        // No name: a minimal system knows not even localhost. The lab's machines know `server`, and lessons are tried with it.
        assert!(resolve("127.0.0.1", 1).unwrap().iter().all(|address| address.ip().is_loopback()));
        assert!(resolve("::1", 1).unwrap()[0].is_ipv6());
        let error = resolve("no such host", 1).unwrap_err().to_string();
        assert!(error.contains("no address for the host \"no such host\""), "{error}");
    }

    #[test]
    fn one_address_after_the_other() {
        let tried = std::cell::RefCell::new(Vec::new());
        let fail = |address| {
            tried.borrow_mut().push(address);
            Err::<(), _>(Error::content(format!("not {address}"), "Try the next"))
        };
        let error = try_each("127.0.0.1", 1, fail).unwrap_err().to_string();
        let last = tried.borrow().last().copied().unwrap();
        assert_eq!(*tried.borrow(), resolve("127.0.0.1", 1).unwrap());
        assert!(error.contains(&format!("not {last}")), "{error}");
        assert_eq!(try_each("127.0.0.1", 1, Ok).unwrap(), tried.borrow()[0]);
    }

    #[test]
    fn a_mapped_address_is_shown_as_ipv4() {
        let mapped = to_c("[::ffff:1.2.3.4]:5".parse().unwrap());
        assert_eq!(from_c(&mapped), Some("1.2.3.4:5".parse().unwrap()));
    }
}

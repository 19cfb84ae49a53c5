//! Protection domains and memory regions: where keys come from. What a key opens is checked, with each packet that brings one,
//! in [`nic::memory`].

use super::{null, object, verb};
use crate::rim::{random, Nic};
use libc::{c_int, c_void};
use nic::memory::Access;
use rdma_sys::{ibv_context, ibv_mr, ibv_pd};

/// Access flags that a device may ignore, by their definition.
const OPTIONAL: u32 = 0x3ff0_0000;

/// `ibv_alloc_pd(3)`.
#[no_mangle]
pub unsafe extern "C" fn ibv_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd {
    object(|device| {
        let handle = device.lock().number();
        Ok(Box::into_raw(Box::new(ibv_pd { context, handle })))
    })
}

/// `ibv_dealloc_pd(3)`: refused while something is in the domain.
#[no_mangle]
pub unsafe extern "C" fn ibv_dealloc_pd(pd: *mut ibv_pd) -> c_int {
    verb(|device| unsafe {
        if is_used(&device.lock(), (*pd).handle) {
            return Err(libc::EBUSY);
        }
        drop(Box::from_raw(pd));
        Ok(())
    })
}

fn is_used(nic: &Nic, pd: u32) -> bool {
    let by_qp = nic.qps.values().any(|entry| entry.qp.settings().pd == pd);
    let by_srq = nic.srqs.values().any(|srq| srq.queue.pd() == pd);
    by_qp || by_srq || nic.memory.is_used(pd)
}

/// `ibv_reg_mr(3)`.
#[no_mangle]
pub unsafe extern "C" fn ibv_reg_mr(pd: *mut ibv_pd, addr: *mut c_void, length: usize, access: c_int) -> *mut ibv_mr {
    object(|device| unsafe {
        let granted = Access(access as u32 & !OPTIONAL);
        let comes_to_write = granted.0 & (Access::REMOTE_WRITE.0 | Access::REMOTE_ATOMIC.0) != 0;
        if granted.0 > 0xf {
            return Err(libc::EOPNOTSUPP); // Memory windows, zero based addresses, paging on demand.
        }
        if length == 0 || (comes_to_write && !granted.allow(Access::LOCAL_WRITE)) {
            return Err(libc::EINVAL);
        }
        if !is_mapped(addr, length) {
            return Err(libc::EFAULT);
        }
        let (context, number) = ((*pd).context, (*pd).handle);
        let key = device.lock().memory.register(number, addr.cast(), length as u64, granted, random() as u8);
        // lkey and rkey are the same number; whoever may not come from outside gets no rkey.
        let rkey = if granted.0 > Access::LOCAL_WRITE.0 { key } else { 0 };
        Ok(Box::into_raw(Box::new(ibv_mr { context, pd, addr, length, handle: key >> 8, lkey: key, rkey })))
    })
}

/// Whether all pages of a stretch exist: a NIC, which pins them, would notice.
fn is_mapped(start: *mut c_void, length: usize) -> bool {
    const PAGE: usize = 4096;
    let skipped = start as usize % PAGE;
    let first = (start as usize - skipped) as *mut c_void;
    // SAFETY: the kernel looks at the page tables only; with MS_ASYNC this does nothing but complain.
    unsafe { libc::msync(first, length.saturating_add(skipped), libc::MS_ASYNC) == 0 }
}

/// `ibv_reg_mr_iova2`, which `ibv_reg_mr` is in newer headers. Other addresses than the program's own are not supported.
#[no_mangle]
pub unsafe extern "C" fn ibv_reg_mr_iova2(
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    access: u32,
) -> *mut ibv_mr {
    if iova != addr as u64 {
        return null(libc::EOPNOTSUPP);
    }
    unsafe { ibv_reg_mr(pd, addr, length, access as c_int) }
}

/// `ibv_dereg_mr(3)`.
#[no_mangle]
pub unsafe extern "C" fn ibv_dereg_mr(mr: *mut ibv_mr) -> c_int {
    verb(|device| unsafe {
        if !device.lock().memory.deregister((*mr).lkey) {
            return Err(libc::EINVAL);
        }
        drop(Box::from_raw(mr));
        Ok(())
    })
}

//! `ibv_mr`, the memory region: bytes that the device may use (man 3 ibv_reg_mr, ibv_dereg_mr).
//!
//! Registering pins the pages, so that their physical addresses stay, and yields two keys: the *lkey*, which this side's
//! own work requests carry, and the *rkey*, which the peer's carry. Send the rkey: most drivers make
//! both equal, so that a program that mixes them up works until it meets one that does not.
//!
//! Hidden: the memory itself. The device may write it at any moment, which no `&[u8]` or `&mut [u8]` allows for; so bytes
//! are copied in and out. It is freed only after `ibv_dereg_mr`, and that waits until no posted work request uses it.

use std::alloc::{alloc_zeroed, dealloc, Layout};
use std::fmt;
use std::ops::{BitOr, Range};
use std::rc::Rc;

use rdma_sys::{ibv_dereg_mr, ibv_mr, ibv_reg_mr};

use crate::error::{null, positive_errno, Error, Result};
use crate::pd::ProtectionDomain;
use crate::{info, narrate, slow};

/// Regions start on a page, as the kernel pins whole pages.
const PAGE: usize = 4096;

/// What the device may do with a region (`ibv_access_flags`). Reading by this side's own device is always allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access(u32);

impl Access {
    /// `IBV_ACCESS_LOCAL_WRITE`: this side's device may write: a receive, or the answer to a READ.
    pub const LOCAL_WRITE: Self = Self(1);
    /// `IBV_ACCESS_REMOTE_WRITE`: the peer may WRITE. Needs LOCAL_WRITE too.
    pub const REMOTE_WRITE: Self = Self(2);
    /// `IBV_ACCESS_REMOTE_READ`: the peer may READ.
    pub const REMOTE_READ: Self = Self(4);
    /// `IBV_ACCESS_REMOTE_ATOMIC`: the peer may add and swap. Needs LOCAL_WRITE too.
    pub const REMOTE_ATOMIC: Self = Self(8);
    /// No flag: the device may only read, as it does to send.
    pub const LOCAL_READ: Self = Self(0);
}

impl Access {
    pub(crate) fn bits(self) -> u32 {
        self.0
    }
}

impl BitOr for Access {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let names = [(1, "LOCAL_WRITE"), (2, "REMOTE_WRITE"), (4, "REMOTE_READ"), (8, "REMOTE_ATOMIC")];
        let set: Vec<_> = names.iter().filter(|(bit, _)| self.0 & bit != 0).map(|(_, name)| *name).collect();
        f.write_str(if set.is_empty() { "LOCAL_READ" } else { "" })?;
        f.write_str(&set.join("|"))
    }
}

/// A registered region, and the memory it covers.
pub struct MemoryRegion(Rc<Inner>);

/// What a posted work request keeps: registration and memory.
pub(crate) struct Inner {
    raw: *mut ibv_mr,
    memory: *mut u8,
    layout: Layout,
    _pd: ProtectionDomain,
}

impl MemoryRegion {
    pub(crate) fn register(pd: &ProtectionDomain, len: usize, access: Access) -> Result<Self> {
        slow!("ibv_reg_mr len={len} access={access}");
        let no_memory = Error::Call { call: "ibv_reg_mr", errno: libc::ENOMEM };
        // A work request's length has 32 bits. One byte at least: an allocation of none has no address.
        let layout = match u32::try_from(len) {
            Ok(_) => Layout::from_size_align(len.max(1), PAGE).map_err(|_| no_memory.clone())?,
            Err(_) => return Err(no_memory),
        };
        // SAFETY: the layout's size is not zero.
        let memory = unsafe { alloc_zeroed(layout) };
        if memory.is_null() {
            return Err(no_memory);
        }
        // SAFETY: the memory is `len` bytes and stays allocated until after ibv_dereg_mr; the PD is kept.
        let raw = unsafe { ibv_reg_mr(pd.raw(), memory.cast(), len, access.0 as i32) };
        let raw = null("ibv_reg_mr", raw).map_err(|error| {
            // SAFETY: allocated above with this layout, and registered by nobody.
            unsafe { dealloc(memory, layout) };
            error
        })?;
        let region = Self(Rc::new(Inner { raw, memory, layout, _pd: pd.share() }));
        info!("MR: addr=0x{:x} len={len} lkey=0x{:x} rkey=0x{:x}", region.addr(), region.lkey(), region.rkey());
        Ok(region)
    }

    /// The address of the first byte, as the peer's work requests name it.
    pub fn addr(&self) -> u64 {
        self.0.memory as u64
    }

    /// The length in bytes.
    pub fn len(&self) -> usize {
        // SAFETY: registered until Inner is dropped.
        unsafe { (*self.0.raw).length }
    }

    /// True for a region of no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key that this side's work requests carry.
    pub fn lkey(&self) -> u32 {
        // SAFETY: registered until Inner is dropped.
        unsafe { (*self.0.raw).lkey }
    }

    /// The key that the peer's work requests carry.
    pub fn rkey(&self) -> u32 {
        // SAFETY: registered until Inner is dropped.
        unsafe { (*self.0.raw).rkey }
    }

    /// Copies `bytes` into the region, from `offset` on. While a posted request reads the region, the peer may see old
    /// bytes, new ones or a mix: wait for its completion first.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<()> {
        let range = self.check(offset..offset.saturating_add(bytes.len()))?;
        for (at, byte) in range.zip(bytes) {
            // SAFETY: the range lies in the allocation. No reference into it exists anywhere, and the CPU side is reached
            // only through this handle, which is borrowed for writing.
            unsafe { self.0.memory.add(at).write_volatile(*byte) };
        }
        Ok(())
    }

    /// Copies bytes out of the region. The device may have written them without any call of this program: so each is read
    /// anew (volatile), also in a loop that waits for a byte to change.
    pub fn read(&self, range: Range<usize>) -> Result<Vec<u8>> {
        let range = self.check(range)?;
        // SAFETY: the range lies in the allocation. The device may write meanwhile: the copy then holds old and new bytes,
        // all of them initialized.
        Ok(range.map(|at| unsafe { self.0.memory.add(at).read_volatile() }).collect())
    }

    /// The 8 bytes at `offset`, a multiple of 8, in one piece: what an atomic of the peer's may change at this moment.
    pub fn read_u64(&self, offset: usize) -> Result<u64> {
        let at = self.check_u64(offset)?;
        // SAFETY: 8 bytes in the allocation, which starts on a page, and so aligned.
        Ok(unsafe { self.0.memory.add(at).cast::<u64>().read_volatile() })
    }

    /// Sets them, in one piece. Atomics of the device may not be atomic against this processor: set them before.
    pub fn write_u64(&mut self, offset: usize, value: u64) -> Result<()> {
        let at = self.check_u64(offset)?;
        // SAFETY: as in read_u64, and in write.
        unsafe { self.0.memory.add(at).cast::<u64>().write_volatile(value) };
        Ok(())
    }

    fn check_u64(&self, offset: usize) -> Result<usize> {
        match offset % 8 {
            0 => Ok(self.check(offset..offset.saturating_add(8))?.start),
            _ => Err(Error::content(format!("{offset} is no multiple of 8"), "Keep counters at multiples of 8")),
        }
    }

    /// The range, if it lies inside the region.
    pub(crate) fn check(&self, range: Range<usize>) -> Result<Range<usize>> {
        inside(range, self.len())
    }

    /// A share of registration and memory, for a posted work request.
    pub(crate) fn keep(&self) -> Rc<Inner> {
        Rc::clone(&self.0)
    }
}

fn inside(range: Range<usize>, len: usize) -> Result<Range<usize>> {
    if range.start <= range.end && range.end <= len {
        return Ok(range);
    }
    let what = format!("bytes {}..{} are outside the region, which has {len} bytes", range.start, range.end);
    Err(Error::content(what, "Register a longer buffer, or use less of it"))
}

impl Drop for Inner {
    fn drop(&mut self) {
        slow!("ibv_dereg_mr");
        // SAFETY: from ibv_reg_mr. Posted work requests share Inner, so none is under way.
        match positive_errno("ibv_dereg_mr", unsafe { ibv_dereg_mr(self.raw) }) {
            // SAFETY: allocated with this layout, and the device has let go of it.
            Ok(()) => unsafe { dealloc(self.memory, self.layout) },
            // Still registered: the device may write there, so the memory must stay, for ever.
            Err(error) => narrate::failure(&error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_is_spelled_out() {
        assert_eq!((Access::LOCAL_WRITE | Access::REMOTE_READ).to_string(), "LOCAL_WRITE|REMOTE_READ");
        assert_eq!(Access::LOCAL_READ.to_string(), "LOCAL_READ");
    }

    #[test]
    #[allow(clippy::reversed_empty_ranges)]
    fn nothing_outside_the_region() {
        assert_eq!(inside(0..16, 16), Ok(0..16));
        assert_eq!(inside(16..16, 16), Ok(16..16));
        for range in [0..17, 17..17, 5..4, usize::MAX..usize::MAX] {
            assert!(inside(range, 16).is_err());
        }
    }
}

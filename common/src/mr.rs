//! `ibv_mr`, the memory region: bytes that the device may use (man 3 ibv_reg_mr, ibv_dereg_mr).
//!
//! Registering pins the pages, so that their physical addresses stay, and yields two keys: the *lkey*, which this side's
//! own work requests carry, and the *rkey*, which the peer's carry. Send the rkey: most drivers make
//! both equal, so that a program that mixes them up works until it meets one that does not.
//!
//! Hidden: the memory itself (buffer.rs). It is freed only after `ibv_dereg_mr`, and that waits until no posted work request
//! uses it.

use std::fmt;
use std::ops::{BitOr, Range};
use std::rc::Rc;

use rdma_sys::{ibv_dereg_mr, ibv_mr, ibv_reg_mr};

use crate::buffer::{inside, Buffer};
use crate::error::{null, positive_errno, Error, Result};
use crate::pd::ProtectionDomain;
use crate::{info, narrate, slow};

/// What the device may do with a region (`ibv_access_flags`). Reading by this side's own device is always allowed.
#[derive(Clone, Copy, PartialEq, Eq)]
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

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A registered region, and the buffer that it is in.
pub struct MemoryRegion(Rc<Inner>);

/// What a posted work request keeps: registration and memory.
pub(crate) struct Inner {
    raw: *mut ibv_mr,
    buffer: Buffer,
    _pd: ProtectionDomain,
}

impl ProtectionDomain {
    /// `ibv_reg_mr`: allocates `len` zeroed bytes, pins them, and lets the device use them as `access` says.
    ///
    /// # Errors
    /// `Error::Call`: EINVAL for no bytes, or for REMOTE_WRITE without LOCAL_WRITE; ENOMEM for more than may be locked (`ulimit
    /// -l`). `Error::Content` if there isn't enough memory.
    #[track_caller]
    pub fn reg_mr(&self, len: usize, access: Access) -> Result<MemoryRegion> {
        MemoryRegion::register(self, &Buffer::zeroed(len)?, len, access)
    }

    /// `ibv_reg_mr` of memory that the caller has: the first `len` bytes of the buffer.
    ///
    /// # Errors
    /// As [`reg_mr`](Self::reg_mr); `Kind::OutOfRange` if the buffer is shorter.
    #[track_caller]
    pub fn reg_buffer(&self, buffer: &Buffer, len: usize, access: Access) -> Result<MemoryRegion> {
        MemoryRegion::register(self, buffer, len, access)
    }
}

impl MemoryRegion {
    #[track_caller]
    fn register(pd: &ProtectionDomain, buffer: &Buffer, len: usize, access: Access) -> Result<Self> {
        slow!("ibv_reg_mr len={len} access={access}");
        inside(0..len, buffer.len())?;
        // A work request's length has 32 bits.
        u32::try_from(len).map_err(|_| Error::Call { call: "ibv_reg_mr", errno: libc::ENOMEM })?;
        // SAFETY: the memory is `len` bytes and stays allocated until after ibv_dereg_mr, as both the buffer and the PD are kept.
        let raw = unsafe { ibv_reg_mr(pd.raw(), buffer.addr() as *mut _, len, access.0 as i32) };
        let raw = null("ibv_reg_mr", raw)?;
        let region = Self(Rc::new(Inner { raw, buffer: buffer.clone(), _pd: pd.share() }));
        info!("MR: addr=0x{:x} len={len} lkey=0x{:x} rkey=0x{:x}", region.addr(), region.lkey(), region.rkey());
        Ok(region)
    }

    /// The address of the first byte, as the peer's work requests name it.
    pub fn addr(&self) -> u64 {
        self.0.buffer.addr()
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

    /// [`Buffer::write`].
    ///
    /// # Errors
    /// `Kind::OutOfRange` if they do not fit; nothing is written then.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        self.0.buffer.write(offset, bytes)
    }

    /// [`Buffer::read`].
    ///
    /// # Errors
    /// `Kind::OutOfRange` if some of them are outside the region.
    pub fn read(&self, range: Range<usize>) -> Result<Vec<u8>> {
        self.0.buffer.read(range)
    }

    /// [`Buffer::read_u64`].
    ///
    /// # Errors
    /// `Kind::OutOfRange` if they are outside the region, or `offset` isn't a multiple of 8.
    pub fn read_u64(&self, offset: usize) -> Result<u64> {
        self.0.buffer.read_u64(offset)
    }

    /// [`Buffer::write_u64`].
    ///
    /// # Errors
    /// `Kind::OutOfRange` as in [`read_u64`](Self::read_u64).
    pub fn write_u64(&self, offset: usize, value: u64) -> Result<()> {
        self.0.buffer.write_u64(offset, value)
    }

    /// The range, if it's inside the region.
    pub(crate) fn check(&self, range: Range<usize>) -> Result<Range<usize>> {
        inside(range, self.len())
    }

    /// A share of registration and memory, for a posted work request.
    pub(crate) fn keep(&self) -> Rc<Inner> {
        Rc::clone(&self.0)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        slow!("ibv_dereg_mr");
        // SAFETY: from ibv_reg_mr. Posted work requests share Inner, so none is under way.
        if let Err(error) = positive_errno("ibv_dereg_mr", unsafe { ibv_dereg_mr(self.raw) }) {
            // Still registered: the device may write there, so the memory must stay, for ever.
            std::mem::forget(self.buffer.clone());
            narrate::failure(&error.to_string());
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
}

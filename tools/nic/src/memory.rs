//! Registered memory: protection domains, keys, bounds and access (specification, volume 1, 10.6).
//!
//! Every byte that a packet brings or takes passes through here, and the check of the key comes first. The program has
//! promised, by registering, that the memory stays where it is until it deregisters: a real NIC has the pages pinned; this
//! one crashes with the program that frees them early. Program and device may touch a byte at the same time, as with a NIC:
//! so bytes are copied through raw pointers, and no Rust reference to the program's memory is ever made.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a region may be used for: the bits of `ibv_access_flags`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access(pub u32);

impl Access {
    /// Reading by this device: always allowed.
    pub const LOCAL_READ: Access = Access(0);
    /// Writing by this device: receives, and what a READ brings.
    pub const LOCAL_WRITE: Access = Access(1);
    pub const REMOTE_WRITE: Access = Access(2);
    pub const REMOTE_READ: Access = Access(4);
    pub const REMOTE_ATOMIC: Access = Access(8);

    /// Whether all of `needed` is among these.
    pub fn allow(self, needed: Access) -> bool {
        self.0 & needed.0 == needed.0
    }
}

/// A piece of registered memory of the program: what `ibv_sge` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sge {
    pub address: u64,
    pub length: u32,
    pub lkey: u32,
}

/// Why memory is out of reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Key,
    /// The region belongs to another protection domain than the queue pair.
    Pd,
    Bounds,
    Access,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Key => "no region has this key",
            Refusal::Pd => "the region is in another protection domain",
            Refusal::Bounds => "out of the region's bounds",
            Refusal::Access => "the region does not allow it",
        })
    }
}

/// A claim on memory: who wants which bytes for what.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// The protection domain.
    pub pd: u32,
    /// lkey or rkey: here they are the same number.
    pub key: u32,
    pub address: u64,
    pub length: u32,
    pub needed: Access,
}

#[derive(Debug)]
struct Region {
    start: *mut u8,
    length: u64,
    access: Access,
    key: u32,
    pd: u32,
}

/// All regions of the device.
#[derive(Debug, Default)]
pub struct Memory {
    /// By the upper 24 bits of their keys.
    regions: BTreeMap<u32, Region>,
    last_index: u32,
}

// SAFETY: the pointers belong to the program, which lends them to all threads of the device by registering.
unsafe impl Send for Memory {}

impl Memory {
    /// Registers memory and gives its key: an index, which is used again after all others, and eight bits that cannot be
    /// guessed from it.
    pub fn register(&mut self, pd: u32, start: *mut u8, length: u64, access: Access, random: u8) -> u32 {
        loop {
            self.last_index = self.last_index.wrapping_add(1) & 0xff_ffff;
            if !self.regions.contains_key(&self.last_index) {
                break;
            }
        }
        let key = self.last_index << 8 | u32::from(random);
        self.regions.insert(key >> 8, Region { start, length, access, key, pd });
        key
    }

    /// Ends a registration: from now on nobody touches the memory. False if there is none with this key.
    pub fn deregister(&mut self, key: u32) -> bool {
        let is_known = self.regions.get(&(key >> 8)).is_some_and(|region| region.key == key);
        is_known && self.regions.remove(&(key >> 8)).is_some()
    }

    pub fn is_used(&self, pd: u32) -> bool {
        self.regions.values().any(|region| region.pd == pd)
    }

    /// Checks a claim, in the order of the specification: key, domain, access, bounds. Nothing is touched.
    ///
    /// # Errors
    /// Why not. No bytes at all are always granted (9.7.4.1.3).
    pub fn check(&self, claim: Claim) -> Result<(), Refusal> {
        self.reach(claim).map(|_| ())
    }

    /// The first byte of what is claimed.
    fn reach(&self, claim: Claim) -> Result<*mut u8, Refusal> {
        if claim.length == 0 {
            return Ok(std::ptr::NonNull::dangling().as_ptr());
        }
        let region =
            self.regions.get(&(claim.key >> 8)).filter(|region| region.key == claim.key).ok_or(Refusal::Key)?;
        if region.pd != claim.pd {
            return Err(Refusal::Pd);
        }
        if !region.access.allow(claim.needed) {
            return Err(Refusal::Access);
        }
        let offset = claim.address.checked_sub(region.start as u64).ok_or(Refusal::Bounds)?;
        if offset.checked_add(claim.length.into()).map_or(true, |end| end > region.length) {
            return Err(Refusal::Bounds);
        }
        // SAFETY: the offset lies in the region, which the program keeps until it deregisters it.
        Ok(unsafe { region.start.add(offset as usize) })
    }

    /// Copies bytes out.
    pub fn read(&self, claim: Claim) -> Result<Vec<u8>, Refusal> {
        // SAFETY: `reach` has found so many bytes there.
        Ok(unsafe { copy_out(self.reach(claim)?, claim.length as usize) })
    }

    /// Copies bytes in; the claim's length is theirs.
    pub fn write(&self, claim: Claim, bytes: &[u8]) -> Result<(), Refusal> {
        let to = self.reach(Claim { length: bytes.len() as u32, ..claim })?;
        // SAFETY: `reach` has found so many bytes there, which the program has lent to be written to.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    /// Changes eight bytes at once and gives what stood there: `change` gets the old number and says the new one, or None to
    /// leave it. The address is a multiple of eight.
    pub fn update(&self, claim: Claim, change: impl Fn(u64) -> Option<u64>) -> Result<u64, Refusal> {
        let at = self.reach(Claim { length: 8, ..claim })?;
        if at as usize % 8 != 0 {
            return Err(Refusal::Bounds);
        }
        // SAFETY: `reach` has found eight bytes there, aligned, which the program has lent; other threads use atomics, too.
        let cell = unsafe { AtomicU64::from_ptr(at.cast()) };
        Ok(cell.fetch_update(Ordering::SeqCst, Ordering::SeqCst, change).unwrap_or_else(|old| old))
    }

    /// Copies `length` bytes, from `offset` on, out of what a list of pieces holds together.
    ///
    /// # Errors
    /// A piece is out of reach. The list ends early: [`Refusal::Bounds`].
    pub fn gather(&self, pd: u32, sge: &[Sge], offset: u32, length: u32) -> Result<Vec<u8>, Refusal> {
        let mut bytes = Vec::with_capacity(length as usize);
        for claim in cut(pd, sge, offset, length, Access::LOCAL_READ) {
            bytes.extend(self.read(claim)?);
        }
        if bytes.len() == length as usize {
            Ok(bytes)
        } else {
            Err(Refusal::Bounds)
        }
    }

    /// Copies bytes, from `offset` on, into what a list of pieces holds together. Who calls has seen that they fit.
    pub fn scatter(&self, pd: u32, sge: &[Sge], offset: u32, mut bytes: &[u8]) -> Result<(), Refusal> {
        for claim in cut(pd, sge, offset, bytes.len() as u32, Access::LOCAL_WRITE) {
            let (now, later) = bytes.split_at(claim.length as usize);
            self.write(claim, now)?;
            bytes = later;
        }
        Ok(())
    }
}

/// Copies bytes of the program. What it writes there at the same time may or may not be seen, as with a NIC.
///
/// # Safety
/// So many bytes are there; where there are none, the pointer may be any.
pub unsafe fn copy_out(from: *const u8, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length);
    if length > 0 {
        // SAFETY: the bytes are there, as who calls has promised, and there is room for them.
        unsafe {
            std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), length);
            bytes.set_len(length);
        }
    }
    bytes
}

/// The pieces of a list that hold the bytes from `offset` on, as claims.
fn cut(pd: u32, sge: &[Sge], offset: u32, length: u32, needed: Access) -> Vec<Claim> {
    let (mut skip, mut left) = (offset, length);
    let mut claims = Vec::new();
    for piece in sge {
        let here = piece.length.saturating_sub(skip).min(left);
        if here > 0 {
            let address = piece.address.wrapping_add(skip.into());
            claims.push(Claim { pd, key: piece.lkey, address, length: here, needed });
        }
        skip = skip.saturating_sub(piece.length);
        left -= here;
    }
    claims
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(key: u32, address: u64, length: u32, needed: Access) -> Claim {
        Claim { pd: 1, key, address, length, needed }
    }

    #[test]
    fn nothing_outside_a_region_is_in_reach() {
        let mut bytes = [7u8; 16];
        let mut memory = Memory::default();
        let pointer = bytes.as_mut_ptr();
        let key = memory.register(1, pointer, 16, Access::REMOTE_READ, 0xab);
        let start = pointer as u64;
        let check = |key, address, length, needed| memory.check(claim(key, address, length, needed));
        assert_eq!(check(key, start, 16, Access::REMOTE_READ), Ok(()));
        assert_eq!(check(key, start + 16, 0, Access::REMOTE_READ), Ok(()));
        assert_eq!(check(key ^ 1, start, 1, Access::REMOTE_READ), Err(Refusal::Key));
        assert_eq!(check(key, start, 1, Access::REMOTE_WRITE), Err(Refusal::Access));
        for (address, length) in [(start - 1, 1), (start, 17), (start + 16, 1), (u64::MAX, 2), (0, u32::MAX)] {
            assert_eq!(check(key, address, length, Access::REMOTE_READ), Err(Refusal::Bounds));
        }
        let other = Claim { pd: 2, ..claim(key, start, 1, Access::REMOTE_READ) };
        assert_eq!(memory.check(other), Err(Refusal::Pd));
        assert!(memory.deregister(key) && !memory.deregister(key));
        assert_eq!(memory.check(claim(key, start, 1, Access::REMOTE_READ)), Err(Refusal::Key));
    }

    #[test]
    fn pieces_are_one_stretch_of_bytes() {
        let mut bytes = [1u8, 2, 3, 0, 4, 5, 6];
        let mut memory = Memory::default();
        let start = bytes.as_mut_ptr();
        let lkey = memory.register(1, start, 7, Access::LOCAL_WRITE, 0);
        let piece = |at| Sge { address: start as u64 + at, length: 3, lkey };
        let pieces = [piece(0), Sge::default(), piece(4)];
        assert_eq!(memory.gather(1, &pieces, 2, 3), Ok(vec![3, 4, 5]));
        assert_eq!(memory.gather(1, &pieces, 2, 5), Err(Refusal::Bounds));
        memory.scatter(1, &pieces, 1, &[9, 9, 9]).unwrap();
        assert_eq!(memory.gather(1, &pieces, 0, 6), Ok(vec![1, 9, 9, 9, 5, 6]));
    }
}

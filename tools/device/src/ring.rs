//! Queues that a program shares with the device: `rxe_queue_buf` of `rdma/rdma_user_rxe.h`.
//!
//! The rxe provider maps them from the open `/dev/infiniband/uverbs0`. A queue is a ring of slots, each a power of two of bytes
//! long, with the number of the slot that is filled next (producer) and of the one that is taken next (consumer); if they are
//! the same, it is empty. Of a send or receive queue the program is the producer and the device the consumer, of a completion
//! queue the other way round. So posting and polling take no system call; posting to a send queue has a doorbell besides.
//!
//! Nothing that is there is trusted: the size is our own, indices are masked, and entries are copied before they are read.

use crate::abi::MmInfo;
use bytemuck::{AnyBitPattern, Zeroable};
use rustix::fs::{fallocate, fstat, FallocateFlags};
use rustix::io::{Errno, Result};
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

const PAGE: u64 = 4096;
/// The smallest slot: a cache line.
const SMALLEST: usize = 64;
/// Where in `rxe_queue_buf` its fields lie, in bytes.
const LOG2_SLOT: usize = 0;
const MASK: usize = 4;
const PRODUCER: usize = 128;
const CONSUMER: usize = 256;
const SLOTS: usize = 384;

#[derive(Debug)]
pub struct Ring {
    base: NonNull<u8>,
    /// In the file of the pages, which keeps them.
    offset: u64,
    bytes: u64,
    /// The number of slots, a power of two, less one.
    mask: u32,
    slot: usize,
    /// Up to here entries were drawn.
    drawn: u32,
    pages: OwnedFd,
}

impl Ring {
    /// A ring for this many entries of this many bytes, in the pages of an open device from `offset` on.
    ///
    /// # Errors
    /// `ENOMEM`: there aren't that many pages. A program that touched what comes after them would get SIGBUS.
    pub fn new(pages: BorrowedFd, offset: u64, entries: u32, size: usize) -> Result<Ring> {
        // One slot stays empty: a full ring is not to look like an empty one.
        let slots = (entries + 1).next_power_of_two();
        let slot = size.next_power_of_two().max(SMALLEST);
        let bytes = (SLOTS as u64 + u64::from(slots) * slot as u64).next_multiple_of(PAGE);
        if fstat(pages)?.st_size < (offset + bytes) as i64 {
            return Err(Errno::NOMEM);
        }
        let (protection, pages) =
            (ProtFlags::READ | ProtFlags::WRITE, pages.try_clone_to_owned().map_err(|_| Errno::MFILE)?);
        // SAFETY: a new mapping, somewhere, of a file that keeps its size (it is sealed).
        let base = unsafe { mmap(std::ptr::null_mut(), bytes as usize, protection, MapFlags::SHARED, &pages, offset)? };
        let base = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
        let ring = Ring { base, offset, bytes, mask: slots - 1, slot, drawn: 0, pages };
        ring.number(LOG2_SLOT).store(slot.ilog2(), Ordering::Relaxed);
        ring.number(MASK).store(ring.mask, Ordering::Relaxed);
        Ok(ring)
    }

    /// Where the program finds it.
    pub fn place(&self) -> MmInfo {
        MmInfo { offset: self.offset, size: self.bytes as u32, pad: 0 }
    }

    /// Where in the pages the next ring has room.
    pub fn end(&self) -> u64 {
        self.offset + self.bytes
    }

    /// How many bytes a slot has.
    pub fn slot_bytes(&self) -> u32 {
        self.slot as u32
    }

    /// How many entries fit.
    pub fn capacity(&self) -> u32 {
        self.mask
    }

    fn number(&self, at: usize) -> &AtomicU32 {
        // SAFETY: it is in the mapping, aligned, which lives as long as the ring; the program also sees it as an atomic.
        unsafe { &*self.base.as_ptr().add(at).cast::<AtomicU32>() }
    }

    /// The number of the slot that the program fills next.
    pub fn producer(&self) -> u32 {
        self.number(PRODUCER).load(Ordering::Acquire) & self.mask
    }

    fn consumer(&self) -> u32 {
        self.number(CONSUMER).load(Ordering::Acquire) & self.mask
    }

    /// The slot behind this one.
    fn next(&self, index: u32) -> u32 {
        index.wrapping_add(1) & self.mask
    }

    /// The next slot before `end` that was not drawn yet.
    pub fn draw(&mut self, end: u32) -> Option<u32> {
        let index = self.drawn;
        (index != end).then(|| {
            self.drawn = self.next(index);
            index
        })
    }

    /// From now on the program may fill what was drawn, less `waiting` slots that are not done with.
    pub fn release(&self, waiting: u32) {
        self.number(CONSUMER).store(self.drawn.wrapping_sub(waiting) & self.mask, Ordering::Release);
    }

    /// Copies the entries that wait in another ring.
    pub fn take_over(&self, other: &Ring) {
        for index in other.entries() {
            self.push(&other.bytes(index, 0, other.slot.min(self.slot)));
        }
    }

    /// Forgets all entries.
    pub fn clear(&mut self) {
        self.drawn = 0;
        self.number(PRODUCER).store(0, Ordering::Release);
        self.number(CONSUMER).store(0, Ordering::Release);
    }

    /// The slots of the entries that wait, the oldest first.
    pub fn entries(&self) -> impl Iterator<Item = u32> + '_ {
        let begin = self.consumer();
        (0..self.waiting()).map(move |behind| begin.wrapping_add(behind) & self.mask)
    }

    /// Entries that wait.
    pub fn waiting(&self) -> u32 {
        self.producer().wrapping_sub(self.consumer()) & self.mask
    }

    /// Copies a struct out of a slot, from byte `at` on. What reaches over the slot's end is zero.
    pub fn read<T: AnyBitPattern + Zeroable>(&self, index: u32, at: usize) -> T {
        bytemuck::pod_read_unaligned(&self.bytes(index, at, std::mem::size_of::<T>()))
    }

    /// Copies bytes out of a slot. Those over the slot's end are zero.
    pub fn bytes(&self, index: u32, at: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let inside = length.min(self.slot.saturating_sub(at));
        // SAFETY: the slot has that many bytes, and is in the mapping.
        unsafe { self.slot(index).add(at.min(self.slot)).copy_to_nonoverlapping(bytes.as_mut_ptr(), inside) };
        bytes
    }

    /// Fills the next slot. False if none is free.
    pub fn push(&self, entry: &[u8]) -> bool {
        let index = self.producer();
        let next = self.next(index);
        if next == self.consumer() || entry.len() > self.slot {
            return false;
        }
        // SAFETY: the entry fits into the slot, and the slot is in the mapping.
        unsafe { self.slot(index).copy_from_nonoverlapping(entry.as_ptr(), entry.len()) };
        self.number(PRODUCER).store(next, Ordering::Release);
        true
    }

    fn slot(&self, index: u32) -> *mut u8 {
        // SAFETY: masked, so it is in the mapping.
        unsafe { self.base.as_ptr().add(SLOTS + (index & self.mask) as usize * self.slot) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: our own mapping, of which no reference is left. The program's own mapping stays until it unmaps it.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes as usize) };
        let _ = fallocate(
            self.pages.as_fd(),
            FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            self.offset,
            self.bytes,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{ftruncate, memfd_create, MemfdFlags};

    #[test]
    fn a_ring_gives_back_what_was_put_in_and_is_full_in_time() {
        let pages = memfd_create("pages", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&pages, 1 << 20).unwrap();
        let mut ring = Ring::new(pages.as_fd(), 4096, 5, 65).unwrap();
        assert_eq!((ring.capacity(), ring.place().offset, ring.end() % PAGE), (7, 4096, 0));
        assert!((0..7u64).all(|n| ring.push(&n.to_ne_bytes())) && !ring.push(&[0]) && ring.waiting() == 7);
        assert_eq!((ring.read::<u64>(3, 0), ring.read::<u64>(3, 124), ring.bytes(3, 4000, 3)), (3, 0, vec![0; 3]));
        assert_eq!(([ring.draw(7), ring.draw(7)], ring.draw(2)), ([Some(0), Some(1)], None));
        ring.release(0);
        assert!(ring.push(&[0; 128]) && ring.push(&[9]) && !ring.push(&[9]) && ring.waiting() == 7);
        assert!(!ring.push(&[0; 129]));
        assert_eq!(Ring::new(pages.as_fd(), (1 << 20) - 4096, 5, 1000).err(), Some(Errno::NOMEM));
        // Whatever a program writes there, nothing outside is touched.
        ring.number(PRODUCER).store(u32::MAX - 3, Ordering::Release);
        assert_eq!((ring.producer(), ring.read::<u64>(u32::MAX, 0)), (4, 0));
        ring.clear();
        assert_eq!(ring.waiting(), 0);
    }
}

//! Memory of the program that a device may also use once it's registered (mr.rs).
//!
//! The device may write it at any moment, which no `&[u8]` or `&mut [u8]` allows for; so bytes are copied in and out. It is
//! freed when its last handle is gone, and a registration is one.

use std::alloc::{alloc_zeroed, dealloc, Layout};
use std::ops::Range;
use std::rc::Rc;

use crate::error::{Error, Kind, Result};

/// Buffers start on a page, as the kernel pins whole pages: one that starts within a page may take a page more.
const PAGE: usize = 4096;

/// So many bytes. A clone is another handle on the same bytes.
#[derive(Clone)]
pub struct Buffer(Rc<Allocation>);

struct Allocation {
    memory: *mut u8,
    layout: Layout,
    len: usize,
}

impl Buffer {
    /// `len` bytes of zeroed memory.
    ///
    /// # Errors
    /// `Error::Content` if there isn't enough memory.
    pub fn zeroed(len: usize) -> Result<Self> {
        let no_memory =
            || Error::content(format!("no memory for {len} bytes"), "Ask for less; `free -h` tells what there is");
        // One byte at least: an allocation of none has no address.
        let layout = Layout::from_size_align(len.max(1), PAGE).map_err(|_| no_memory())?;
        // SAFETY: the layout's size is not zero.
        let memory = unsafe { alloc_zeroed(layout) };
        match memory.is_null() {
            true => Err(no_memory()),
            false => Ok(Self(Rc::new(Allocation { memory, layout, len }))),
        }
    }

    /// The address of the first byte.
    pub fn addr(&self) -> u64 {
        self.0.memory as u64
    }

    /// The length in bytes.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// True for no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// Copies `bytes` into the buffer, from the byte `offset` on. While a posted request reads it, the peer may see old bytes, new
    /// ones or a mix: wait for its completion first.
    ///
    /// # Errors
    /// `Kind::OutOfRange` if they do not fit; nothing is written then.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        let range = self.check(offset..offset.saturating_add(bytes.len()))?;
        for (at, byte) in range.zip(bytes) {
            // SAFETY: the range is in the allocation. No reference into it exists anywhere, and its handles are of one
            // thread.
            unsafe { self.0.memory.add(at).write_volatile(*byte) };
        }
        Ok(())
    }

    /// Copies these bytes out of the buffer, counted from its start. The device may have written them without any call of this program, so each is read
    /// from memory each time (volatile), even in a loop that waits for a byte to change.
    ///
    /// # Errors
    /// `Kind::OutOfRange` if some of them are outside the buffer.
    pub fn read(&self, range: Range<usize>) -> Result<Vec<u8>> {
        let range = self.check(range)?;
        // SAFETY: the range is in the allocation. The device may write meanwhile: the copy then holds old and new bytes,
        // all of them initialized.
        Ok(range.map(|at| unsafe { self.0.memory.add(at).read_volatile() }).collect())
    }

    /// The 8 bytes at `offset`, a multiple of 8, in one piece, as a number in this machine's byte
    /// order: what an atomic of the peer's may change at this moment.
    ///
    /// # Errors
    /// `Kind::OutOfRange` if they are outside the buffer, or `offset` isn't a multiple of 8.
    pub fn read_u64(&self, offset: usize) -> Result<u64> {
        let at = self.check_u64(offset)?;
        // SAFETY: 8 bytes in the allocation, which starts on a page, and so aligned.
        Ok(unsafe { self.0.memory.add(at).cast::<u64>().read_volatile() })
    }

    /// Sets them, in one piece. Atomics of the device may not be atomic against this processor: set them before.
    ///
    /// # Errors
    /// `Kind::OutOfRange` as in [`read_u64`](Self::read_u64).
    pub fn write_u64(&self, offset: usize, value: u64) -> Result<()> {
        let at = self.check_u64(offset)?;
        // SAFETY: as in read_u64, and in write.
        unsafe { self.0.memory.add(at).cast::<u64>().write_volatile(value) };
        Ok(())
    }

    fn check_u64(&self, offset: usize) -> Result<usize> {
        match offset % 8 {
            0 => Ok(self.check(offset..offset.saturating_add(8))?.start),
            _ => Err(Error::of(
                Kind::OutOfRange,
                format!("{offset} is no multiple of 8"),
                "Keep counters at multiples of 8",
            )),
        }
    }

    /// The range, if it's inside the buffer.
    fn check(&self, range: Range<usize>) -> Result<Range<usize>> {
        inside(range, self.0.len)
    }
}

/// The range, if it's inside that many bytes.
pub(crate) fn inside(range: Range<usize>, len: usize) -> Result<Range<usize>> {
    if range.start <= range.end && range.end <= len {
        return Ok(range);
    }
    let what = format!("bytes {}..{} are outside the region, which has {len} bytes", range.start, range.end);
    Err(Error::of(Kind::OutOfRange, what, "Register a longer buffer, or use less of it"))
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and this was the last handle: no device has it registered.
        unsafe { dealloc(self.memory, self.layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::reversed_empty_ranges)]
    fn nothing_outside_the_buffer() {
        assert_eq!(inside(0..16, 16), Ok(0..16));
        assert_eq!(inside(16..16, 16), Ok(16..16));
        for range in [0..17, 17..17, 5..4, usize::MAX..usize::MAX] {
            assert!(matches!(inside(range, 16), Err(Error::Content { kind: Kind::OutOfRange, .. })));
        }
    }

    #[test]
    fn all_handles_are_on_the_same_bytes() {
        let buffer = Buffer::zeroed(24).unwrap();
        let other = buffer.clone();
        buffer.write(3, b"bytes").unwrap();
        drop(buffer);
        other.write_u64(16, 1 << 40).unwrap();
        assert_eq!((other.read(2..9).unwrap().as_slice(), other.read_u64(16)), (&b"\0bytes\0"[..], Ok(1 << 40)));
        assert!(other.write(20, b"bytes").is_err() && other.read_u64(4).is_err() && other.read_u64(24).is_err());
        assert!(Buffer::zeroed(usize::MAX).is_err() && Buffer::zeroed(0).unwrap().is_empty());
    }
}

//! The memory of a program that owns a queue pair here: buffers, each with guards around it which nobody may touch.

use nic::memory::{Access, Memory, Program, Region, Sge};
use std::sync::{Arc, Mutex};

/// Bytes on both sides of a buffer, and what they are.
const GUARD: usize = 64;
const CANARY: u8 = 0xc5;
/// The protection domain of all that a program has, if nobody says otherwise.
pub const PD: u32 = 1;

/// Where no recorded program had memory: there lie the buffers whose addresses nobody tells.
const START: u64 = 0x5_0000_0000;
const APART: u64 = 1 << 24;

/// A buffer, its guards, and the address of its first byte.
#[derive(Debug)]
struct Ram {
    start: u64,
    bytes: Mutex<Vec<u8>>,
}

impl Ram {
    fn with<R>(&self, address: u64, length: usize, act: impl FnOnce(&mut [u8]) -> R) -> Option<R> {
        let at = usize::try_from(address.checked_sub(self.start - GUARD as u64)?).ok()?;
        let mut bytes = self.bytes.lock().ok()?;
        bytes.get_mut(at..at.checked_add(length)?).map(act)
    }
}

impl Program for Ram {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        self.with(address, into.len(), |bytes| into.copy_from_slice(bytes)).is_some()
    }

    fn write(&self, address: u64, bytes: &[u8]) -> bool {
        self.with(address, bytes.len(), |own| own.copy_from_slice(bytes)).is_some()
    }
}

/// Memory that has no end, and keeps nothing.
#[derive(Debug)]
struct Endless;

impl Program for Endless {
    fn read(&self, _address: u64, into: &mut [u8]) -> bool {
        into.fill(0);
        true
    }

    fn write(&self, _address: u64, _bytes: &[u8]) -> bool {
        true
    }
}

/// A region from address 0 on that takes whatever is written.
pub fn endless(length: u64, access: Access) -> Region {
    Region { program: Arc::new(Endless), start: 0, va: 0, length, access, pd: PD }
}

/// A registered buffer.
#[derive(Clone, Debug)]
pub struct Buffer {
    ram: Arc<Ram>,
    pub key: u32,
    pub address: u64,
    pub length: usize,
}

impl Buffer {
    /// Registers this many bytes with these rights, somewhere.
    pub fn new(memory: &mut Memory, number: usize, length: usize, access: Access) -> Buffer {
        Buffer::at(memory, START + number as u64 * APART, length, access, PD)
    }

    pub fn at(memory: &mut Memory, address: u64, length: usize, access: Access, pd: u32) -> Buffer {
        let mut bytes = vec![CANARY; length + 2 * GUARD];
        bytes[GUARD..GUARD + length].fill(0);
        let ram = Arc::new(Ram { start: address, bytes: Mutex::new(bytes) });
        let mut buffer = Buffer { ram, key: 0, address, length };
        // The last byte of a key is the program's to choose: another one for each buffer.
        buffer.key = memory.register(buffer.region(length as u64, access, pd), (address / APART) as u8);
        buffer
    }

    /// It as a region: with other rights, as if this many bytes were there, or in another domain.
    pub fn region(&self, length: u64, access: Access, pd: u32) -> Region {
        let (program, start) = (self.ram.clone(), self.address);
        Region { program, start, va: start, length, access, pd }
    }

    pub fn piece(&self) -> Sge {
        Sge { address: self.address, length: self.length as u32, lkey: self.key }
    }

    /// Puts bytes there, as far as there is room.
    pub fn fill(&self, address: u64, bytes: &[u8]) {
        self.ram.write(address, bytes);
    }

    /// What is there.
    pub fn bytes(&self, address: u64, length: usize) -> Vec<u8> {
        self.ram.with(address, length, |bytes| bytes.to_vec()).unwrap_or_default()
    }

    /// Whether nothing outside the buffer was written.
    pub fn guards_stand(&self) -> bool {
        let outside = |address| self.ram.with(address, GUARD, |bytes| bytes.iter().all(|byte| *byte == CANARY));
        outside(self.address - GUARD as u64) == Some(true) && outside(self.address + self.length as u64) == Some(true)
    }
}

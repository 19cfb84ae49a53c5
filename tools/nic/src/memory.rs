//! Registered memory: protection domains, keys, bounds and access rights (specification, volume 1, 10.6).
//!
//! Every byte that a packet brings or takes passes through here, and the key is checked first. The bytes themselves are in a
//! program's memory, which the device reaches through [`Program`]; with a real NIC that's DMA. Device and program may touch the
//! same byte at the same time, just as with a NIC.

mod window;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use window::Window;
pub use window::{Bind, WindowKind};

/// What a region may be used for, as the bits of `ibv_access_flags`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access(pub u32);

impl Access {
    /// Reading by this device, which is always allowed.
    pub const LOCAL_READ: Access = Access(0);
    /// Writing by this device, as it does for a receive, or with the answer to a READ.
    pub const LOCAL_WRITE: Access = Access(1);
    pub const REMOTE_WRITE: Access = Access(2);
    pub const REMOTE_READ: Access = Access(4);
    pub const REMOTE_ATOMIC: Access = Access(8);
    /// The peer may ask for global visibility. (The next bit would ask for persistence, which this device doesn't offer.)
    pub const FLUSH_GLOBAL: Access = Access(256);
    /// Memory windows may be bound to it.
    pub const MW_BIND: Access = Access(16);
    /// Requests call its first byte 0.
    pub const ZERO_BASED: Access = Access(32);

    /// Everything that a queue pair may be asked to allow. That includes rights without any effect here, such as on-demand
    /// paging, and those that a device may ignore by definition, but no bits that have no meaning. rdma_rxe does the same since
    /// Linux 6.5.
    const OF_QUEUE_PAIRS: Access = Access(0x3ff0_035f);

    /// Whether a queue pair may be asked to allow these.
    pub fn suit_queue_pairs(self) -> bool {
        Access::OF_QUEUE_PAIRS.allow(self)
    }

    /// The same for a window, which may also be zero-based.
    fn suit_windows(self) -> bool {
        Access(Access::OF_QUEUE_PAIRS.0 | Access::ZERO_BASED.0).allow(self)
    }

    /// Whether all of `needed` is among these.
    pub fn allow(self, needed: Access) -> bool {
        self.0 & needed.0 == needed.0
    }

    /// What peers may do.
    fn of_peers(self) -> Access {
        Access(self.0 & (Access::REMOTE_WRITE.0 | Access::REMOTE_READ.0 | Access::REMOTE_ATOMIC.0))
    }
}

/// The rights by name, as in `LOCAL_WRITE|REMOTE_WRITE`.
impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let all = [
            (Access::LOCAL_WRITE, "LOCAL_WRITE"),
            (Access::REMOTE_WRITE, "REMOTE_WRITE"),
            (Access::REMOTE_READ, "REMOTE_READ"),
            (Access::REMOTE_ATOMIC, "REMOTE_ATOMIC"),
            (Access::MW_BIND, "MW_BIND"),
            (Access::ZERO_BASED, "ZERO_BASED"),
            (Access::FLUSH_GLOBAL, "FLUSH_GLOBAL"),
        ];
        let granted: Vec<&str> = all.iter().filter(|(right, _)| self.allow(*right)).map(|(_, name)| *name).collect();
        f.write_str(if granted.is_empty() { "LOCAL_READ".to_owned() } else { granted.join("|") }.as_str())
    }
}

/// A piece of the program's registered memory, as an `ibv_sge` describes it.
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
    /// The window is bound for another queue pair, or under other rules.
    Window,
    /// The program has freed it, or has ended.
    Gone,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Key => "no region has this key",
            Refusal::Pd => "the region is in another protection domain",
            Refusal::Bounds => "outside the region's bounds",
            Refusal::Access => "the region does not allow it",
            Refusal::Window => "the window's type does not allow it now",
            Refusal::Gone => "the program no longer has this memory",
        })
    }
}

/// A claim on memory: who wants which bytes, and what for.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// The protection domain.
    pub pd: u32,
    /// The queue pair whose peer wants it, or None if it's the program itself.
    pub qp: Option<u32>,
    /// An rkey if a peer claims it, an lkey if the program itself does.
    pub key: u32,
    pub address: u64,
    pub length: u32,
    pub needed: Access,
}

/// The memory of a program, as the device reaches it.
pub trait Program: fmt::Debug + Send + Sync {
    /// Copies bytes out, as many as `into` has room for. False if they aren't there because the program has freed them or ended.
    fn read(&self, address: u64, into: &mut [u8]) -> bool;
    /// Copies bytes in. False if that memory isn't there.
    fn write(&self, address: u64, bytes: &[u8]) -> bool;
}

/// What a program registers.
#[derive(Clone, Debug)]
pub struct Region {
    pub program: Arc<dyn Program>,
    /// Where it begins in the program's memory.
    pub start: u64,
    /// The address by which requests call its first byte.
    pub va: u64,
    pub length: u64,
    pub access: Access,
    /// The protection domain.
    pub pd: u32,
}

/// All regions of the device.
#[derive(Debug, Default)]
pub struct Memory {
    /// The regions and their keys, by the upper 24 bits of the key.
    regions: BTreeMap<u32, (u32, Region)>,
    /// Memory windows, by the upper 24 bits of their keys. One that's bound is among the regions as well.
    windows: BTreeMap<u32, Window>,
    last_index: u32,
    /// Whether a region's lkey and rkey are different numbers, as on some NICs.
    pub has_two_keys: bool,
}

impl Memory {
    /// Registers memory and returns its key. That's an index, which is only used again after all others, and eight bits that
    /// can't be guessed from it.
    pub fn register(&mut self, region: Region, random: u8) -> u32 {
        let key = self.next_index() << 8 | u32::from(random);
        self.regions.insert(key >> 8, (key, region));
        key
    }

    fn next_index(&mut self) -> u32 {
        loop {
            self.last_index = self.last_index.wrapping_add(1) & 0xff_ffff;
            if !self.regions.contains_key(&self.last_index) && !self.windows.contains_key(&self.last_index) {
                return self.last_index;
            }
        }
    }

    /// The lkey of the region with this rkey, and the other way round.
    pub fn other_key(&self, key: u32) -> u32 {
        /// One of the bits that can't be guessed.
        const OTHER: u32 = 0x80;
        if self.has_two_keys {
            key ^ OTHER
        } else {
            key
        }
    }

    /// The region with this rkey.
    pub fn get(&self, key: u32) -> Option<&Region> {
        self.regions.get(&(key >> 8)).filter(|(own, _)| *own == key).map(|(_, region)| region)
    }

    /// Replaces the region behind a key, which is re-registering (11.2). False if there's none with this key.
    pub fn replace(&mut self, key: u32, region: Region) -> bool {
        self.get(key).is_some() && self.regions.insert(key >> 8, (key, region)).is_some()
    }

    /// Ends a registration, so that nobody touches the memory from now on. False if there's no region with this key, or if a
    /// window is bound to it.
    pub fn deregister(&mut self, key: u32) -> bool {
        self.get(key).is_some() && !self.bears_window(key) && self.regions.remove(&(key >> 8)).is_some()
    }

    pub fn is_used(&self, pd: u32) -> bool {
        self.regions.values().any(|(_, region)| region.pd == pd) || self.windows.values().any(|window| window.pd == pd)
    }

    /// How many regions of a domain allow this.
    pub fn count(&self, pd: u32, needed: Access) -> usize {
        self.regions.values().filter(|(_, region)| region.pd == pd && region.access.allow(needed)).count()
    }

    /// Finds out whether bytes can be written into a list of pieces, without touching anything.
    ///
    /// # Errors
    /// A piece is out of reach.
    pub fn check_room(&self, pd: u32, sge: &[Sge]) -> Result<(), Refusal> {
        cut(pd, sge, 0, u32::MAX, Access::LOCAL_WRITE).into_iter().try_for_each(|claim| self.check(claim))
    }

    /// Checks a claim in the order of the specification (key, domain, access, bounds), without touching anything.
    ///
    /// # Errors
    /// Why the claim is refused. A claim of no bytes is always granted (9.7.4.1.5).
    pub fn check(&self, claim: Claim) -> Result<(), Refusal> {
        self.reach(claim).map(|_| ())
    }

    /// The region that a claim is about, and where its first byte lies in the program's memory. None if it claims no byte.
    fn reach(&self, claim: Claim) -> Result<Option<(&dyn Program, u64)>, Refusal> {
        if claim.length == 0 {
            return Ok(None);
        }
        let key = if claim.qp.is_none() { self.other_key(claim.key) } else { claim.key };
        let region = self.get(key).ok_or(Refusal::Key)?;
        if region.pd != claim.pd {
            return Err(Refusal::Pd);
        }
        if self.windows.get(&(claim.key >> 8)).is_some_and(|window| !window.serves(claim.qp)) {
            return Err(Refusal::Window);
        }
        if !region.access.allow(claim.needed) {
            return Err(Refusal::Access);
        }
        let offset = claim.address.checked_sub(region.va).ok_or(Refusal::Bounds)?;
        if offset.checked_add(claim.length.into()).map_or(true, |end| end > region.length) {
            return Err(Refusal::Bounds);
        }
        Ok(Some((&*region.program, region.start.wrapping_add(offset))))
    }

    /// Copies bytes out, as many as `into` has room for, which replaces the claim's length.
    fn read_into(&self, claim: Claim, into: &mut [u8]) -> Result<(), Refusal> {
        match self.reach(Claim { length: into.len() as u32, ..claim })? {
            Some((program, at)) if !program.read(at, into) => Err(Refusal::Gone),
            _ => Ok(()),
        }
    }

    /// Copies bytes out.
    pub fn read(&self, claim: Claim) -> Result<Vec<u8>, Refusal> {
        self.check(claim)?;
        let mut bytes = vec![0; claim.length as usize];
        self.read_into(claim, &mut bytes).map(|()| bytes)
    }

    /// Copies bytes in. Their number replaces the claim's length.
    pub fn write(&self, claim: Claim, bytes: &[u8]) -> Result<(), Refusal> {
        match self.reach(Claim { length: bytes.len() as u32, ..claim })? {
            Some((program, at)) if !program.write(at, bytes) => Err(Refusal::Gone),
            _ => Ok(()),
        }
    }

    /// Changes eight bytes and returns what was there. `change` gets the old number and returns the new one, or None to leave it.
    /// Nothing else that the device does can come in between, but a processor that runs the program can.
    pub fn update(&self, claim: Claim, change: impl Fn(u64) -> Option<u64>) -> Result<u64, Refusal> {
        let mut bytes = [0; 8];
        self.read_into(claim, &mut bytes)?;
        let old = u64::from_ne_bytes(bytes);
        if let Some(new) = change(old) {
            self.write(claim, &new.to_ne_bytes())?;
        }
        Ok(old)
    }

    /// Copies `length` bytes, beginning at `offset`, out of a list of pieces taken as one.
    ///
    /// # Errors
    /// A piece is out of reach, or the list is too short: [`Refusal::Bounds`].
    pub fn gather(&self, pd: u32, sge: &[Sge], offset: u32, length: u32) -> Result<Vec<u8>, Refusal> {
        let mut bytes = vec![0; length as usize];
        let mut rest = bytes.as_mut_slice();
        for claim in cut(pd, sge, offset, length, Access::LOCAL_READ) {
            let (now, later) = rest.split_at_mut(claim.length as usize);
            self.read_into(claim, now)?;
            rest = later;
        }
        let is_full = rest.is_empty();
        is_full.then_some(bytes).ok_or(Refusal::Bounds)
    }

    /// Copies bytes, beginning at `offset`, into a list of pieces taken as one. The caller has made sure that they fit.
    pub fn scatter(&self, pd: u32, sge: &[Sge], offset: u32, mut bytes: &[u8]) -> Result<(), Refusal> {
        for claim in cut(pd, sge, offset, bytes.len() as u32, Access::LOCAL_WRITE) {
            let (now, later) = bytes.split_at(claim.length as usize);
            self.write(claim, now)?;
            bytes = later;
        }
        Ok(())
    }
}

/// The pieces of a list that hold the bytes from `offset` on, as claims.
fn cut(pd: u32, sge: &[Sge], offset: u32, length: u32, needed: Access) -> Vec<Claim> {
    let (mut skip, mut left) = (offset, length);
    let mut claims = Vec::new();
    for piece in sge {
        let here = piece.length.saturating_sub(skip).min(left);
        if here > 0 {
            let address = piece.address.wrapping_add(skip.into());
            claims.push(Claim { pd, qp: None, key: piece.lkey, address, length: here, needed });
        }
        skip = skip.saturating_sub(piece.length);
        left -= here;
    }
    claims
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// A program that has seven bytes, beginning at this address, and no others.
    const START: u64 = 0x7000;

    #[derive(Debug)]
    struct Seven(Mutex<[u8; 7]>);

    impl Program for Seven {
        fn read(&self, address: u64, into: &mut [u8]) -> bool {
            let at = (address - START) as usize;
            let (bytes, end) = (self.0.lock().unwrap(), at + into.len());
            bytes.get(at..end).map(|bytes| into.copy_from_slice(bytes)).is_some()
        }

        fn write(&self, address: u64, bytes: &[u8]) -> bool {
            let at = (address - START) as usize;
            let mut own = self.0.lock().unwrap();
            own.get_mut(at..at + bytes.len()).map(|own| own.copy_from_slice(bytes)).is_some()
        }
    }

    fn region(length: u64, access: Access) -> Region {
        let program = Arc::new(Seven(Mutex::new([1, 2, 3, 0, 4, 5, 6])));
        Region { program, start: START, va: 1 << 40, length, access, pd: 1 }
    }

    #[test]
    fn nothing_outside_a_region_is_in_reach() {
        let mut memory = Memory::default();
        let key = memory.register(region(8, Access::REMOTE_READ), 0xab);
        let start = 1 << 40;
        let check =
            |key, address, length, needed| memory.check(Claim { pd: 1, qp: None, key, address, length, needed });
        assert_eq!(check(key, start, 8, Access::REMOTE_READ), Ok(()));
        assert_eq!(check(key, start + 8, 0, Access::REMOTE_READ), Ok(()));
        assert_eq!(check(key ^ 1, start, 1, Access::REMOTE_READ), Err(Refusal::Key));
        assert_eq!(check(key, start, 1, Access::REMOTE_WRITE), Err(Refusal::Access));
        for (address, length) in [(start - 1, 1), (start, 9), (start + 8, 1), (u64::MAX, 2), (0, u32::MAX), (START, 1)]
        {
            assert_eq!(check(key, address, length, Access::REMOTE_READ), Err(Refusal::Bounds));
        }
        let claim = Claim { pd: 2, qp: None, key, address: start, length: 1, needed: Access::REMOTE_READ };
        assert_eq!(memory.check(claim), Err(Refusal::Pd));
        assert_eq!(memory.read(Claim { pd: 1, length: 7, ..claim }), Ok(vec![1, 2, 3, 0, 4, 5, 6]));
        assert_eq!(memory.read(Claim { pd: 1, length: 8, ..claim }), Err(Refusal::Gone));
        assert!(memory.replace(key, region(1, Access::REMOTE_READ)) && !memory.replace(key ^ 1, region(1, Access(0))));
        assert_eq!(memory.read(Claim { pd: 1, length: 7, ..claim }), Err(Refusal::Bounds));
        assert!(memory.deregister(key) && !memory.deregister(key));
        assert_eq!(memory.check(Claim { pd: 1, ..claim }), Err(Refusal::Key));
    }

    #[test]
    fn pieces_are_one_stretch_of_bytes() {
        let mut memory = Memory::default();
        let lkey = memory.register(region(7, Access::LOCAL_WRITE), 0);
        let piece = |at: u64| Sge { address: at + (1 << 40), length: 3, lkey };
        let pieces = [piece(0), Sge::default(), piece(4)];
        assert_eq!(memory.gather(1, &pieces, 2, 3), Ok(vec![3, 4, 5]));
        assert_eq!(memory.gather(1, &pieces, 2, 5), Err(Refusal::Bounds));
        memory.scatter(1, &pieces, 1, &[9, 9, 9]).unwrap();
        assert_eq!(memory.gather(1, &pieces, 0, 6), Ok(vec![1, 9, 9, 9, 5, 6]));
    }

    #[test]
    fn a_region_with_two_keys_is_opened_by_each_for_its_own_side_alone() {
        let mut memory = Memory { has_two_keys: true, ..Memory::default() };
        let rkey = memory.register(region(7, Access(Access::REMOTE_READ.0 | Access::MW_BIND.0)), 0x12);
        let lkey = memory.other_key(rkey);
        assert!(lkey != rkey && memory.other_key(lkey) == rkey);
        let check =
            |qp, key| memory.check(Claim { pd: 1, qp, key, address: 1 << 40, length: 7, needed: Access::LOCAL_READ });
        assert_eq!([check(None, lkey), check(Some(17), rkey)], [Ok(()), Ok(())]);
        assert_eq!([check(None, rkey), check(Some(17), lkey)], [Err(Refusal::Key), Err(Refusal::Key)]);
        let window = memory.allocate_window(WindowKind::One, 1, 0);
        let bind = Bind { window, next: 1, region: lkey, address: 1 << 40, length: 7, access: Access::REMOTE_READ };
        assert_eq!(memory.bind(Bind { region: rkey, ..bind }, 17, 1), Err(Refusal::Key));
        assert_eq!(memory.bind(bind, 17, 1), Ok(()));
        assert!(memory.bears_window(rkey) && !memory.deregister(rkey));
    }
}

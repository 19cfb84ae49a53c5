//! Keys and addresses are new in every run. What must be the same is how they hang together: whatever is one key in the
//! reference is one key in yours, and places keep their distance from the start of their buffer.

use crate::track::Side;
use std::collections::HashMap;

/// Which key of yours stands for which of the reference, as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    to_reference: HashMap<(Side, u32), u32>,
    to_mine: HashMap<(Side, u32), u32>,
    /// For each key of yours, address in yours minus address in the reference.
    shifts: HashMap<(Side, u32), u64>,
}

impl Symbols {
    /// Takes two keys to memory of `owner` for the same; false if what came before contradicts.
    pub(super) fn same_key(&mut self, owner: Side, mine: u32, reference: u32) -> bool {
        let one = *self.to_reference.entry((owner, mine)).or_insert(reference);
        let other = *self.to_mine.entry((owner, reference)).or_insert(mine);
        one == reference && other == mine
    }

    /// The key of yours that stands for one of the reference.
    pub(super) fn mine(&self, owner: Side, reference: u32) -> Option<u32> {
        self.to_mine.get(&(owner, reference)).copied()
    }

    /// Takes two addresses for the same place in the buffer that `key` opens. Else by how many bytes yours is off.
    pub(super) fn same_place(&mut self, owner: Side, key: u32, mine: u64, reference: u64) -> Result<(), i64> {
        let shift = mine.wrapping_sub(reference);
        let known = *self.shifts.entry((owner, key)).or_insert(shift);
        match shift.wrapping_sub(known) as i64 {
            0 => Ok(()),
            off => Err(off),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_renamed_one_to_one() {
        let mut symbols = Symbols::default();
        assert!(symbols.same_key(Side::Server, 7, 1));
        assert!(symbols.same_key(Side::Server, 7, 1));
        assert!(!symbols.same_key(Side::Server, 7, 2), "one key of yours for two of the reference");
        assert!(!symbols.same_key(Side::Server, 8, 1), "two keys of yours for one of the reference");
        assert!(symbols.same_key(Side::Client, 8, 1), "the other machine's keys are others");
        assert_eq!(symbols.mine(Side::Server, 1), Some(7));
    }

    #[test]
    fn places_keep_their_distance() {
        let mut symbols = Symbols::default();
        assert_eq!(symbols.same_place(Side::Server, 7, 0x1000, 0x9000), Ok(()));
        assert_eq!(symbols.same_place(Side::Server, 7, 0x1040, 0x9040), Ok(()));
        assert_eq!(symbols.same_place(Side::Server, 7, 0x1048, 0x9040), Err(8));
        assert_eq!(symbols.same_place(Side::Server, 7, 0x1000, 0x9008), Err(-8));
    }
}

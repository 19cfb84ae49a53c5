//! Keys and addresses are new in every run. What must be the same is how they hang together: whatever is one key in the
//! reference is one key in yours, and places keep their distance from the start of their buffer.

use roce::track::Side;
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

    /// By how many bytes two addresses are not the same place in the buffer that `key` opens.
    pub(super) fn off(&mut self, owner: Side, key: u32, mine: u64, reference: u64) -> i64 {
        let shift = mine.wrapping_sub(reference);
        let known = *self.shifts.entry((owner, key)).or_insert(shift);
        shift.wrapping_sub(known) as i64
    }
}

/// A message that tells the peer where memory is: address, key and length, 16 bytes big-endian, as rping and the lessons
/// send them; lessons 06 and 07 put a tag of four bytes in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub address: u64,
    pub key: u32,
    /// In bytes.
    pub length: u32,
}

const LENGTH: usize = 16;
const TAG: [u8; 4] = [1, 0, 0, 0];

impl Descriptor {
    /// Takes a whole SEND for a descriptor, if it can be one.
    pub(super) fn of_message(payload: &[u8]) -> Option<Descriptor> {
        let tagged = payload.strip_prefix(&TAG).filter(|rest| rest.len() == LENGTH);
        Descriptor::read(tagged.unwrap_or(payload).try_into().ok()?)
    }

    /// The descriptors that private data begin with, and what stands behind them. Private data are padded with zeroes.
    pub(super) fn of_private_data(data: &[u8]) -> (Vec<Descriptor>, &[u8]) {
        let descriptors: Vec<Descriptor> =
            data.chunks_exact(LENGTH).map_while(|chunk| Descriptor::read(chunk.try_into().ok()?)).collect();
        let rest = &data[LENGTH * descriptors.len()..];
        (descriptors, &rest[..rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)])
    }

    fn read(bytes: [u8; LENGTH]) -> Option<Descriptor> {
        let all = u128::from_be_bytes(bytes);
        let (address, key, length) = ((all >> 64) as u64, (all >> 32) as u32, all as u32);
        // Text is no address: programs have at most 57 bits of them, and nothing in the first page.
        let plausible = (0x1000..1 << 57).contains(&address) && (1..=1 << 30).contains(&length);
        plausible.then_some(Descriptor { address, key, length })
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
        assert_eq!(symbols.off(Side::Server, 7, 0x1000, 0x9000), 0);
        assert_eq!(symbols.off(Side::Server, 7, 0x1040, 0x9040), 0);
        assert_eq!(symbols.off(Side::Server, 7, 0x1048, 0x9040), 8);
        assert_eq!(symbols.off(Side::Server, 7, 0x1000, 0x9008), -8);
    }

    const BYTES: [u8; 16] = [0, 0, 0x55, 0xab, 0x29, 0x39, 0, 0, 0, 0, 2, 0xc9, 0, 0, 0, 64];
    const HERE: Descriptor = Descriptor { address: 0x55ab_2939_0000, key: 0x2c9, length: 64 };

    #[test]
    fn with_and_without_a_tag_and_padded() {
        assert_eq!(Descriptor::of_message(&BYTES), Some(HERE));
        assert_eq!(Descriptor::of_message(&[&TAG[..], &BYTES].concat()), Some(HERE));
        assert_eq!(Descriptor::of_private_data(&[&BYTES[..], &[0; 180]].concat()), (vec![HERE], &[][..]));
        assert_eq!(Descriptor::of_private_data(&[&BYTES[..], &BYTES, &[3, 0]].concat()), (vec![HERE; 2], &[3][..]));
    }

    #[test]
    fn other_messages_are_left_alone() {
        assert_eq!(Descriptor::of_message(b"sixteen letters!"), None);
        assert_eq!(Descriptor::of_message(&[0; 16]), None);
        assert_eq!(Descriptor::of_message(&BYTES[..15]), None);
        assert_eq!(Descriptor::of_message(&[&[2, 0, 0, 0][..], &BYTES].concat()), None);
        assert_eq!(
            Descriptor::of_private_data(b"sixteen letters, or more"),
            (vec![], &b"sixteen letters, or more"[..])
        );
        assert_eq!(Descriptor::of_private_data(&[]), (vec![], &[][..]));
    }
}

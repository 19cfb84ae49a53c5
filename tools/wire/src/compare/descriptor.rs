//! What a program says about its memory.

/// A message that tells the peer where memory is: address, key and length, 16 bytes big-endian, as rping and the lessons
/// send them; lessons 06 and 07 put a tag of four bytes in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub address: u64,
    pub key: u32,
    /// In bytes.
    pub length: u32,
}

impl Descriptor {
    const LENGTH: usize = 16;
    const TAG: [u8; 4] = [1, 0, 0, 0];

    /// Takes a whole SEND for a descriptor, if it can be one.
    pub(super) fn of_message(payload: &[u8]) -> Option<Descriptor> {
        let tagged = payload.strip_prefix(&Self::TAG).filter(|rest| rest.len() == Self::LENGTH);
        Descriptor::read(tagged.unwrap_or(payload))
    }

    /// The descriptors that private data begin with, and what comes after them. Private data are padded with zeroes.
    pub(super) fn of_private_data(data: &[u8]) -> (Vec<Descriptor>, &[u8]) {
        let descriptors: Vec<Descriptor> = data.chunks(Self::LENGTH).map_while(Descriptor::read).collect();
        let rest = &data[Self::LENGTH * descriptors.len()..];
        (descriptors, &rest[..rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)])
    }

    fn read(bytes: &[u8]) -> Option<Descriptor> {
        let all = u128::from_be_bytes(bytes.try_into().ok()?);
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
    fn a_descriptor_is_told_from_other_messages() {
        let bytes = [0, 0, 0x55, 0xab, 0x29, 0x39, 0, 0, 0, 0, 2, 0xc9, 0, 0, 0, 64];
        let here = Descriptor { address: 0x55ab_2939_0000, key: 0x2c9, length: 64 };
        assert_eq!(Descriptor::of_message(&[&Descriptor::TAG[..], &bytes].concat()), Some(here));
        for other in [b"sixteen letters!", &[0; 16], &bytes[..15], &[&[2, 0, 0, 0][..], &bytes].concat()] {
            assert_eq!(Descriptor::of_message(other), None, "{other:?}");
        }
        let padded = [&bytes[..], &bytes, &[3, 0]].concat();
        assert_eq!(Descriptor::of_private_data(&padded), (vec![here; 2], &[3][..]));
    }
}

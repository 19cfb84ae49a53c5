//! Messages that tell the peer where memory is: address, key and length, 16 bytes big-endian, as rping and the lessons
//! send them; lessons 06 and 07 put a tag of four bytes in front. Address and key differ from run to run, so such a
//! message must be taken apart before it is compared.

/// A place in the sender's memory.
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
        match payload.strip_prefix(&TAG) {
            Some(rest) if rest.len() == LENGTH => Descriptor::read(rest),
            _ if payload.len() == LENGTH => Descriptor::read(payload),
            _ => None,
        }
    }

    /// Takes private data, which is padded with zeroes, for a descriptor, if it can be one.
    pub(super) fn of_private_data(data: &[u8]) -> Option<Descriptor> {
        let padding = data.get(LENGTH..)?;
        padding.iter().all(|byte| *byte == 0).then(|| Descriptor::read(data)).flatten()
    }

    fn read(bytes: &[u8]) -> Option<Descriptor> {
        let number = |from: usize, to: usize| {
            bytes.get(from..to).map(|field| field.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
        };
        let (address, key, length) = (number(0, 8)?, number(8, 12)? as u32, number(12, 16)? as u32);
        // Text is no address: programs have at most 57 bits of them, and nothing in the first page.
        let plausible = (0x1000..1 << 57).contains(&address) && (1..=1 << 30).contains(&length);
        plausible.then_some(Descriptor { address, key, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: [u8; 16] = [0, 0, 0x55, 0xab, 0x29, 0x39, 0, 0, 0, 0, 2, 0xc9, 0, 0, 0, 64];
    const HERE: Descriptor = Descriptor { address: 0x55ab_2939_0000, key: 0x2c9, length: 64 };

    #[test]
    fn with_and_without_a_tag_and_padded() {
        assert_eq!(Descriptor::of_message(&BYTES), Some(HERE));
        assert_eq!(Descriptor::of_message(&[&TAG[..], &BYTES].concat()), Some(HERE));
        assert_eq!(Descriptor::of_private_data(&[&BYTES[..], &[0; 180]].concat()), Some(HERE));
    }

    #[test]
    fn other_messages_are_left_alone() {
        assert_eq!(Descriptor::of_message(b"sixteen letters!"), None);
        assert_eq!(Descriptor::of_message(&[0; 16]), None);
        assert_eq!(Descriptor::of_message(&BYTES[..15]), None);
        assert_eq!(Descriptor::of_message(&[&[2, 0, 0, 0][..], &BYTES].concat()), None);
        assert_eq!(Descriptor::of_private_data(&[&BYTES[..], &[1]].concat()), None);
        assert_eq!(Descriptor::of_private_data(&[]), None);
    }
}

//! The invariant CRC: the last four bytes of a packet protect everything that no router may change.
//!
//! It is the CRC-32 that Ethernet and zip use, over eight bytes of ones (where InfiniBand would have its
//! local routing header), then the packet from the IP header up to the CRC itself. Fields that change on
//! the way count as ones (IBTA 7.8.1, annex A17.3.3). Unlike everything else it is sent little-endian.

use crc32fast::Hasher;

/// Length of the ICRC in bytes.
pub const LENGTH: usize = 4;

/// What checking a packet's ICRC gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Icrc {
    /// It fits the packet.
    Ok,
    /// It does not: the packet was damaged, or changed after the CRC was made.
    Bad,
    /// The recording lacks the end of the packet, so nobody can tell.
    Cut,
}

impl Icrc {
    pub fn name(self) -> &'static str {
        match self {
            Icrc::Ok => "ok",
            Icrc::Bad => "bad",
            Icrc::Cut => "cut",
        }
    }
}

/// InfiniBand has a local routing header here; RoCE counts as many bytes of ones instead.
const ONES: usize = 8;
/// The UDP header and the BTH. Like the IP header they have fields that change on the way.
const TRANSPORT: usize = 8 + 12;

/// The ICRC of a packet: `ip` runs from the IP header to the last byte before the ICRC, and `udp` is where
/// the UDP header begins in it. None if `ip` ends before the end of the BTH.
pub fn compute(ip: &[u8], udp: usize) -> Option<u32> {
    // Headers are copied, because what changes on the way is replaced by ones. The rest of the packet is read where it is.
    let (mut v4, mut v6) = ([0xff; ONES + 20 + TRANSPORT], [0xff; ONES + 40 + TRANSPORT]);
    let transport = ip.get(udp..udp + TRANSPORT);
    let (head, size) = if ip.first()? >> 4 == 4 {
        v4[ONES..][..20].copy_from_slice(ip.get(..20)?);
        v4[ONES + 20..].copy_from_slice(transport?);
        v4[ONES + 1] = 0xff; // type of service
        v4[ONES + 8] = 0xff; // time to live
        v4[ONES + 10..ONES + 12].fill(0xff); // header checksum
        (v4.as_mut_slice(), 20)
    } else {
        v6[ONES..][..40].copy_from_slice(ip.get(..40)?);
        v6[ONES + 40..].copy_from_slice(transport?);
        v6[ONES] |= 0x0f; // traffic class and flow label
        v6[ONES + 1..ONES + 4].fill(0xff);
        v6[ONES + 7] = 0xff; // hop limit
        (v6.as_mut_slice(), 40)
    };
    let transport = &mut head[ONES + size..];
    transport[6..8].fill(0xff); // UDP checksum
    transport[8 + 4] = 0xff; // FECN, BECN, reserved
    let mut sum = Hasher::new();
    match ip.get(size..udp)? {
        // One long part is summed faster than several short ones.
        [] => sum.update(head),
        options => {
            let (before, transport) = head.split_at(ONES + size);
            [before, options, transport].iter().for_each(|part| sum.update(part));
        }
    }
    sum.update(&ip[udp + TRANSPORT..]);
    Some(sum.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: CRC-32 a bit at a time, over ones in front, and ones in each field that may change on the way.
    fn by_definition(ip: &[u8], udp: usize) -> u32 {
        let mut bytes = ip.to_vec();
        match bytes[0] >> 4 {
            4 => [1, 8, 10, 11].iter().for_each(|&at| bytes[at] = 0xff),
            _ => {
                bytes[0] = 0x6f;
                [1, 2, 3, 7].iter().for_each(|&at| bytes[at] = 0xff);
            }
        }
        [udp + 6, udp + 7, udp + 12].iter().for_each(|&at| bytes[at] = 0xff);
        let mut register = u32::MAX;
        for byte in [0xff; 8].into_iter().chain(bytes) {
            register ^= u32::from(byte);
            for _ in 0..8 {
                // Each bit that falls out at the low end folds the polynomial in.
                register = register >> 1 ^ if register & 1 == 1 { 0xedb8_8320 } else { 0 };
            }
        }
        !register
    }

    #[test]
    fn equals_the_definition_for_both_ip_versions_and_any_length() {
        let bytes: Vec<u8> = (0..400u32).map(|i| (i * 7 + 3) as u8).collect();
        for (first, udp) in [(0x45, 20), (0x47, 28), (0x60, 40), (0x6a, 56)] {
            for length in 0..bytes.len() {
                let mut ip = bytes[..length].to_vec();
                ip.iter_mut().take(1).for_each(|byte| *byte = first);
                let expected = (length >= udp + 20).then(|| by_definition(&ip, udp));
                assert_eq!(compute(&ip, udp), expected, "{first:x} {length}");
            }
        }
    }
}

//! The pause frame of priority-based flow control (PFC): "send me nothing of this priority for so long" (IEEE 802.1Q-2018, 36.2;
//! its form is IEEE 802.3, annex 31D).
//!
//! It is a MAC control frame, and goes no further than the link: from a switch to its neighbour there, or the other way.
//! Multi-byte fields are big-endian.

/// The multicast address of MAC control frames. No bridge forwards it.
const TARGET: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 1];
/// The EtherType of MAC control.
const MAC_CONTROL: [u8; 2] = [0x88, 0x08];
/// The operation code; 0x0001 would be the older pause, which stops all priorities.
const PFC: [u8; 2] = [0x01, 0x01];
const KIND: usize = 12;
const OPCODE: usize = 14;
const ENABLED: usize = 16;
const TIMES: usize = 18;
/// The shortest Ethernet frame, without its checksum.
const LENGTH: usize = 60;

/// Bit times in a quantum, at whatever rate the link runs.
pub const QUANTUM: u64 = 512;

/// What a pause frame says of each priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// For how many quanta to be silent from now on, 0 for none; None if this priority is not spoken of.
    pub quanta: [Option<u16>; 8],
}

impl Frame {
    /// One about a single priority, from 0 to 7. Of a higher one it says nothing.
    pub fn about(priority: u8, quanta: u16) -> Frame {
        let mut frame = Frame::default();
        frame.quanta.iter_mut().skip(priority.into()).take(1).for_each(|place| *place = Some(quanta));
        frame
    }

    /// The Ethernet frame without its checksum.
    pub fn encode(&self, source: [u8; 6]) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..6].copy_from_slice(&TARGET);
        bytes[6..KIND].copy_from_slice(&source);
        bytes[KIND..OPCODE].copy_from_slice(&MAC_CONTROL);
        bytes[OPCODE..ENABLED].copy_from_slice(&PFC);
        for (priority, quanta) in self.quanta.iter().enumerate() {
            if let Some(quanta) = quanta {
                bytes[ENABLED + 1] |= 1 << priority;
                bytes[TIMES + 2 * priority..][..2].copy_from_slice(&quanta.to_be_bytes());
            }
        }
        bytes
    }

    /// Reads an Ethernet frame; None if it is no pause frame of PFC, or is cut.
    pub fn decode(frame: &[u8]) -> Option<Frame> {
        let is_pause = frame.get(KIND..OPCODE)? == MAC_CONTROL && frame.get(OPCODE..ENABLED)? == PFC;
        let (enabled, times) = (frame.get(ENABLED + 1)?, frame.get(TIMES..TIMES + 16)?);
        let mut decoded = Frame::default();
        for (priority, (place, time)) in decoded.quanta.iter_mut().zip(times.chunks(2)).enumerate() {
            *place = (enabled >> priority & 1 == 1).then(|| u16::from_be_bytes([time[0], time[1]]));
        }
        is_pause.then_some(decoded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded_and_nothing_else_is() {
        let frame = Frame { quanta: [None, Some(0), None, Some(0xffff), None, None, None, Some(7)] };
        let bytes = frame.encode([2, 0, 127, 0, 0, 3]);
        assert_eq!(bytes[ENABLED..TIMES], [0, 0b1000_1010]);
        assert_eq!(Frame::decode(&bytes), Some(frame));
        for end in 0..TIMES + 16 {
            assert_eq!(Frame::decode(&bytes[..end]), None, "cut at {end}");
        }
        for at in KIND..ENABLED {
            let mut other = bytes;
            other[at] ^= 1;
            assert_eq!(Frame::decode(&other), None, "another byte {at}");
        }
        assert_eq!(Frame::about(3, 9).quanta[3], Some(9));
    }
}

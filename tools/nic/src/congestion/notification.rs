//! The notification point: a NIC that gets marked packets tells their sender (DCQCN, section 3.1; the packet: annex A17.9.3).
//!
//! It doesn't do so for each mark, which would be a packet back for each one that comes. It reports the first mark at once and
//! then stays silent for [`Parameters::interval`]. Each connection counts by itself.

use super::Parameters;
use crate::packet::{code, Packet};
use crate::time::Time;

/// The traffic class of CNPs: DSCP 48, and no ECN. Switches that give this class a queue of its own send CNPs past everything
/// else that waits on their way back. It's the default of Mellanox's NICs (`CNP_DSCP_P1`, mlxconfig).
const CLASS: u8 = 48 << 2;

#[derive(Debug, Default)]
pub struct Notification {
    /// Until when we stay silent.
    silent_until: Option<Time>,
}

impl Notification {
    /// A marked packet has come. Returns whether to tell its sender.
    pub fn marked(&mut self, parameters: &Parameters, now: Time) -> bool {
        let tells = self.silent_until.map_or(true, |until| until <= now);
        if tells {
            self.silent_until = Some(now + parameters.interval);
        }
        tells
    }
}

/// A congestion notification packet for this queue pair of the sender's. It has PSN 0, because it has no place in any sequence
/// and gets no answer.
pub fn packet(dest_qp: u32) -> Packet {
    Packet { opcode: code::CNP, class: CLASS, slow_down: true, dest_qp, ..Packet::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn it_tells_at_once_and_then_once_in_an_interval() {
        let (mut point, parameters, begin) = (Notification::default(), Parameters::default(), Time::START);
        let tells = (0..200).filter(|us| point.marked(&parameters, begin + Duration::from_micros(*us)));
        assert_eq!(tells.collect::<Vec<_>>(), [0, 50, 100, 150]);
    }

    /// Opcode, BECN, a PSN of zero, and 16 bytes of zeroes: annex A17.9.3.
    #[test]
    fn a_cnp_has_the_form_of_the_annex() {
        let bytes = packet(0x12_3456).encode();
        assert_eq!(bytes[..12], [0x81, 0, 0xff, 0xff, 0x40, 0x12, 0x34, 0x56, 0, 0, 0, 0]);
        assert_eq!(bytes[12..], [0; 16]);
    }
}

//! Obeying priority-based flow control: a priority stops sending when the switch at the other end of the link says so (IEEE
//! 802.1Q-2018, clause 36).
//!
//! A pause runs out by itself, and a frame with zero quanta ends it at once. Which priority a packet has is a matter of
//! agreement. Here it's the upper three bits of the packet's DSCP, the default of NICs and switches that go by DSCP (`mlnx_qos
//! --trust dscp`).

use super::time;
use crate::time::Time;
use roce::pause::{Frame, QUANTUM};

#[derive(Clone, Debug, Default)]
pub struct Pause {
    until: [Option<Time>; 8],
}

impl Pause {
    /// A pause frame has come, on a link of this rate in bit/s.
    pub fn heard(&mut self, frame: &Frame, rate: u64, now: Time) {
        for (until, quanta) in self.until.iter_mut().zip(frame.quanta) {
            if let Some(quanta) = quanta {
                *until = Some(now + time(u64::from(quanta) * QUANTUM / 8, rate));
            }
        }
    }

    /// Until when this priority must not send, or None if it may.
    pub fn until(&self, priority: u8, now: Time) -> Option<Time> {
        self.until.get(usize::from(priority)).copied().flatten().filter(|until| *until > now)
    }
}

/// The priority of a packet with this traffic class.
pub fn priority(class: u8) -> u8 {
    class >> 5
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn one_priority_stands_still_until_its_time_or_a_word() {
        let (mut pause, begin) = (Pause::default(), Time::START);
        // 1000 quanta of 512 bits at 1 Gbit/s are 512 µs.
        pause.heard(&Frame::about(3, 1000), 1_000_000_000, begin);
        assert_eq!(pause.until(3, begin), Some(begin + Duration::from_micros(512)));
        assert_eq!(pause.until(4, begin), None);
        assert_eq!(pause.until(3, begin + Duration::from_micros(512)), None);
        pause.heard(&Frame::about(3, 0), 1_000_000_000, begin + Duration::from_micros(9));
        assert_eq!(pause.until(3, begin + Duration::from_micros(10)), None);
        assert_eq!(priority(26 << 2), 3, "DSCP 26");
    }
}

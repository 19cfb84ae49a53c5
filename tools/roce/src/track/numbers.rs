//! Sequence numbers, counted from the first instead of modulo 2^24.

/// So far apart are packets that are on their way at the same time, at the most.
pub(super) const WINDOW: i64 = 1 << 16;

/// So many packets of a queue pair may have been on their way when a capture began, at the most.
const BEFORE: i64 = 1 << 10;

/// The requests of one side.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    /// PSN of the first; None before it is announced or seen.
    pub first: Option<u32>,
    /// The newest, counted from the first; None before the first.
    pub newest: Option<i64>,
    /// If that's a READ, how many bytes it asks for.
    pub read: Option<u32>,
    /// The newest that the peer has answered.
    pub answered: Option<i64>,
}

/// How many numbers a READ of this many bytes takes: as many as its response has packets (IBTA 9.7).
pub fn span(bytes: u32, mtu: u32) -> i64 {
    i64::from(bytes.div_ceil(mtu.max(1)).clamp(1, 1 << 23))
}

impl Numbers {
    /// The number that comes next, at least and at most: as long as nobody has seen the path MTU, a READ may take few or many.
    pub(super) fn next(&self, mtu: Option<u32>) -> [i64; 2] {
        const MTUS: [u32; 2] = [4096, 256];
        let Some(newest) = self.newest else { return [i64::MIN, 0] };
        self.read.map_or([newest + 1; 2], |bytes| MTUS.map(|any| newest + span(bytes, mtu.unwrap_or(any))))
    }

    /// A PSN counted from the first of this side: the number that is nearest to the newest. One that lies far before the first
    /// was never sent, so nobody sends it again: a queue pair that was started anew, with a PSN of its choice, goes on there.
    pub(super) fn count(&self, psn: u32) -> Option<i64> {
        let newest = self.newest.unwrap_or(0);
        let there = (i64::from(self.first?) + newest) as u32;
        // The difference modulo 2^24, as the number nearest to zero: its 24 bits at the top of 32 carry its sign.
        let number = newest + i64::from((psn.wrapping_sub(there) << 8) as i32 >> 8);
        Some(if number < -BEFORE { number + (1 << 24) } else { number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_pair_that_is_started_anew_goes_on_wherever_it_starts() {
        let numbers = Numbers { first: Some(0x90_0000), newest: Some(6), ..Numbers::default() };
        assert_eq!(numbers.count(0x90_0003), Some(3), "sent again");
        assert_eq!(numbers.count(0x8f_fff0), Some(-16), "the capture began too late for it");
        for anew in [0xa0_0000, 0x80_0000, 0x8f_f800] {
            assert!(numbers.count(anew) > Some(6), "{anew:#x} is nothing that was there before");
        }
    }

    #[test]
    fn a_read_takes_as_many_numbers_as_its_response_has_packets() {
        let numbers = Numbers { newest: Some(6), read: Some(2049), ..Numbers::default() };
        assert_eq!((numbers.next(Some(1024)), numbers.next(None)), ([9, 9], [7, 15]));
        assert_eq!(Numbers { read: Some(0), ..numbers }.next(Some(1024)), [7, 7], "no bytes are one packet as well");
    }
}

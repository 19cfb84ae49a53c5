//! Random decisions that come out the same each time, so that a run can be repeated.

/// Numbers that look like chance: SplitMix64 (Steele, Lea and Flood 2014).
#[derive(Debug, Default)]
pub struct Lot(u64);

/// From the same number come always the same lots.
impl From<u64> for Lot {
    fn from(begin: u64) -> Lot {
        Lot(begin)
    }
}

impl Lot {
    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to below 1.
    pub fn draw(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

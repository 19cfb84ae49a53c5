//! What a switch decides by lot: always the same, for runs that can be repeated.

/// Numbers that look like chance: SplitMix64 (Steele, Lea and Flood 2014), always from the same beginning.
#[derive(Debug, Default)]
pub struct Lot {
    state: u64,
    turns: u32,
}

impl Lot {
    /// From 0 to below 1.
    pub fn draw(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// One of so many, by turns.
    pub fn turn(&mut self, of: u32) -> u32 {
        self.turns = self.turns.wrapping_add(1);
        self.turns % of.max(1)
    }
}

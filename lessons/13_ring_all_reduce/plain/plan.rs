//! Who sends which part of the vector, and when. Plain arithmetic, without a device.
//!
//! ```text
//! vector      │ chunk 0 │ chunk 1 │ chunk 2 │     as many chunks as ranks; each goes in slices that fit a slot
//! step        0 … N-2: reduce-scatter      N-1 … 2N-3: all-gather
//! rank r      sends chunk r - 1 - step     receives chunk r - 2 - step     (counted round the ring)
//! immediate   step 8 bits │ chunk 8 bits │ slice 16 bits
//! ```
//!
//! So chunk c sets out from rank c + 1, grows by what each rank adds, and is whole when it comes to rank c. Then it goes round
//! once more. Whatever the network does, the order of each sum is fixed: and so are its bits.

use std::ops::Range;

/// Bytes of an f32.
pub const WIDTH: usize = 4;

/// What is the same on all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    pub ranks: usize,
    pub elements: usize,
    /// How many bytes a slice has at most.
    pub slice: usize,
}

/// A message of the ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    pub step: usize,
    pub chunk: usize,
    pub immediate: u32,
    /// Counted from the start of the vector.
    pub bytes: Range<usize>,
}

impl Plan {
    /// Can it be done as planned? The immediate data has 8 bits for a step and a chunk, and 16 for a slice.
    pub fn is_possible(&self) -> bool {
        let Self { ranks, elements, slice } = *self;
        let is_sane = (2..=9).contains(&ranks) && elements <= 1 << 24 && slice > 0 && slice % WIDTH == 0;
        is_sane && self.slices() <= 1 << 16
    }

    /// The number of steps in one half. Reduce-scatter takes this many, and all-gather takes as many again.
    pub fn half(&self) -> usize {
        self.ranks - 1
    }

    pub fn bytes(&self) -> usize {
        self.elements * WIDTH
    }

    pub fn left_of(&self, rank: usize) -> usize {
        (rank + self.ranks - 1) % self.ranks
    }

    pub fn right_of(&self, rank: usize) -> usize {
        (rank + 1) % self.ranks
    }

    /// A rank's vector, before anything is added.
    pub fn before(&self, rank: usize) -> Vec<f32> {
        (0..self.elements).map(|element| number(rank, element)).collect()
    }

    /// The elements of a chunk. If the division leaves a remainder, some chunks have one more.
    pub fn chunk(&self, chunk: usize) -> Range<usize> {
        let start = |chunk| chunk * self.elements / self.ranks;
        start(chunk)..start(chunk + 1)
    }

    /// The chunk that a rank sends in a step. It receives what its left neighbour sends.
    pub fn sent_by(&self, rank: usize, step: usize) -> usize {
        (rank + 2 * self.ranks - 1 - step) % self.ranks
    }

    /// How many slices the longest chunk takes.
    pub fn slices(&self) -> usize {
        self.bytes().div_ceil(self.ranks * self.slice)
    }

    /// Bytes of a slot. It has room for any slice, but the longest chunk may be shorter than one.
    pub fn slot(&self) -> usize {
        (self.elements.div_ceil(self.ranks) * WIDTH).clamp(WIDTH, self.slice)
    }

    /// One slice of what a rank sends in a step, or None if the chunk has no more.
    pub fn sends(&self, rank: usize, step: usize, number: usize) -> Option<Slice> {
        let chunk = self.sent_by(rank, step);
        let Range { start, end } = self.chunk(chunk);
        let from = start * WIDTH + number * self.slice;
        let bytes = from..(from + self.slice).min(end * WIDTH);
        let immediate = (step << 24 | chunk << 16 | number) as u32;
        (!bytes.is_empty()).then_some(Slice { step, chunk, immediate, bytes })
    }

    /// How many slices a rank sends in all.
    pub fn count(&self, rank: usize) -> usize {
        let all = (0..2 * self.half()).flat_map(|step| (0..self.slices()).map(move |number| (step, number)));
        all.filter(|(step, number)| self.sends(rank, *step, *number).is_some()).count()
    }
}

/// A number of a rank's vector: 1.1, 2.1, 3.1 … of rank 0, 1.2, 2.2, 3.2 … of rank 1.
fn number(rank: usize, element: usize) -> f32 {
    (element % 1000 + 1) as f32 + (rank + 1) as f32 / 10.0
}

/// The sum of all vectors as one process computes it alone, in the ring's order: chunk c begins with rank c + 1 and ends with
/// rank c.
pub fn in_the_rings_order(plan: &Plan) -> Vec<f32> {
    let sum = |chunk: usize, element| {
        let ranks = (chunk + 1..=chunk + plan.ranks).map(|rank| rank % plan.ranks);
        ranks.map(|rank| number(rank, element)).reduce(|sum, next| sum + next).unwrap_or(0.0)
    };
    (0..plan.ranks).flat_map(|chunk| plan.chunk(chunk).map(move |element| sum(chunk, element))).collect()
}

pub fn to_bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

/// All numbers on the wire are big-endian, as in lesson 09.
pub fn to_numbers(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(WIDTH).map(|four| f32::from_be_bytes([four[0], four[1], four[2], four[3]])).collect()
}

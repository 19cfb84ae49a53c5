//! What's in the memory that both sides see, and in the words between them. All numbers are big-endian.
//!
//! ```text
//! board       version 8 │ weights 8 × 8 │ seal 8    in the server's memory: every worker READs it
//! slot        loss 8 │ slope 8 × 8                  in the server's memory: one worker WRITEs it
//! counter     examples 8                            in the server's memory: every worker adds to it
//! immediate   round 24 bits │ worker 8 bits         with a worker's WRITE, and with the server's word to go on
//! hello       "PS09" │ worker 1 (0: any)            private data of the ConnectRequest
//! welcome     board 16 │ slot 16 │ counter 16 │ worker 1    private data of the ConnectReply
//! ```

use common::{Error, Metadata, Result};

use crate::model::{Gradient, Weights, WEIGHTS};

pub const BOARD_LEN: usize = 8 * (1 + WEIGHTS + 1);
pub const SLOT_LEN: usize = 8 * (1 + WEIGHTS);
/// The immediate data of the server's last word.
pub const STOP: u32 = u32::MAX;
/// The highest number of a round. It fits into 24 bits, and never makes a [`STOP`].
pub const LAST_ROUND: usize = 1_000_000;
const MAGIC: &[u8] = b"PS09";

pub fn immediate(round: u32, worker: u8) -> u32 {
    round << 8 | u32::from(worker)
}

pub fn round_and_worker(immediate: u32) -> (u32, u8) {
    (immediate >> 8, immediate as u8)
}

/// The board's bytes. The seal is a hash of everything before it.
pub fn board(version: u32, weights: &Weights) -> Vec<u8> {
    let mut bytes = u64::from(version).to_be_bytes().to_vec();
    bytes.extend(weights.iter().flat_map(|weight| weight.to_be_bytes()));
    bytes.extend(hash(&bytes).to_be_bytes());
    bytes
}

/// Version and weights, or None if the seal doesn't fit. Then the copy is torn, and holds bytes of two versions.
pub fn read_board(bytes: &[u8]) -> Option<(u32, Weights)> {
    let (sealed, seal) = bytes.split_at(BOARD_LEN - 8);
    let (version, weights) = sealed.split_at(8);
    (number(seal) == hash(sealed)).then(|| (number(version) as u32, floats(weights)))
}

pub fn slot(gradient: &Gradient) -> Vec<u8> {
    let numbers = std::iter::once(&gradient.loss).chain(&gradient.slope);
    numbers.flat_map(|number| number.to_be_bytes()).collect()
}

pub fn read_slot(bytes: &[u8]) -> Gradient {
    let (loss, slope) = bytes.split_at(8);
    Gradient { loss: f64::from_bits(number(loss)), slope: floats(slope) }
}

pub fn hello(worker: u8) -> Vec<u8> {
    [MAGIC, &[worker]].concat()
}

/// The number that a knocking worker wants. Private data comes padded with zeroes.
pub fn read_hello(bytes: &[u8]) -> Option<u8> {
    bytes.strip_prefix(MAGIC)?.first().copied()
}

/// What we tell a worker when we let it in. Its number is that of its place in the house and of its part of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Welcome {
    pub board: Metadata,
    pub slot: Metadata,
    pub counter: Metadata,
    pub worker: u8,
}

impl Welcome {
    pub fn encode(&self) -> Vec<u8> {
        let buffers = [self.board, self.slot, self.counter].map(|buffer| buffer.encode()).concat();
        [&buffers[..], &[self.worker]].concat()
    }

    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let buffer = |at: usize| Metadata::decode(bytes.get(at..).unwrap_or_default());
        let (board, slot, counter) = (buffer(0)?, buffer(16)?, buffer(32)?);
        let lengths = [board, slot, counter].map(|buffer| buffer.len as usize);
        match bytes.get(48) {
            Some(&worker) if worker > 0 && lengths == [BOARD_LEN, SLOT_LEN, 8] => {
                Ok(Self { board, slot, counter, worker })
            }
            _ => Err(Error::content("the server's welcome makes no sense", "Run lesson 09 on both sides")),
        }
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn floats(bytes: &[u8]) -> Weights {
    std::array::from_fn(|at| f64::from_bits(number(&bytes[8 * at..8 * at + 8])))
}

/// FNV-1a with 64 bits. It must find accidents, not attacks.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

//! The two messages, as bytes. A C struct sent as it lies in memory would depend on compiler, byte order and padding of
//! both machines; so every field has its place here.
//!
//! ```text
//!  0     1                4        12     16     20     big-endian
//!  ├ tag ┼ zero ──────────┼─ addr ─┼ rkey ┼ len ─┤     MR: tag 1, 20 bytes
//!  ├ tag ┼ zero ──────────┤                            DONE: tag 2, 4 bytes
//! ```

use common::{Error, Metadata, Result};

/// The length of the longer message, in bytes.
pub const MAX_LEN: usize = 4 + Metadata::LEN;

const MR: u8 = 1;
const DONE: u8 = 2;

/// What one side tells the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// Here is my memory.
    Mr(Metadata),
    /// I am done with yours.
    Done,
}

impl Message {
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Message::Mr(metadata) => [&[MR, 0, 0, 0], metadata.encode().as_slice()].concat(),
            Message::Done => vec![DONE, 0, 0, 0],
        }
    }

    /// Reads what a peer sent; it may have sent anything.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        match bytes {
            [MR, 0, 0, 0, metadata @ ..] if metadata.len() == Metadata::LEN => match Metadata::decode(metadata)? {
                Metadata::REFUSAL => Err(unreadable(bytes)),
                metadata => Ok(Message::Mr(metadata)),
            },
            [DONE, 0, 0, 0] => Ok(Message::Done),
            _ => Err(unreadable(bytes)),
        }
    }
}

fn unreadable(bytes: &[u8]) -> Error {
    let what = format!("the peer's message of {} bytes is neither an MR nor a DONE: {bytes:02x?}", bytes.len());
    Error::content(what, "Check that both sides run lesson 07")
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: Metadata = Metadata { addr: 0x0102_0304_0506_0708, rkey: 0x43b, len: 64 };

    #[test]
    fn there_and_back() {
        let bytes = Message::Mr(METADATA).encode();
        assert_eq!(bytes, [1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 4, 0x3b, 0, 0, 0, 64]);
        assert_eq!(Message::decode(&bytes), Ok(Message::Mr(METADATA)));
        assert_eq!(Message::decode(&Message::Done.encode()), Ok(Message::Done));
    }

    #[test]
    fn anything_else_is_refused() {
        let good = Message::Mr(METADATA).encode();
        for len in 0..good.len() {
            assert!(Message::decode(&good[..len]).is_err(), "{len} bytes");
        }
        for (at, value) in [(0, 0), (0, 2), (0, 3), (1, 1), (3, 255)] {
            let mut bad = good.clone();
            bad[at] = value;
            assert!(Message::decode(&bad).is_err(), "byte {at} = {value}");
        }
        assert!(Message::decode(&[DONE, 0, 0, 0, 0]).is_err());
        assert!(Message::decode(&[MR; MAX_LEN]).is_err());
        assert!(Message::decode(&[[MR, 0, 0, 0].as_slice(), &[0; 16]].concat()).is_err());
    }
}

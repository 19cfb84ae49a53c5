//! A record, in memory and in the file: a key, its value, and a seal, by which a reader knows a torn copy.

use crate::plain::layout::*;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub key: Key,
    pub version: u32,
    pub value: String,
}

impl Record {
    pub fn encode(&self) -> Vec<u8> {
        let (version, length) = (self.version.to_be_bytes(), (self.value.len() as u32).to_be_bytes());
        let sealed = [&self.key[..], &version, &length, self.value.as_bytes()].concat();
        [&hash(&sealed).to_be_bytes()[..], &sealed].concat()
    }

    /// None if the seal doesn't fit. Then the copy is torn and has parts of two records, or nobody has written here yet.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let length = number(bytes.get(20..HEAD)?) as usize;
        let (seal, sealed) = bytes.get(..HEAD.checked_add(length)?)?.split_at(8);
        let value = || String::from_utf8_lossy(&sealed[16..]).into_owned();
        let whole = number(seal) == hash(sealed);
        whole.then(|| Self { key: key_of(sealed), version: number(&sealed[8..12]) as u32, value: value() })
    }

    /// How long it is, in memory as in the file.
    pub fn len(&self) -> usize {
        HEAD + self.value.len()
    }
}

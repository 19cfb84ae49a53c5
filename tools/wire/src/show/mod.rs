//! What `wire show` prints: a ladder, one packet byte by byte, or a table for machines. And the ladder as a picture.

pub mod bytes;
pub(crate) mod iwarp;
pub mod ladder;
pub mod parts;
pub mod tsv;

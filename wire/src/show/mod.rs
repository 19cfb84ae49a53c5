//! What `wire show` prints: a ladder, one packet byte by byte, or a table for machines. And the ladder as a picture.

pub mod bytes;
pub mod ladder;
pub mod row;
pub mod tsv;

use crate::capture;
use std::fmt;
use std::io;

/// Why showing or annotating a capture stopped.
#[derive(Debug)]
pub enum Error {
    /// The capture cannot be read on.
    Capture(capture::Error),
    /// The output cannot be written; a closed pipe is one reason.
    Output(io::Error),
    /// The capture does not have what was asked for.
    Unfit(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Capture(error) => error.fmt(f),
            Error::Output(error) => write!(f, "writing failed: {error}"),
            Error::Unfit(what) => what.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<capture::Error> for Error {
    fn from(error: capture::Error) -> Error {
        Error::Capture(error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Output(error)
    }
}

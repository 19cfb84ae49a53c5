//! What can go wrong, in four cases plus one, each with the next step to take.
//!
//! Also here: the three error conventions of the C libraries. Which one a call follows is in its man page; every
//! wrapper passes the call's result through the one function that fits.
//!
//! | calls | on failure | here |
//! |---|---|---|
//! | `rdma_*` | return -1 and set errno | `minus_one` |
//! | `ibv_post_*`, `ibv_dereg_*`, `ibv_destroy_*`, `ibv_query_*` | return the errno itself, positive | `positive_errno` |
//! | `ibv_alloc_*`, `ibv_create_*`, `ibv_reg_*` | return NULL and set errno | `null` |

use std::fmt;
use std::io;
use std::time::Duration;

mod errno;
mod hint;
pub(crate) mod reject;

pub(crate) use hint::event_step;

use crate::cm_event_type::{CmEventType, RDMA_CM_EVENT_REJECTED};
use crate::narrate::preview;
use crate::wc_status::WcStatus;

/// Shorthand: every fallible function of `common` fails with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Why a lesson stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// A call failed.
    Call {
        /// The C function.
        call: &'static str,
        /// What it left in errno(3), or returned.
        errno: i32,
    },
    /// The connection manager reported something else than the lesson waited for.
    Event {
        /// The event waited for.
        wanted: CmEventType,
        /// The event that came.
        got: CmEventType,
        /// Its status: a negative errno, or, in a REJECTED event, the reject reason.
        status: i32,
        /// Its private data, in which a peer can say why it rejects. May be empty.
        private_data: Vec<u8>,
    },
    /// A work request completed with an error.
    Completion {
        /// The number that the work request was posted with.
        wr_id: u64,
        /// The QP that it was posted to.
        qp_num: u32,
        /// How it ended.
        status: WcStatus,
        /// The device's own code; 0 from SoftRoCE.
        vendor_err: u32,
    },
    /// Nothing came within the time allowed.
    Deadline {
        /// What was awaited.
        awaited: String,
        /// How long.
        limit: Duration,
    },
    /// Every call worked, but what the user or the peer handed over cannot be used.
    Content {
        /// What kind of thing, for programs that go on: the text is for people.
        kind: Kind,
        /// What is wrong.
        what: String,
        /// What to do next.
        next: String,
    },
}

/// The kinds of [`Error::Content`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// There is no such device, or the id has none yet.
    NoDevice,
    /// There is no address for the host, or no GID for the address.
    NoAddress,
    /// Bytes that are outside the buffer, the region, or the peer's memory; or that aren't aligned.
    OutOfRange,
    /// No completion of that request will come here.
    NeverCompletes,
    /// The peer has hung up, or did something else than what was awaited.
    PeerGone,
    /// What the peer says makes no sense.
    Malformed,
    /// The call cannot be made like this, whatever the device says.
    Misuse,
    /// Anything else, in the program's own words.
    Other,
}

impl Error {
    /// The [`Error::Content`] case of a program's own.
    pub fn content(what: impl Into<String>, next: impl Into<String>) -> Self {
        Self::of(Kind::Other, what, next)
    }

    /// The same, of a kind.
    pub fn of(kind: Kind, what: impl Into<String>, next: impl Into<String>) -> Self {
        Error::Content { kind, what: what.into(), next: next.into() }
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::Call { call, errno } => {
                write!(f, "{call} failed: {}: {}", errno::name(*errno), errno::meaning(*errno))?;
            }
            Error::Event { wanted, got, status, private_data } => {
                if wanted != got {
                    write!(f, "waited for {wanted}, ")?;
                }
                write!(f, "got {got}")?;
                write!(f, " with status {}", status_text(*got, *status))?;
                if private_data.iter().any(|byte| *byte != 0) {
                    write!(f, ", and the peer says {}", preview(private_data))?;
                }
            }
            Error::Completion { wr_id, qp_num, status, vendor_err } => {
                write!(f, "work request {wr_id} of QP {qp_num} completed with {status}")?;
                write!(f, " ({}; vendor_err 0x{vendor_err:x})", status.meaning())?;
            }
            Error::Deadline { awaited, limit } => {
                write!(f, "waited {} s for {awaited}, in vain", limit.as_secs_f32())?;
            }
            Error::Content { what, .. } => f.write_str(what)?,
        }
        write!(f, ". Next: {}", hint::next_step(self))
    }
}

/// The status of a CM event in words. Its meaning depends on the event.
pub fn status_text(event: CmEventType, status: i32) -> String {
    match status {
        0 => "0".into(),
        reason if event == RDMA_CM_EVENT_REJECTED && reason > 0 => {
            format!("{reason} ({})", reject::meaning(reason))
        }
        // This isn't -EPERM but the result of a function inside librdmacm (`ucma_process_conn_resp` in its source).
        -1 => "-1 (no errno: a call inside librdmacm failed)".into(),
        negative if negative < 0 => {
            format!("{negative} ({}: {})", errno::name(-negative), errno::meaning(-negative))
        }
        other => other.to_string(),
    }
}

/// For calls that return -1 and set errno.
pub(crate) fn minus_one(call: &'static str, result: i32) -> Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(last_errno(call)),
    }
}

/// For calls that return a positive errno.
pub(crate) fn positive_errno(call: &'static str, result: i32) -> Result<()> {
    match result {
        0 => Ok(()),
        errno => Err(Error::Call { call, errno }),
    }
}

/// For calls that return NULL and set errno.
pub(crate) fn null<T>(call: &'static str, result: *mut T) -> Result<*mut T> {
    match result.is_null() {
        false => Ok(result),
        true => Err(last_errno(call)),
    }
}

/// What errno(3) holds now, as the error of `call`.
pub(crate) fn last_errno(call: &'static str) -> Error {
    Error::Call { call, errno: io::Error::last_os_error().raw_os_error().unwrap_or(0) }
}

#[cfg(test)]
mod tests;

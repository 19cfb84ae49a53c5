//! What the calls refuse. Where C returns -1, Rust can say why: each error is one of its own, with the next step.

use std::fmt;

use common::Error;

use crate::handle::Handle;
use crate::wc::Wc;

pub type Result<T> = std::result::Result<T, RdmaError>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RdmaError {
    InvalidMr(Handle),
    InvalidQp(Handle),
    GivenBack(Handle),
    Permission,
    QueueFull(usize),
    NotConnected,
    Failed(Wc),
    Device(Error),
}

impl From<Error> for RdmaError {
    fn from(error: Error) -> Self {
        Self::Device(error)
    }
}

impl From<RdmaError> for Error {
    #[rustfmt::skip]
    fn from(error: RdmaError) -> Self {
        let (what, next) = match error {
            RdmaError::InvalidMr(mr) => (format!("{mr:?} is no memory region"), "Pass what reg_mr returned"),
            RdmaError::InvalidQp(qp) => (format!("{qp:?} is no queue pair"), "Pass what create_qp returned"),
            RdmaError::GivenBack(handle) => (format!("{handle:?} was given back: it is not registered any more, or destroyed"),
                "Register or create again, and use the new handle"),
            RdmaError::Permission => ("insufficient permissions: REMOTE_WRITE without LOCAL_WRITE".into(),
                "Add LOCAL_WRITE: what the peer writes, our own device puts into memory"),
            RdmaError::QueueFull(room) => (format!("the queue is full: {room} requests are posted and not polled"),
                "Poll completions before you post more, or create the queue pair with a larger CQ"),
            RdmaError::NotConnected => ("the queue pair takes no such request in its state".into(),
                "Connect it first: sending needs RTS, receiving INIT (its dump tells where it is)"),
            RdmaError::Failed(wc) => (format!("work request {} ended with {:?}", wc.wr_id, wc.status),
                "The last line with WC before this one has the name that verbs give it: see docs/completions.md"),
            RdmaError::Device(error) => return error,
        };
        Error::content(what, next)
    }
}

impl fmt::Display for RdmaError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        Error::from(self.clone()).fmt(f)
    }
}

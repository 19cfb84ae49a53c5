//! Why the responder refuses a request, as data. It's only put into words when somebody listens.

use crate::completion::Status;
use crate::memory::Refusal;
use crate::outside::AsyncEvent;
use crate::packet::Reth;
use roce::aeth::{self, Syndrome};
use std::fmt;

/// The gate at which a request was stopped.
#[derive(Debug)]
pub(super) enum Nak {
    /// It doesn't continue the message that has begun, or it begins one inside another.
    Sequence,
    /// No such packet has a payload of this many bytes.
    Payload(usize),
    TooLong,
    /// More bytes than the WRITE announced, or fewer at its end.
    Announced {
        arrived: u32,
        announced: u32,
    },
    /// The queue pair doesn't allow the operation with this name.
    NotAllowed(&'static str),
    NotSupported,
    /// A datagram brought this key, which isn't ours.
    Qkey(u32),
    /// The key that it should make invalid can't be made invalid.
    Invalidate(u32, Refusal),
    TooManyReads,
    /// The address of an atomic operation isn't a multiple of eight.
    Unaligned,
    /// No receive is posted. The requester should try again after the time of this code.
    NotReady {
        timer: u8,
    },
    /// The receive is too short.
    NoRoom {
        arrived: u64,
        room: u64,
    },
    /// The receive's own memory is out of reach.
    OwnMemory(Refusal),
    /// The key doesn't open the memory.
    Memory {
        reth: Reth,
        refusal: Refusal,
    },
}

/// What a refused request means for us.
pub(super) enum Fault {
    /// Nothing, because the requester will try again.
    Nobodys,
    /// It's the receive's fault, so the receive completes.
    Receive(Status),
    /// It's the peer's fault, so our program gets an event.
    Peer(AsyncEvent),
}

impl Nak {
    /// What to tell the requester (9.7.5), and whose fault it is.
    pub fn judge(&self) -> (Syndrome, Fault) {
        let (nak, fault) = match self {
            Nak::NotReady { timer } => return (Syndrome::rnr_nak(*timer), Fault::Nobodys),
            Nak::NoRoom { .. } => (aeth::Nak::InvalidRequest, Fault::Receive(Status::LocLenErr)),
            // The bytes are placed, so they're acknowledged (class J in 9.9.3).
            Nak::Invalidate(..) => return (Syndrome::ACK, Fault::Receive(Status::RemInvReqErr)),
            Nak::OwnMemory(_) => (aeth::Nak::RemoteOperational, Fault::Receive(Status::LocProtErr)),
            Nak::Memory { .. } => (aeth::Nak::RemoteAccess, Fault::Peer(AsyncEvent::QpAccessError)),
            _ => (aeth::Nak::InvalidRequest, Fault::Peer(AsyncEvent::QpRequestError)),
        };
        (Syndrome::Nak(nak), fault)
    }

    /// Why, without what the request was about.
    pub fn cause(&self) -> &dyn fmt::Display {
        match self {
            Nak::Invalidate(_, refusal) | Nak::OwnMemory(refusal) | Nak::Memory { refusal, .. } => refusal,
            nak => nak,
        }
    }
}

impl fmt::Display for Nak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Nak::Sequence => f.write_str("it does not continue what came before"),
            Nak::Payload(length) => write!(f, "{length} bytes are no payload of such a packet"),
            Nak::TooLong => f.write_str("longer than a message can be"),
            Nak::Announced { arrived, announced } => {
                write!(f, "{arrived} bytes have come, {announced} were announced")
            }
            Nak::NotAllowed(name) => write!(f, "this QP does not allow {name}s"),
            Nak::Qkey(key) => write!(f, "its Q_Key {key:#x} is not ours"),
            Nak::NotSupported => f.write_str("not supported"),
            Nak::Invalidate(key, refusal) => write!(f, "rkey {key:#x} cannot be made invalid: {refusal}"),
            Nak::TooManyReads => f.write_str("more READs are under way than agreed on"),
            Nak::Unaligned => f.write_str("the address is no multiple of 8"),
            Nak::NotReady { .. } => f.write_str("no receive is posted"),
            Nak::NoRoom { arrived, room } => {
                write!(f, "{arrived} bytes have come, the receive has room for {room}")
            }
            Nak::OwnMemory(refusal) => write!(f, "the receive's own memory: {refusal}"),
            Nak::Memory { reth: Reth { rkey, length, va }, refusal } => {
                write!(f, "rkey {rkey:#x}, {length} bytes at {va:#x}: {refusal}")
            }
        }
    }
}

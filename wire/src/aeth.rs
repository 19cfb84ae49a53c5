//! The syndrome byte of an acknowledgement: accepted, not ready, or refused (IBTA 9.7.5.1.2 to 9.7.5.1.4).

use std::fmt;

/// What the responder says about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syndrome {
    /// Accepted. `credits` is how many more messages fit; None when the responder does not count (SoftRoCE).
    Ack {
        /// Receives the responder has free.
        credits: Option<u32>,
    },
    /// No receive was posted: try again after this many microseconds.
    RnrNak {
        /// The wait the responder asks for.
        timer_us: u32,
    },
    /// Refused.
    Nak(Nak),
    /// A value the specification leaves unused.
    Reserved(u8),
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Nak {
    /// A packet is missing: send again from the PSN of this NAK.
    PsnSequence,
    /// The request breaks the rules or is not allowed on this QP.
    InvalidRequest,
    /// The key, the range or the permission is wrong.
    RemoteAccess,
    /// The responder could not carry it out.
    RemoteOperational,
    /// Reliable datagrams only.
    InvalidRdRequest,
    /// Not in the specification.
    Unknown(u8),
}

/// Free receives for each credit code; code 31 means that they are not counted.
const CREDITS: [u32; 31] = [
    0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144,
    8192, 12288, 16384, 24576, 32768,
];

/// The wait for each RNR timer code, in units of 10 microseconds (IBTA table 46).
const RNR_TIMER: [u32; 32] = [
    65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096,
    6144, 8192, 12288, 16384, 24576, 32768, 49152,
];

impl From<u8> for Syndrome {
    fn from(byte: u8) -> Syndrome {
        let code = byte & 0x1f;
        match byte >> 5 {
            0b000 => Syndrome::Ack { credits: CREDITS.get(usize::from(code)).copied() },
            0b001 => Syndrome::RnrNak { timer_us: RNR_TIMER[usize::from(code)] * 10 },
            0b011 => Syndrome::Nak(match code {
                0 => Nak::PsnSequence,
                1 => Nak::InvalidRequest,
                2 => Nak::RemoteAccess,
                3 => Nak::RemoteOperational,
                4 => Nak::InvalidRdRequest,
                other => Nak::Unknown(other),
            }),
            _ => Syndrome::Reserved(byte),
        }
    }
}

impl fmt::Display for Syndrome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Syndrome::Ack { credits: None } => write!(f, "ACK, credits not counted"),
            Syndrome::Ack { credits: Some(n) } => write!(f, "ACK, room for {n} messages"),
            Syndrome::RnrNak { timer_us } => write!(f, "RNR NAK, wait {} ms", milliseconds(*timer_us)),
            Syndrome::Nak(nak) => write!(f, "NAK, {nak}"),
            Syndrome::Reserved(byte) => write!(f, "reserved syndrome 0x{byte:02x}"),
        }
    }
}

impl Nak {
    /// The status of the requester's completion; None where the requester sends again (PSN sequence error: until its retries
    /// are used up), and for codes that RC does not have.
    pub fn status(self) -> Option<&'static str> {
        match self {
            Nak::InvalidRequest => Some("IBV_WC_REM_INV_REQ_ERR"),
            Nak::RemoteAccess => Some("IBV_WC_REM_ACCESS_ERR"),
            Nak::RemoteOperational => Some("IBV_WC_REM_OP_ERR"),
            Nak::PsnSequence | Nak::InvalidRdRequest | Nak::Unknown(_) => None,
        }
    }
}

impl fmt::Display for Nak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Nak::PsnSequence => write!(f, "PSN sequence error"),
            Nak::InvalidRequest => write!(f, "invalid request"),
            Nak::RemoteAccess => write!(f, "remote access error"),
            Nak::RemoteOperational => write!(f, "remote operational error"),
            Nak::InvalidRdRequest => write!(f, "invalid RD request"),
            Nak::Unknown(code) => write!(f, "unknown code {code}"),
        }
    }
}

/// Microseconds as milliseconds with two decimals, which every RNR timer has.
pub fn milliseconds(us: u32) -> String {
    format!("{}.{:02}", us / 1000, us % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_syndrome() {
        assert_eq!(Syndrome::from(0x1f), Syndrome::Ack { credits: None });
        assert_eq!(Syndrome::from(0x05), Syndrome::Ack { credits: Some(6) });
        assert_eq!(Syndrome::from(0x2c), Syndrome::RnrNak { timer_us: 640 });
        assert_eq!(Syndrome::from(0x20), Syndrome::RnrNak { timer_us: 655_360 });
        assert_eq!(Syndrome::from(0x62), Syndrome::Nak(Nak::RemoteAccess));
        assert_eq!(Syndrome::from(0x65), Syndrome::Nak(Nak::Unknown(5)));
        assert_eq!(Syndrome::from(0x9f), Syndrome::Reserved(0x9f));
    }

    #[test]
    fn says_it_in_words() {
        assert_eq!(Syndrome::from(0x39).to_string(), "RNR NAK, wait 61.44 ms");
        assert_eq!(Syndrome::from(0x21).to_string(), "RNR NAK, wait 0.01 ms");
        assert_eq!(Syndrome::from(0x60).to_string(), "NAK, PSN sequence error");
    }
}

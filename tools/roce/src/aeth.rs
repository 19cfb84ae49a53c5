//! The syndrome byte of an acknowledgement: accepted, not ready, or refused (IBTA 9.7.5.2).

use std::fmt;

/// What the responder says about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syndrome {
    /// Accepted. `credits` is how many more messages fit; None when the responder does not count (SoftRoCE).
    Ack {
        credits: Option<u32>,
    },
    /// No receive was posted: try again after this many microseconds.
    RnrNak {
        timer_us: u32,
    },
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
    /// The key, the range or the permission is wrong (9.7.5.2.4).
    RemoteAccess,
    /// The responder could not carry it out.
    RemoteOperational,
    /// Reliable datagrams only.
    InvalidRdRequest,
    Unknown(u8),
}

/// Free receives for each credit code; code 31 means that they are not counted.
const CREDITS: [u32; 31] = [
    0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144,
    8192, 12288, 16384, 24576, 32768,
];

/// The wait for each RNR timer code, in units of 10 microseconds (IBTA table 45).
const RNR_TIMER: [u32; 32] = [
    65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096,
    6144, 8192, 12288, 16384, 24576, 32768, 49152,
];

impl Syndrome {
    /// Accepted, and the responder does not count credits.
    pub const ACK: Syndrome = Syndrome::Ack { credits: None };

    /// No receive was posted: the wait of this timer code, of which five bits count.
    pub fn rnr_nak(timer: u8) -> Syndrome {
        Syndrome::RnrNak { timer_us: RNR_TIMER[usize::from(timer & 0x1f)] * 10 }
    }

    /// The byte that says so: the upper three bits say which kind, the lower five how long or why. A number of credits, or a wait,
    /// that has no code is taken for the largest one.
    pub fn byte(self) -> u8 {
        let code = |codes: &[u32], wanted: u32| codes.iter().position(|code| *code == wanted).unwrap_or(0x1f) as u8;
        match self {
            Syndrome::Ack { credits } => credits.map_or(0x1f, |credits| code(&CREDITS, credits)),
            Syndrome::RnrNak { timer_us } => 0x20 | code(&RNR_TIMER, timer_us / 10),
            Syndrome::Nak(Nak::Unknown(code)) => 0x60 | code,
            Syndrome::Nak(nak) => 0x60 | NAKS.iter().position(|row| row.0 == nak).unwrap_or_default() as u8,
            Syndrome::Reserved(byte) => byte,
        }
    }
}

impl From<u8> for Syndrome {
    fn from(byte: u8) -> Syndrome {
        let code = byte & 0x1f;
        match byte >> 5 {
            0b000 => Syndrome::Ack { credits: CREDITS.get(usize::from(code)).copied() },
            0b001 => Syndrome::rnr_nak(code),
            0b011 => Syndrome::Nak(NAKS.get(usize::from(code)).map_or(Nak::Unknown(code), |row| row.0)),
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

/// In the order of their codes: in words, and the status of the requester's completion, where there is one.
const NAKS: [(Nak, &str, Option<&str>); 5] = [
    // The requester sends again, until its retries are used up.
    (Nak::PsnSequence, "PSN sequence error", None),
    (Nak::InvalidRequest, "invalid request", Some("IBV_WC_REM_INV_REQ_ERR")),
    (Nak::RemoteAccess, "remote access error", Some("IBV_WC_REM_ACCESS_ERR")),
    (Nak::RemoteOperational, "remote operational error", Some("IBV_WC_REM_OP_ERR")),
    (Nak::InvalidRdRequest, "invalid RD request", None),
];

impl Nak {
    /// The status of the requester's completion; None where it sends again, and for codes that RC does not have.
    pub fn status(self) -> Option<&'static str> {
        NAKS.iter().find(|row| row.0 == self)?.2
    }
}

impl fmt::Display for Nak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Nak::Unknown(code) => write!(f, "unknown code {code}"),
            nak => f.write_str(NAKS.iter().find(|row| row.0 == *nak).map_or("", |row| row.1)),
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
    fn each_byte_says_what_the_table_says_and_comes_back() {
        for (byte, said) in [
            (0x05, "ACK, room for 6 messages"),
            (0x1f, "ACK, credits not counted"),
            (0x20, "RNR NAK, wait 655.36 ms"),
            (0x21, "RNR NAK, wait 0.01 ms"),
            (0x60, "NAK, PSN sequence error"),
            (0x61, "NAK, invalid request"),
            (0x62, "NAK, remote access error"),
            (0x63, "NAK, remote operational error"),
            (0x65, "NAK, unknown code 5"),
            (0x9f, "reserved syndrome 0x9f"),
        ] {
            assert_eq!(Syndrome::from(byte).to_string(), said);
        }
        assert!((0..=u8::MAX).all(|byte| Syndrome::from(byte).byte() == byte));
    }
}

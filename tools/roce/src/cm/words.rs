//! Codes inside CM messages, in words.

/// A service ID. The RDMA connection manager builds it from a port space and a port (A11.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service(pub u64);

impl Service {
    /// The port the server listens on, if the ID comes from the RDMA connection manager.
    pub fn port(self) -> Option<u16> {
        (self.0 >> 32 == 0 && self.0 >> 24 == 1).then_some(self.0 as u16)
    }

    /// The port space by its name in librdmacm.
    pub fn space(self) -> &'static str {
        match (self.port(), self.0 >> 16 & 0xff) {
            (Some(_), 0x06) => "RDMA_PS_TCP",
            (Some(_), 0x11) => "RDMA_PS_UDP",
            (Some(_), 0x3f) => "RDMA_PS_IB",
            _ => "port space unknown",
        }
    }
}

impl std::fmt::Display for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.port() {
            Some(port) => write!(f, "{}, port {port}", self.space()),
            None => write!(f, "not an RDMA-CM service"),
        }
    }
}

/// Why a connection was refused, in words (12.6.7.2).
pub fn reject_reason(reason: u16) -> &'static str {
    match reason {
        1 => "no QP available",
        2 => "no EE context available",
        3 => "no resources available",
        4 => "timeout",
        5 => "unsupported request",
        6 => "invalid communication ID",
        7 => "invalid communication instance",
        8 => "invalid service ID: nobody listens",
        9 => "invalid transport service type",
        10 => "stale connection",
        11 => "RDC does not exist",
        12 => "primary remote GID rejected",
        13 => "primary remote LID rejected",
        14 => "invalid primary SL",
        15 => "invalid primary traffic class",
        16 => "invalid primary hop limit",
        17 => "invalid primary packet rate",
        18 => "alternate remote GID rejected",
        19 => "alternate remote LID rejected",
        20 => "invalid alternate SL",
        21 => "invalid alternate traffic class",
        22 => "invalid alternate hop limit",
        23 => "invalid alternate packet rate",
        24 => "port and CM redirection",
        25 => "port redirection",
        26 => "invalid path MTU",
        27 => "insufficient responder resources",
        28 => "consumer reject",
        29 => "RNR retry count rejected",
        30 => "duplicate local communication ID",
        31 => "invalid class version",
        32 => "invalid primary flow label",
        33 => "invalid alternate flow label",
        35 => "rejected vendor option",
        _ => "unknown reason",
    }
}

/// How a SIDR_REQ was answered, in words (table 120).
pub fn sidr_status(status: u8) -> &'static str {
    match status {
        0 => "valid QPN",
        1 => "service ID not supported",
        2 => "rejected by the service provider",
        3 => "no QP available",
        4 => "redirect",
        5 => "unsupported version",
        _ => "unknown status",
    }
}

/// A time code: 4.096 microseconds times a power of two.
pub(super) fn timeout(code: u64) -> String {
    if code == 0 {
        return "no time limit".into();
    }
    let microseconds = 4.096 * (1u64 << code.min(31)) as f64;
    match microseconds {
        us if us < 1e3 => format!("{us:.1} microseconds"),
        us if us < 1e6 => format!("{:.1} ms", us / 1e3),
        us => format!("{:.1} s", us / 1e6),
    }
}

pub(super) fn mtu(code: u64) -> String {
    mtu_bytes(code as u8).map_or("not a valid MTU".into(), |bytes| format!("{bytes} bytes"))
}

/// The path MTU in bytes for its code 1 to 5.
pub fn mtu_bytes(code: u8) -> Option<u32> {
    (1..=5).contains(&code).then(|| 128 << code)
}

pub(super) fn transport(code: u64) -> String {
    ["RC", "UC", "RD", "see ExtendedTransport"].get(code as usize).copied().unwrap_or_default().into()
}

pub(super) fn message_name(code: u64) -> String {
    ["REQ", "REP", "another message", "reserved"].get(code as usize).copied().unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_in_words() {
        assert_eq!(Service(0x0106_1d2f).to_string(), "RDMA_PS_TCP, port 7471");
        assert_eq!([0x1_0106_1d2f, 0x0002_0000].map(|id| Service(id).port()), [None; 2]);
        assert_eq!([0, 14, 19].map(timeout), ["no time limit", "67.1 ms", "2.1 s"]);
        assert_eq!([0, 3].map(mtu), ["not a valid MTU", "1024 bytes"]);
        assert_eq!(reject_reason(28), "consumer reject");
    }
}

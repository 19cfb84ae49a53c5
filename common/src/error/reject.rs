//! Reject reasons: why a REJ message was sent (InfiniBand Architecture Specification, volume 1, section 12.6.7.2).

/// The peer's program called `rdma_reject`.
pub const CONSUMER_REJECT: i32 = 28;

/// The reason in words.
pub fn meaning(reason: i32) -> &'static str {
    match reason {
        1 => "no QP available",
        2 => "no EEC available",
        3 => "no resources available",
        4 => "timeout",
        5 => "unsupported request",
        6 => "invalid communication ID",
        7 => "invalid communication instance",
        8 => "invalid service ID: nobody listens on that port",
        9 => "invalid transport service type",
        10 => "stale connection",
        11 => "RDC does not exist",
        12..=17 => "primary path rejected",
        18..=23 => "alternate path rejected",
        24 | 25 => "redirected",
        26 => "invalid path MTU",
        27 => "insufficient responder resources",
        28 => "consumer reject: the peer's program said no",
        29 => "RNR retry count rejected",
        30 => "duplicate local communication ID",
        31 => "unsupported class version",
        32 | 33 => "invalid flow label",
        35 => "vendor option not supported: the peer's program called rdma_reject_ece",
        _ => "a reason this program has no words for",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 34 was never given out; 35 came with enhanced connection establishment, in release 1.4.
    #[test]
    fn every_reason_has_words() {
        let unknown = meaning(34);
        assert!((1..=33).chain([35]).all(|reason| meaning(reason) != unknown));
        assert_eq!(meaning(36), unknown);
    }
}

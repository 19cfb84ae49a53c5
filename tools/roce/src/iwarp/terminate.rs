//! The errors that a Terminate message names (RFC 5040, 4.8; DDP's are RFC 5041, 6.2; MPA's are RFC 5044, 8).

/// Who complains.
pub fn layer(layer: u8) -> &'static str {
    match layer {
        0 => "RDMAP",
        1 => "DDP",
        2 => "MPA",
        _ => "an unknown layer",
    }
}

/// The error in words.
pub fn error(layer: u8, kind: u8, code: u8) -> &'static str {
    match (layer, kind, code) {
        (0, 0, _) => "local catastrophic error",
        (0, 1, 0x00) | (1, 1, 0x00) => "invalid STag",
        (0, 1, 0x01) | (1, 1, 0x01) => "base or bounds violation",
        (0, 1, 0x02) => "access rights violation",
        (0, 1, 0x03) | (1, 1, 0x02) => "STag not associated with this connection",
        (0, 1, 0x04) | (1, 1, 0x03) => "TO wrap",
        (0, 1, 0x09) => "STag cannot be invalidated",
        (0, 1, _) => "remote protection error",
        (0, 2, 0x05) => "invalid RDMAP version",
        (0, 2, 0x06) => "unexpected opcode",
        (0, 2, 0x07) => "catastrophic error, localized to the connection",
        (0, 2, 0x08) => "catastrophic error, global",
        (0, 2, 0x09) => "STag cannot be invalidated",
        (0, 2, _) => "remote operation error",
        (1, 0, _) => "local catastrophic error",
        (1, 1, 0x04) => "invalid DDP version",
        (1, 2, 0x01) => "invalid QN",
        (1, 2, 0x02) => "invalid MSN: no buffer is posted",
        (1, 2, 0x03) => "invalid MSN: it's out of range",
        (1, 2, 0x04) => "invalid MO",
        (1, 2, 0x05) => "message longer than the buffer",
        (1, 2, 0x06) => "invalid DDP version",
        (2, 0, 0x01) => "TCP connection closed, terminated or lost",
        (2, 0, 0x02) => "CRC error",
        (2, 0, 0x03) => "marker and length don't fit together",
        (2, 0, 0x04) => "invalid start-up frame",
        _ => "an error without a name here",
    }
}

//! Codes of NVMe, in words (NVM Express base specification, NVM command set, and NVMe over Fabrics).

/// A command on the admin queue.
pub fn admin(opcode: u8) -> Option<&'static str> {
    Some(match opcode {
        0x00 => "Delete I/O Submission Queue",
        0x01 => "Create I/O Submission Queue",
        0x02 => "Get Log Page",
        0x04 => "Delete I/O Completion Queue",
        0x05 => "Create I/O Completion Queue",
        0x06 => "Identify",
        0x08 => "Abort",
        0x09 => "Set Features",
        0x0a => "Get Features",
        0x0c => "Asynchronous Event Request",
        0x0d => "Namespace Management",
        0x10 => "Firmware Commit",
        0x11 => "Firmware Image Download",
        0x14 => "Device Self-test",
        0x15 => "Namespace Attachment",
        0x18 => "Keep Alive",
        0x80 => "Format NVM",
        0x81 => "Security Send",
        0x82 => "Security Receive",
        0x84 => "Sanitize",
        _ => return None,
    })
}

/// A command on an I/O queue.
pub fn io(opcode: u8) -> Option<&'static str> {
    Some(match opcode {
        0x00 => "Flush",
        0x01 => "Write",
        0x02 => "Read",
        0x04 => "Write Uncorrectable",
        0x05 => "Compare",
        0x08 => "Write Zeroes",
        0x09 => "Dataset Management",
        0x0c => "Verify",
        0x0d => "Reservation Register",
        0x0e => "Reservation Report",
        0x11 => "Reservation Acquire",
        0x15 => "Reservation Release",
        _ => return None,
    })
}

/// A command of NVMe over Fabrics, by its type.
pub fn fabrics(kind: u8) -> Option<&'static str> {
    Some(match kind {
        0x00 => "Property Set",
        0x01 => "Connect",
        0x04 => "Property Get",
        0x05 => "Authentication Send",
        0x06 => "Authentication Receive",
        0x08 => "Disconnect",
        _ => return None,
    })
}

/// A register of the controller, by its place.
pub fn property(offset: u64) -> String {
    match offset {
        0x00 => "Controller Capabilities".into(),
        0x08 => "Version".into(),
        0x14 => "Controller Configuration".into(),
        0x1c => "Controller Status".into(),
        0x20 => "NVM Subsystem Reset".into(),
        _ => format!("register {offset:#x}"),
    }
}

/// How a command ended. The field's lowest bit isn't used here.
pub fn status(field: u64) -> String {
    let (code, kind) = (field >> 1 & 0xff, field >> 9 & 7);
    let words = match (kind, code) {
        (0, 0x00) => "success",
        (0, 0x01) => "invalid opcode",
        (0, 0x02) => "invalid field",
        (0, 0x04) => "data transfer error",
        (0, 0x06) => "internal error",
        (0, 0x07) => "abort requested",
        (0, 0x0b) => "invalid namespace or format",
        (0, 0x0f) => "invalid SGL descriptor",
        (0, 0x80) => "LBA out of range",
        (1, 0x09) => "invalid log page",
        (1, 0x0d) => "feature identifier not saveable",
        (1, 0x80) => "incompatible format",
        (1, 0x81) => "controller busy",
        (1, 0x82) => "invalid parameters",
        (1, 0x83) => "restart discovery",
        (1, 0x84) => "invalid host",
        _ => "",
    };
    let number = format!("status type {kind} code {code:#04x}");
    match words {
        "" => number,
        "success" => words.to_owned(),
        _ => format!("{words} ({number})"),
    }
}

/// Why a connection is refused.
pub fn rejection(status: u64) -> String {
    match status {
        1 => "invalid private data length".into(),
        2 => "invalid record format".into(),
        3 => "invalid queue ID".into(),
        4 => "invalid host send queue size".into(),
        5 => "invalid host receive queue size".into(),
        6 => "no resources".into(),
        7 => "invalid IRD".into(),
        8 => "invalid ORD".into(),
        9 => "invalid controller ID".into(),
        _ => format!("refused, status {status}"),
    }
}

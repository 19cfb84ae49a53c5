//! The operation codes of the BTH and which headers follow each of them (IBTA table 38 and 9.3;
//! annex A14 for XRC, annex A19 for FLUSH and ATOMIC WRITE).

use crate::field::Header;
use crate::headers::{
    aeth::HEADER as AETH, atomic_ack_eth::HEADER as ATOMIC_ACK, atomic_eth::HEADER as ATOMIC, cnp::HEADER as CNP,
    deth::HEADER as DETH, feth::HEADER as FETH, ieth::HEADER as IETH, imm_dt::HEADER as IMM, reth::HEADER as RETH,
    xrc_eth::HEADER as XRC,
};

/// The transport service: the top three bits of the operation code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Service {
    /// Reliable connection: acknowledged, in order.
    #[default]
    Rc,
    /// Unreliable connection: in order or lost.
    Uc,
    /// Unreliable datagram: each packet stands alone.
    Ud,
    Cnp,
    /// Extended reliable connection: as RC, but each request names the receiver's shared receive queue.
    Xrc,
    /// A service this tool does not decode (RD, vendor specific).
    Unknown,
}

impl Service {
    /// True if requests are answered.
    pub fn is_reliable(self) -> bool {
        matches!(self, Service::Rc | Service::Xrc)
    }

    /// True if packets belong to a connection, whose packets are numbered.
    pub fn is_connected(self) -> bool {
        self.is_reliable() || self == Service::Uc
    }
}

/// What a packet does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Data for the buffer of a posted receive.
    Send,
    /// Data for memory the sender names itself.
    Write,
    /// Asks for memory.
    ReadRequest,
    /// The memory asked for.
    ReadResponse,
    /// Acknowledges, or refuses.
    Acknowledge,
    /// The old value of an atomic operation.
    AtomicAcknowledge,
    /// Replaces eight bytes if they equal a value.
    CompareSwap,
    /// Adds to eight bytes.
    FetchAdd,
    /// Asks for data to be made visible or persistent.
    Flush,
    /// Replaces eight bytes at once.
    AtomicWrite,
    /// Asks a sender to slow down.
    Congestion,
    Unknown,
}

/// Which part of its message a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    First,
    Middle,
    Last,
    /// The message is one packet.
    Only,
}

#[derive(Debug)]
pub struct Opcode {
    /// The byte in the BTH.
    pub code: u8,
    /// Name with the service in front.
    pub name: &'static str,
    pub service: Service,
    pub operation: Operation,
    pub part: Part,
    /// The headers after the BTH, in order. The payload, if any, comes after them.
    pub headers: &'static [&'static Header],
}

impl Opcode {
    /// Whether a message begins with it.
    pub fn is_first(&self) -> bool {
        matches!(self.part, Part::First | Part::Only)
    }

    /// True for packets that answer a request. They carry a PSN of the opposite direction.
    pub fn is_response(&self) -> bool {
        matches!(self.operation, Operation::ReadResponse | Operation::Acknowledge | Operation::AtomicAcknowledge)
    }
}

static UNKNOWN: Opcode = Opcode {
    code: 0xff,
    name: "Unknown opcode",
    service: Service::Unknown,
    operation: Unknown,
    part: Only,
    headers: &[],
};

/// Where each operation code's row is in the table, or its length: every packet of a capture is looked up.
static ROWS: [usize; 256] = {
    let (mut rows, mut row) = ([TABLE.len(); 256], 0);
    while row < TABLE.len() {
        rows[TABLE[row].code as usize] = row;
        row += 1;
    }
    rows
};

/// The row of an operation code; a row named "Unknown opcode" for one that is not in the table.
pub fn lookup(code: u8) -> &'static Opcode {
    TABLE.get(ROWS[usize::from(code)]).unwrap_or(&UNKNOWN)
}

const fn row(
    code: u8,
    name: &'static str,
    operation: Operation,
    part: Part,
    headers: &'static [&'static Header],
) -> Opcode {
    let service = match code >> 5 {
        0 => Service::Rc,
        1 => Service::Uc,
        3 => Service::Ud,
        4 => Service::Cnp,
        5 => Service::Xrc,
        _ => Service::Unknown,
    };
    Opcode { code, name, service, operation, part, headers }
}

use Operation::*;
use Part::*;

/// Every operation code this tool decodes, in their order.
#[rustfmt::skip]
pub const TABLE: &[Opcode] = &[
    row(0x00, "RC Send First",                         Send,              First,  &[]),
    row(0x01, "RC Send Middle",                        Send,              Middle, &[]),
    row(0x02, "RC Send Last",                          Send,              Last,   &[]),
    row(0x03, "RC Send Last Immediate",                Send,              Last,   &[&IMM]),
    row(0x04, "RC Send Only",                          Send,              Only,   &[]),
    row(0x05, "RC Send Only Immediate",                Send,              Only,   &[&IMM]),
    row(0x06, "RC RDMA Write First",                   Write,             First,  &[&RETH]),
    row(0x07, "RC RDMA Write Middle",                  Write,             Middle, &[]),
    row(0x08, "RC RDMA Write Last",                    Write,             Last,   &[]),
    row(0x09, "RC RDMA Write Last Immediate",          Write,             Last,   &[&IMM]),
    row(0x0a, "RC RDMA Write Only",                    Write,             Only,   &[&RETH]),
    row(0x0b, "RC RDMA Write Only Immediate",          Write,             Only,   &[&RETH, &IMM]),
    row(0x0c, "RC RDMA Read Request",                  ReadRequest,       Only,   &[&RETH]),
    row(0x0d, "RC RDMA Read Response First",           ReadResponse,      First,  &[&AETH]),
    row(0x0e, "RC RDMA Read Response Middle",          ReadResponse,      Middle, &[]),
    row(0x0f, "RC RDMA Read Response Last",            ReadResponse,      Last,   &[&AETH]),
    row(0x10, "RC RDMA Read Response Only",            ReadResponse,      Only,   &[&AETH]),
    row(0x11, "RC Acknowledge",                        Acknowledge,       Only,   &[&AETH]),
    row(0x12, "RC Atomic Acknowledge",                 AtomicAcknowledge, Only,   &[&AETH, &ATOMIC_ACK]),
    row(0x13, "RC Compare Swap",                       CompareSwap,       Only,   &[&ATOMIC]),
    row(0x14, "RC Fetch Add",                          FetchAdd,          Only,   &[&ATOMIC]),
    row(0x16, "RC Send Last Invalidate",               Send,              Last,   &[&IETH]),
    row(0x17, "RC Send Only Invalidate",               Send,              Only,   &[&IETH]),
    row(0x1c, "RC Flush",                              Flush,             Only,   &[&FETH, &RETH]),
    row(0x1d, "RC Atomic Write",                       AtomicWrite,       Only,   &[&RETH]),
    row(0x20, "UC Send First",                         Send,              First,  &[]),
    row(0x21, "UC Send Middle",                        Send,              Middle, &[]),
    row(0x22, "UC Send Last",                          Send,              Last,   &[]),
    row(0x23, "UC Send Last Immediate",                Send,              Last,   &[&IMM]),
    row(0x24, "UC Send Only",                          Send,              Only,   &[]),
    row(0x25, "UC Send Only Immediate",                Send,              Only,   &[&IMM]),
    row(0x26, "UC RDMA Write First",                   Write,             First,  &[&RETH]),
    row(0x27, "UC RDMA Write Middle",                  Write,             Middle, &[]),
    row(0x28, "UC RDMA Write Last",                    Write,             Last,   &[]),
    row(0x29, "UC RDMA Write Last Immediate",          Write,             Last,   &[&IMM]),
    row(0x2a, "UC RDMA Write Only",                    Write,             Only,   &[&RETH]),
    row(0x2b, "UC RDMA Write Only Immediate",          Write,             Only,   &[&RETH, &IMM]),
    row(0x64, "UD Send Only",                          Send,              Only,   &[&DETH]),
    row(0x65, "UD Send Only Immediate",                Send,              Only,   &[&DETH, &IMM]),
    row(0x81, "CNP",                                   Congestion,        Only,   &[&CNP]),
    row(0xa0, "XRC Send First",                        Send,              First,  &[&XRC]),
    row(0xa1, "XRC Send Middle",                       Send,              Middle, &[&XRC]),
    row(0xa2, "XRC Send Last",                         Send,              Last,   &[&XRC]),
    row(0xa3, "XRC Send Last Immediate",               Send,              Last,   &[&XRC, &IMM]),
    row(0xa4, "XRC Send Only",                         Send,              Only,   &[&XRC]),
    row(0xa5, "XRC Send Only Immediate",               Send,              Only,   &[&XRC, &IMM]),
    row(0xa6, "XRC RDMA Write First",                  Write,             First,  &[&XRC, &RETH]),
    row(0xa7, "XRC RDMA Write Middle",                 Write,             Middle, &[&XRC]),
    row(0xa8, "XRC RDMA Write Last",                   Write,             Last,   &[&XRC]),
    row(0xa9, "XRC RDMA Write Last Immediate",         Write,             Last,   &[&XRC, &IMM]),
    row(0xaa, "XRC RDMA Write Only",                   Write,             Only,   &[&XRC, &RETH]),
    row(0xab, "XRC RDMA Write Only Immediate",         Write,             Only,   &[&XRC, &RETH, &IMM]),
    row(0xac, "XRC RDMA Read Request",                 ReadRequest,       Only,   &[&XRC, &RETH]),
    row(0xad, "XRC RDMA Read Response First",          ReadResponse,      First,  &[&AETH]),
    row(0xae, "XRC RDMA Read Response Middle",         ReadResponse,      Middle, &[]),
    row(0xaf, "XRC RDMA Read Response Last",           ReadResponse,      Last,   &[&AETH]),
    row(0xb0, "XRC RDMA Read Response Only",           ReadResponse,      Only,   &[&AETH]),
    row(0xb1, "XRC Acknowledge",                       Acknowledge,       Only,   &[&AETH]),
    row(0xb2, "XRC Atomic Acknowledge",                AtomicAcknowledge, Only,   &[&AETH, &ATOMIC_ACK]),
    row(0xb3, "XRC Compare Swap",                      CompareSwap,       Only,   &[&XRC, &ATOMIC]),
    row(0xb4, "XRC Fetch Add",                         FetchAdd,          Only,   &[&XRC, &ATOMIC]),
    row(0xb6, "XRC Send Last Invalidate",              Send,              Last,   &[&XRC, &IETH]),
    row(0xb7, "XRC Send Only Invalidate",              Send,              Only,   &[&XRC, &IETH]),
];

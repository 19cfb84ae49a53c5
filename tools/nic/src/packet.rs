//! A packet between two queue pairs: the Base Transport Header, the headers that its operation code calls for, and the
//! payload (specification, volume 1, 9.2 to 9.6). Which headers, and where each field lies, is `roce`'s tables.

use crate::psn::Psn;
use roce::bth;
use roce::field::{Field, Header};
use roce::headers::{aeth, atomic_ack_eth, atomic_eth, deth, feth, ieth, imm_dt, reth};
use roce::opcode::{self, Opcode, Operation, Part, Service};
pub use roce::packet::Aeth;

/// The operation code of each kind of packet that has no parts.
pub mod code {
    pub const READ_REQUEST: u8 = 0x0c;
    /// Without payload it answers FLUSH and ATOMIC WRITE, too.
    pub const READ_RESPONSE_ONLY: u8 = 0x10;
    /// RC Acknowledge: an ACK, an RNR NAK or a NAK.
    pub const ACKNOWLEDGE: u8 = 0x11;
    pub const ATOMIC_ACKNOWLEDGE: u8 = 0x12;
    pub const COMPARE_SWAP: u8 = 0x13;
    pub const FETCH_ADD: u8 = 0x14;
    pub const FLUSH: u8 = 0x1c;
    pub const ATOMIC_WRITE: u8 = 0x1d;
    /// UD Send Only, in which the connection manager's messages travel.
    pub const UD_SEND_ONLY: u8 = 0x64;
    /// Congestion notification packet (annex A17.9.3).
    pub const CNP: u8 = 0x81;
}

/// The default partition, and that we are a full member of it (10.9.1).
const DEFAULT_PARTITION: u64 = 0xffff;
/// The bit of a P_Key which says "full member".
const MEMBERSHIP: u64 = 0x8000;

/// RETH: memory at the responder (9.3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reth {
    pub va: u64,
    /// The key that opens it.
    pub rkey: u32,
    /// Bytes of the whole message.
    pub length: u32,
}

/// AtomicETH: eight bytes at the responder, and what to do with them (9.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtomicEth {
    pub va: u64,
    pub rkey: u32,
    /// What to add, or to put there.
    pub swap_add: u64,
    pub compare: u64,
}

/// FETH: what is to be flushed, and how far (annex A19).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feth {
    /// The bits of `ibv_placement_type`: visible to everybody 1, persistent 2.
    pub placement: u8,
    /// `ibv_selectivity_level`: the bytes of the RETH 0, the whole region 1.
    pub level: u8,
}

/// DETH: a datagram names its sender (9.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deth {
    /// The key of the receiving queue pair.
    pub qkey: u32,
    /// The sending queue pair.
    pub src_qp: u32,
}

/// A packet. Headers that the operation code does not call for are not sent, whatever stands here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// The traffic class, which is in the IP header: DSCP in the upper six bits, ECN in the lower two.
    pub class: u8,
    pub opcode: u8,
    /// The receiver's completion shall raise a solicited event.
    pub solicited: bool,
    /// BECN: what the receiver of this has sent met congestion.
    pub slow_down: bool,
    /// The sender wants an acknowledgement.
    pub ack_request: bool,
    pub dest_qp: u32,
    pub psn: Psn,
    pub reth: Reth,
    pub atomic: AtomicEth,
    pub feth: Feth,
    pub aeth: Aeth,
    /// AtomicAckETH: what stood there before.
    pub original: u64,
    /// ImmDt: four bytes for the receiver's completion.
    pub immediate: u32,
    pub deth: Deth,
    /// IETH: the receiver's key that becomes invalid (9.3).
    pub invalidate: u32,
    /// What follows the headers, without padding.
    pub payload: Vec<u8>,
}

/// A value of a packet, and the field of a header where it stands.
struct Value {
    header: &'static Header,
    field: Field,
    get: fn(&Packet) -> u64,
    set: fn(&mut Packet, u64),
}

const fn value(header: &'static Header, field: Field, get: fn(&Packet) -> u64, set: fn(&mut Packet, u64)) -> Value {
    Value { header, field, get, set }
}

/// All values but the payload and the traffic class: what is not among them is zero.
#[rustfmt::skip]
const VALUES: &[Value] = &[
    value(&bth::HEADER,            bth::OPCODE,              |p| p.opcode.into(),        |p, v| p.opcode = v as u8),
    value(&bth::HEADER,            bth::SE,                  |p| p.solicited.into(),     |p, v| p.solicited = v == 1),
    value(&bth::HEADER,            bth::BECN,                |p| p.slow_down.into(),     |p, v| p.slow_down = v == 1),
    value(&bth::HEADER,            bth::DEST_QP,             |p| p.dest_qp.into(),       |p, v| p.dest_qp = v as u32),
    value(&bth::HEADER,            bth::ACK_REQ,             |p| p.ack_request.into(),   |p, v| p.ack_request = v == 1),
    value(&bth::HEADER,            bth::PSN,                 |p| p.psn.get().into(),     |p, v| p.psn = Psn::new(v as u32)),
    value(&reth::HEADER,           reth::VA,                 |p| p.reth.va,              |p, v| p.reth.va = v),
    value(&reth::HEADER,           reth::R_KEY,              |p| p.reth.rkey.into(),     |p, v| p.reth.rkey = v as u32),
    value(&reth::HEADER,           reth::DMA_LENGTH,         |p| p.reth.length.into(),   |p, v| p.reth.length = v as u32),
    value(&atomic_eth::HEADER,     atomic_eth::VA,           |p| p.atomic.va,            |p, v| p.atomic.va = v),
    value(&atomic_eth::HEADER,     atomic_eth::R_KEY,        |p| p.atomic.rkey.into(),   |p, v| p.atomic.rkey = v as u32),
    value(&atomic_eth::HEADER,     atomic_eth::SWAP_ADD,     |p| p.atomic.swap_add,      |p, v| p.atomic.swap_add = v),
    value(&atomic_eth::HEADER,     atomic_eth::COMPARE,      |p| p.atomic.compare,       |p, v| p.atomic.compare = v),
    value(&feth::HEADER,           feth::PLACEMENT,          |p| p.feth.placement.into(), |p, v| p.feth.placement = v as u8),
    value(&feth::HEADER,           feth::SELECTIVITY,        |p| p.feth.level.into(),    |p, v| p.feth.level = v as u8),
    value(&aeth::HEADER,           aeth::SYNDROME,           |p| p.aeth.syndrome.into(), |p, v| p.aeth.syndrome = v as u8),
    value(&aeth::HEADER,           aeth::MSN,                |p| p.aeth.msn.into(),      |p, v| p.aeth.msn = v as u32),
    value(&atomic_ack_eth::HEADER, atomic_ack_eth::ORIGINAL, |p| p.original,             |p, v| p.original = v),
    value(&imm_dt::HEADER,         imm_dt::DATA,             |p| p.immediate.into(),     |p, v| p.immediate = v as u32),
    value(&ieth::HEADER,           ieth::R_KEY,              |p| p.invalidate.into(),    |p, v| p.invalidate = v as u32),
    value(&deth::HEADER,           deth::Q_KEY,              |p| p.deth.qkey.into(),     |p, v| p.deth.qkey = v as u32),
    value(&deth::HEADER,           deth::SRC_QP,             |p| p.deth.src_qp.into(),   |p, v| p.deth.src_qp = v as u32),
];

impl Packet {
    /// The operation code's row in the specification's table.
    pub fn row(&self) -> &'static Opcode {
        opcode::lookup(self.opcode)
    }

    /// Whether four bytes for the receiver's completion are in it.
    pub fn brings_immediate(&self) -> bool {
        has(self.row(), &imm_dt::HEADER)
    }

    /// Whether it is a SEND with invalidate.
    pub fn brings_invalidate(&self) -> bool {
        has(self.row(), &ieth::HEADER)
    }

    /// Bytes from the BTH to the padding: all that comes before the ICRC.
    pub fn encode(&self) -> Vec<u8> {
        let pad = self.payload.len().wrapping_neg() & 3;
        let headers = || [&bth::HEADER].into_iter().chain(self.row().headers.iter().copied());
        let length = headers().map(|header| header.length).sum::<usize>();
        let mut bytes = Vec::with_capacity(length + self.payload.len() + pad + roce::icrc::LENGTH);
        for header in headers() {
            let start = bytes.len();
            bytes.resize(start + header.length, 0);
            values_of(header).for_each(|value| put(&mut bytes[start..], &value.field, (value.get)(self)));
        }
        put(&mut bytes, &bth::PAD_CNT, pad as u64);
        put(&mut bytes, &bth::P_KEY, DEFAULT_PARTITION);
        bytes.extend_from_slice(&self.payload);
        bytes.resize(bytes.len() + pad, 0);
        bytes
    }

    /// Takes over what `roce` has read. None if the packet is shorter than its headers say, or than its padding; or if it
    /// is not of this version or this partition.
    pub fn decode(packet: &roce::Packet) -> Option<Packet> {
        let bytes = packet.datagram.ip;
        let needed = packet.payload_offset() + usize::from(packet.bth.pad_cnt) + roce::icrc::LENGTH;
        if packet.datagram.wire_length < needed || bytes.len() < packet.datagram.wire_length {
            return None;
        }
        // Version 0 of the transport, and the default partition, whose limited members we may talk to, too (9.6, 10.9.3).
        let header = bytes.get(packet.bth_offset()..)?;
        let partition = bth::P_KEY.read(header)? | MEMBERSHIP;
        if bth::T_VER.read(header)? != 0 || partition != DEFAULT_PARTITION {
            return None;
        }
        let class = packet.datagram.traffic_class();
        let mut decoded = Packet { class, payload: packet.payload().to_vec(), ..Packet::default() };
        for (start, header) in packet.headers() {
            for value in values_of(header) {
                (value.set)(&mut decoded, value.field.read(&bytes[start..])?);
            }
        }
        Some(decoded)
    }
}

fn values_of(header: &'static Header) -> impl Iterator<Item = &'static Value> {
    VALUES.iter().filter(move |value| value.header.name == header.name)
}

/// The operation code of one packet of a message. `extra` is the header of what it brings for the receiver's completion: an
/// immediate, or a key to be made invalid.
pub fn opcode_of(service: Service, operation: Operation, part: Part, extra: Option<&Header>) -> u8 {
    let fits_extra =
        |row: &Opcode, header: &Header| has(row, header) == extra.is_some_and(|extra| extra.name == header.name);
    let fits = |row: &&Opcode| {
        let parts = (row.service, row.operation, row.part) == (service, operation, part);
        parts && fits_extra(row, &imm_dt::HEADER) && fits_extra(row, &ieth::HEADER)
    };
    opcode::TABLE.iter().find(fits).map_or(0xff, |row| row.code)
}

/// Whether packets with this operation code have this header.
fn has(row: &Opcode, header: &Header) -> bool {
    row.headers.iter().any(|other| other.name == header.name)
}

/// Writes a field of a header that was all zeroes.
pub fn put(header: &mut [u8], field: &Field, value: u64) {
    let (first, end) = field.span();
    let unused_low_bits = end * 8 - field.bit - field.bits;
    let shifted = (value & (u64::MAX >> (64 - field.bits))) << unused_low_bits;
    for (byte, part) in header[first..end].iter_mut().rev().zip(shifted.to_le_bytes()) {
        *byte |= part;
    }
}

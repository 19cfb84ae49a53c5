//! A packet between two queue pairs: the Base Transport Header, the headers that its opcode calls for, and the payload
//! (specification, volume 1, 9.2 to 9.6). `roce` has the tables of which headers those are and where each field lies.

use crate::psn::Psn;
use roce::bth;
use roce::field::{Field, Header};
use roce::headers::{aeth, atomic_ack_eth, atomic_eth, deth, feth, ieth, imm_dt, reth};
use roce::opcode::{self, Opcode, Operation, Part, Service};
pub use roce::packet::Aeth;

/// The opcode of each kind of packet that isn't a part of a longer message.
pub mod code {
    pub const READ_REQUEST: u8 = 0x0c;
    /// Without a payload it also answers FLUSH and ATOMIC WRITE.
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
/// The bit of a P_Key that says "full member".
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
    /// The number to add, or the one to store.
    pub swap_add: u64,
    pub compare: u64,
}

/// FETH: what to flush, and how far (annex A19).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feth {
    /// The bits of `ibv_placement_type`: 1 for globally visible, 2 for persistent.
    pub placement: u8,
    /// `ibv_selectivity_level`: 0 for the bytes that the RETH names, 1 for the whole region.
    pub level: u8,
}

/// DETH: in a datagram, the sender has to name itself (9.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deth {
    /// The key of the receiving queue pair.
    pub qkey: u32,
    /// The sending queue pair.
    pub src_qp: u32,
}

/// A packet. Headers that its opcode doesn't call for aren't sent, whatever these fields hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// The traffic class, which is in the IP header: DSCP in the upper six bits, ECN in the lower two.
    pub class: u8,
    pub opcode: u8,
    /// The receiver's completion should raise an event even if its program only asked for solicited ones.
    pub solicited: bool,
    /// BECN: the packets that the receiver of this one has been sending have met congestion.
    pub slow_down: bool,
    /// The sender wants an acknowledgement.
    pub ack_request: bool,
    pub dest_qp: u32,
    pub psn: Psn,
    pub reth: Reth,
    pub atomic: AtomicEth,
    pub feth: Feth,
    pub aeth: Aeth,
    /// AtomicAckETH: what was there before.
    pub original: u64,
    /// ImmDt: four bytes for the receiver's completion.
    pub immediate: u32,
    pub deth: Deth,
    /// IETH: the key of the receiver's that becomes invalid (9.3).
    pub invalidate: u32,
    /// What follows the headers, without padding.
    pub payload: Vec<u8>,
}

/// A value of a packet, and the header field that carries it.
struct Value {
    header: &'static Header,
    field: Field,
    get: fn(&Packet) -> u64,
    set: fn(&mut Packet, u64),
}

const fn value(header: &'static Header, field: Field, get: fn(&Packet) -> u64, set: fn(&mut Packet, u64)) -> Value {
    Value { header, field, get, set }
}

/// All values except the payload and the traffic class. A field without a value here is sent as zero.
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
    /// The row for this opcode in the specification's table.
    pub fn row(&self) -> &'static Opcode {
        opcode::lookup(self.opcode)
    }

    /// Whether it brings an immediate, four bytes for the receiver's completion.
    pub fn brings_immediate(&self) -> bool {
        has(self.row(), &imm_dt::HEADER)
    }

    /// Whether it's a SEND with invalidate.
    pub fn brings_invalidate(&self) -> bool {
        has(self.row(), &ieth::HEADER)
    }

    /// The bytes from the BTH to the padding, which is everything before the ICRC.
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

    /// Takes over what `roce` has read. None if the packet is shorter than its headers or its padding say, or if it belongs to
    /// another version or another partition.
    pub fn decode(packet: &roce::Packet) -> Option<Packet> {
        let bytes = packet.datagram.ip;
        let needed = packet.payload_offset() + usize::from(packet.bth.pad_cnt) + roce::icrc::LENGTH;
        if packet.datagram.wire_length < needed || bytes.len() < packet.datagram.wire_length {
            return None;
        }
        // Version 0 of the transport, and the default partition, in which we may talk to limited members as well (9.6, 10.9.3).
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

/// The opcode of one packet of a message. `extra` is the header of what it brings for the receiver's completion, which is either
/// an immediate or a key to be made invalid.
pub fn opcode_of(service: Service, operation: Operation, part: Part, extra: Option<&Header>) -> u8 {
    let fits_extra =
        |row: &Opcode, header: &Header| has(row, header) == extra.is_some_and(|extra| extra.name == header.name);
    let fits = |row: &&Opcode| {
        let parts = (row.service, row.operation, row.part) == (service, operation, part);
        parts && fits_extra(row, &imm_dt::HEADER) && fits_extra(row, &ieth::HEADER)
    };
    opcode::TABLE.iter().find(fits).map_or(0xff, |row| row.code)
}

/// Whether packets with this opcode have this header.
fn has(row: &Opcode, header: &Header) -> bool {
    row.headers.iter().any(|other| other.name == header.name)
}

/// Writes a field whose bits are all zero so far.
pub fn put(header: &mut [u8], field: &Field, value: u64) {
    let (first, end) = field.span();
    let unused_low_bits = end * 8 - field.bit - field.bits;
    let shifted = (value & (u64::MAX >> (64 - field.bits))) << unused_low_bits;
    for (byte, part) in header[first..end].iter_mut().rev().zip(shifted.to_le_bytes()) {
        *byte |= part;
    }
}

//! A packet between two queue pairs: the Base Transport Header, the headers that its operation code calls for, and the
//! payload (specification, volume 1, 9.2 to 9.6). Which headers, and where each field lies, is `wire`'s tables.

use crate::psn::Psn;
use roce::bth;
use roce::field::{Field, Header};
use roce::headers::{aeth, atomic_ack_eth, atomic_eth, deth, ieth, imm_dt, reth};
use roce::opcode::{self, Opcode, Operation, Part, Service};

/// The operation code of each kind of packet that has no parts.
pub mod code {
    pub const READ_REQUEST: u8 = 0x0c;
    /// RC Acknowledge: an ACK, an RNR NAK or a NAK.
    pub const ACKNOWLEDGE: u8 = 0x11;
    pub const ATOMIC_ACKNOWLEDGE: u8 = 0x12;
    pub const COMPARE_SWAP: u8 = 0x13;
    pub const FETCH_ADD: u8 = 0x14;
    /// UD Send Only, in which the connection manager's messages travel.
    pub const UD_SEND_ONLY: u8 = 0x64;
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

impl Reth {
    fn encode(self, bytes: &mut [u8]) {
        put(bytes, &reth::VA, self.va);
        put(bytes, &reth::R_KEY, self.rkey.into());
        put(bytes, &reth::DMA_LENGTH, self.length.into());
    }
}

/// AtomicETH: eight bytes at the responder, and what to do with them (9.3.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtomicEth {
    /// Their address there.
    pub va: u64,
    /// The key that opens them.
    pub rkey: u32,
    /// What to add, or to put there.
    pub swap_add: u64,
    pub compare: u64,
}

impl AtomicEth {
    fn encode(self, bytes: &mut [u8]) {
        put(bytes, &atomic_eth::VA, self.va);
        put(bytes, &atomic_eth::R_KEY, self.rkey.into());
        put(bytes, &atomic_eth::SWAP_ADD, self.swap_add);
        put(bytes, &atomic_eth::COMPARE, self.compare);
    }
}

/// AETH: what the responder says (9.3.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aeth {
    /// What [`roce::aeth::Syndrome`] explains.
    pub syndrome: u8,
    /// Messages completed by the responder, modulo 2^24.
    pub msn: u32,
}

impl Aeth {
    fn encode(self, bytes: &mut [u8]) {
        put(bytes, &aeth::SYNDROME, self.syndrome.into());
        put(bytes, &aeth::MSN, self.msn.into());
    }
}

/// DETH: a datagram names its sender (9.3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deth {
    /// The key of the receiving queue pair.
    pub qkey: u32,
    /// The sending queue pair.
    pub src_qp: u32,
}

impl Deth {
    fn encode(self, bytes: &mut [u8]) {
        put(bytes, &deth::Q_KEY, self.qkey.into());
        put(bytes, &deth::SRC_QP, self.src_qp.into());
    }
}

/// A packet. Headers that the operation code does not call for are not sent, whatever stands here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    pub opcode: u8,
    /// The receiver's completion shall raise a solicited event.
    pub solicited: bool,
    /// The sender wants an acknowledgement.
    pub ack_request: bool,
    pub dest_qp: u32,
    pub psn: Psn,
    pub reth: Reth,
    pub atomic: AtomicEth,
    pub aeth: Aeth,
    /// AtomicAckETH: what stood there before.
    pub original: u64,
    /// ImmDt: four bytes for the receiver's completion.
    pub immediate: u32,
    pub deth: Deth,
    /// What follows the headers, without padding.
    pub payload: Vec<u8>,
}

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
        let extended = self.row().headers.iter().map(|header| header.length).sum::<usize>();
        let pad = self.payload.len().wrapping_neg() & 3;
        let mut bytes = vec![0; bth::HEADER.length + extended];
        bytes.reserve(self.payload.len() + pad + roce::icrc::LENGTH);
        self.encode_bth(&mut bytes, pad);
        let mut rest = &mut bytes[bth::HEADER.length..];
        for header in self.row().headers {
            let (bytes, after) = rest.split_at_mut(header.length);
            rest = after;
            self.encode_header(header, bytes);
        }
        bytes.extend_from_slice(&self.payload);
        bytes.resize(bytes.len() + pad, 0);
        bytes
    }

    fn encode_bth(&self, bytes: &mut [u8], pad: usize) {
        put(bytes, &bth::OPCODE, self.opcode.into());
        put(bytes, &bth::SE, self.solicited.into());
        put(bytes, &bth::PAD_CNT, pad as u64);
        put(bytes, &bth::P_KEY, DEFAULT_PARTITION);
        put(bytes, &bth::DEST_QP, self.dest_qp.into());
        put(bytes, &bth::ACK_REQ, self.ack_request.into());
        put(bytes, &bth::PSN, self.psn.get().into());
    }

    fn encode_header(&self, header: &Header, bytes: &mut [u8]) {
        const RETH: &str = reth::HEADER.name;
        const ATOMIC_ETH: &str = atomic_eth::HEADER.name;
        const AETH: &str = aeth::HEADER.name;
        const ATOMIC_ACK_ETH: &str = atomic_ack_eth::HEADER.name;
        const IMM_DT: &str = imm_dt::HEADER.name;
        const DETH: &str = deth::HEADER.name;
        match header.name {
            RETH => self.reth.encode(bytes),
            ATOMIC_ETH => self.atomic.encode(bytes),
            AETH => self.aeth.encode(bytes),
            ATOMIC_ACK_ETH => put(bytes, &atomic_ack_eth::ORIGINAL, self.original),
            IMM_DT => put(bytes, &imm_dt::DATA, self.immediate.into()),
            DETH => self.deth.encode(bytes),
            _ => {} // Headers of operations that this device does not send.
        }
    }

    /// Takes over what `wire` has read. None if the packet is shorter than its headers say, or than its padding; or if it
    /// is not of this version or this partition.
    pub fn decode(packet: &roce::Packet) -> Option<Packet> {
        let needed = packet.payload_offset() + usize::from(packet.bth.pad_cnt) + roce::icrc::LENGTH;
        if packet.datagram.wire_length < needed || packet.datagram.ip.len() < packet.datagram.wire_length {
            return None;
        }
        // Version 0 of the transport, and the default partition, whose limited members we may talk to, too (9.6, 10.9.3).
        let header = packet.datagram.ip.get(packet.bth_offset()..)?;
        let partition = bth::P_KEY.read(header)? | MEMBERSHIP;
        if bth::T_VER.read(header)? != 0 || partition != DEFAULT_PARTITION {
            return None;
        }
        let (va, rkey) = packet.remote().map_or((0, 0), |remote| (remote.va, remote.r_key));
        let atomic = packet.atomic_operands().map(|(swap_add, compare)| AtomicEth { va, rkey, swap_add, compare });
        let aeth = packet.aeth().map(|aeth| Aeth { syndrome: aeth.syndrome, msn: aeth.msn });
        Some(Packet {
            opcode: packet.bth.opcode,
            solicited: packet.bth.se,
            ack_request: packet.bth.ack_req,
            dest_qp: packet.bth.dest_qp,
            psn: Psn::new(packet.bth.psn),
            reth: packet.dma_length().map_or_else(Reth::default, |length| Reth { va, rkey, length }),
            atomic: atomic.unwrap_or_default(),
            aeth: aeth.unwrap_or_default(),
            original: packet.atomic_original().unwrap_or_default(),
            immediate: packet.immediate().unwrap_or_default(),
            deth: decode_deth(packet).unwrap_or_default(),
            payload: packet.payload().to_vec(),
        })
    }
}

fn decode_deth(packet: &roce::Packet) -> Option<Deth> {
    let (at, _) = packet.headers().find(|(_, header)| header.name == deth::HEADER.name)?;
    let bytes = packet.datagram.ip.get(at..)?;
    Some(Deth { qkey: deth::Q_KEY.read(bytes)? as u32, src_qp: deth::SRC_QP.read(bytes)? as u32 })
}

/// The operation code of one packet of a message over RC.
pub fn opcode_of(operation: Operation, part: Part, immediate: bool) -> u8 {
    let fits = |row: &&Opcode| {
        let parts = (row.service, row.operation, row.part) == (Service::Rc, operation, part);
        parts && has(row, &imm_dt::HEADER) == immediate && !has(row, &ieth::HEADER)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_message_has_its_operation_code() {
        let codes =
            |operation| [Part::First, Part::Middle, Part::Last, Part::Only].map(|p| opcode_of(operation, p, false));
        assert_eq!(codes(Operation::Send), [0x00, 0x01, 0x02, 0x04]);
        assert_eq!(codes(Operation::Write), [0x06, 0x07, 0x08, 0x0a]);
        assert_eq!(codes(Operation::ReadResponse), [0x0d, 0x0e, 0x0f, 0x10]);
        assert_eq!(opcode_of(Operation::Send, Part::Only, true), 0x05);
        assert_eq!(opcode_of(Operation::Write, Part::Last, true), 0x09);
    }
}

//! The RoCEv2 headers, field by field (InfiniBand Architecture Specification volume 1, chapter 9).
//!
//! `(byte, bit)` is where a field begins; then comes its width in bits. Everything is big-endian.

use crate::aeth::Syndrome;
use crate::field::{Field, Header};
use crate::opcode;

/// Base Transport Header: stands at the start of every RoCEv2 packet (9.2).
pub mod bth {
    use super::*;

    /// Which operation, and which part of a message, this packet is.
    pub const OPCODE: Field = Field::hex("OpCode", (0, 0), 8).means(|v| opcode::lookup(v as u8).name.into());
    /// The receiver's completion raises an event even if it only asked for solicited ones.
    pub const SE: Field = Field::dec("SE", (1, 0), 1).means(|v| on(v, "solicited event: wake the receiver"));
    /// Automatic path migration; SoftRoCE sends 0, hardware often 1.
    pub const MIG_REQ: Field = Field::dec("MigReq", (1, 1), 1);
    /// Bytes of padding after the payload, to a multiple of four.
    pub const PAD_CNT: Field = Field::dec("PadCnt", (1, 2), 2).means(pad_meaning);
    /// Version of the transport header.
    pub const T_VER: Field = Field::dec("TVer", (1, 4), 4);
    /// The partition that both ends belong to.
    pub const P_KEY: Field = Field::hex("P_Key", (2, 0), 16).means(p_key_meaning);
    /// Forward congestion notification. The ICRC counts this whole byte as ones.
    pub const FECN: Field = Field::dec("FECN", (4, 0), 1).means(|v| on(v, "congestion met on the way"));
    /// Backward congestion notification.
    pub const BECN: Field = Field::dec("BECN", (4, 1), 1).means(|v| on(v, "slow down: your packets met congestion"));
    /// Not used.
    pub const RESV6: Field = Field::dec("reserved", (4, 2), 6);
    /// The queue pair, at the receiver, this packet is for.
    pub const DEST_QP: Field = Field::hex("DestQP", (5, 0), 24).means(qp_meaning);
    /// The sender wants an acknowledgement of this packet. Only RC gives any: UD is never acknowledged, though SoftRoCE sets
    /// the bit in the datagrams of queue pair 1.
    pub const ACK_REQ: Field = Field::dec("AckReq", (8, 0), 1).means(|v| on(v, "acknowledge this (RC only)"));
    /// Not used.
    pub const RESV7: Field = Field::dec("reserved", (8, 1), 7);
    /// Packet sequence number, modulo 2^24.
    pub const PSN: Field = Field::dec("PSN", (9, 0), 24);

    /// The whole header.
    pub const HEADER: Header = Header::new("BTH", "Base Transport Header", 12, FIELDS);

    const FIELDS: &[Field] =
        &[OPCODE, SE, MIG_REQ, PAD_CNT, T_VER, P_KEY, FECN, BECN, RESV6, DEST_QP, ACK_REQ, RESV7, PSN];

    fn pad_meaning(count: u64) -> String {
        on(count, &format!("{count} zero bytes follow the payload"))
    }

    fn p_key_meaning(key: u64) -> String {
        if key == 0xffff {
            "default partition, full member".into()
        } else {
            String::new()
        }
    }

    fn qp_meaning(qp: u64) -> String {
        on(u64::from(qp == 1), "the general services QP: connection management")
    }
}

/// RDMA Extended Transport Header: where in the peer's memory (9.3.3).
pub mod reth {
    use super::*;

    /// Address in the responder's address space.
    pub const VA: Field = Field::hex("VirtualAddress", (0, 0), 64);
    /// The responder's permission slip for that memory.
    pub const R_KEY: Field = Field::hex("R_Key", (8, 0), 32);
    /// Bytes of the whole message, not of this packet.
    pub const DMA_LENGTH: Field = Field::dec("DMALength", (12, 0), 32).means(|_| "bytes of the whole message".into());

    /// The whole header.
    pub const HEADER: Header = Header::new("RETH", "RDMA Extended Transport Header", 16, &[VA, R_KEY, DMA_LENGTH]);
}

/// Atomic Extended Transport Header (9.3.4).
pub mod atomic_eth {
    use super::*;

    /// Address of eight bytes at the responder; a multiple of eight.
    pub const VA: Field = Field::hex("VirtualAddress", (0, 0), 64);
    /// The responder's permission slip for that memory.
    pub const R_KEY: Field = Field::hex("R_Key", (8, 0), 32);
    /// The number to add, or to put there if the comparison holds.
    pub const SWAP_ADD: Field = Field::hex("SwapAddData", (12, 0), 64);
    /// The number to compare with; unused by FetchAdd.
    pub const COMPARE: Field = Field::hex("CompareData", (20, 0), 64);

    /// The whole header.
    pub const HEADER: Header = Header::new("AtomicETH", "Atomic Extended Transport Header", 28, FIELDS);

    const FIELDS: &[Field] = &[VA, R_KEY, SWAP_ADD, COMPARE];
}

/// ACK Extended Transport Header (9.3.5).
pub mod aeth {
    use super::*;

    /// Accepted, not ready, or refused and why.
    pub const SYNDROME: Field = Field::hex("Syndrome", (0, 0), 8).means(|v| Syndrome::from(v as u8).to_string());
    /// Messages the responder has completed, modulo 2^24.
    pub const MSN: Field = Field::dec("MSN", (1, 0), 24).means(|v| format!("{v} messages completed"));

    /// The whole header.
    pub const HEADER: Header = Header::new("AETH", "ACK Extended Transport Header", 4, &[SYNDROME, MSN]);
}

/// Atomic ACK Extended Transport Header (9.5.3).
pub mod atomic_ack_eth {
    use super::*;

    /// What stood in the responder's memory before the operation.
    pub const ORIGINAL: Field = Field::hex("OriginalRemoteData", (0, 0), 64);

    /// The whole header.
    pub const HEADER: Header = Header::new("AtomicAckETH", "Atomic ACK Extended Transport Header", 8, &[ORIGINAL]);
}

/// Immediate data (9.3.6): four bytes that land in the receiver's completion.
pub mod imm_dt {
    use super::*;

    /// The four bytes.
    pub const DATA: Field = Field::hex("ImmediateData", (0, 0), 32);

    /// The whole header.
    pub const HEADER: Header = Header::new("ImmDt", "Immediate Data", 4, &[DATA]);
}

/// Invalidate Extended Transport Header (9.3.7).
pub mod ieth {
    use super::*;

    /// The receiver's key that becomes invalid.
    pub const R_KEY: Field = Field::hex("R_Key", (0, 0), 32);

    /// The whole header.
    pub const HEADER: Header = Header::new("IETH", "Invalidate Extended Transport Header", 4, &[R_KEY]);
}

/// Datagram Extended Transport Header (9.3.2): UD has no connection, so each packet names its sender.
pub mod deth {
    use super::*;

    /// Must equal the receiving QP's Q_Key.
    pub const Q_KEY: Field = Field::hex("Q_Key", (0, 0), 32).means(q_key_meaning);
    /// Not used.
    pub const RESV8: Field = Field::dec("reserved", (4, 0), 8);
    /// The queue pair that sent this datagram.
    pub const SRC_QP: Field = Field::hex("SrcQP", (5, 0), 24);

    /// The whole header.
    pub const HEADER: Header = Header::new("DETH", "Datagram Extended Transport Header", 8, &[Q_KEY, RESV8, SRC_QP]);

    fn q_key_meaning(key: u64) -> String {
        on(u64::from(key == 0x8001_0000), "the well-known key of QP 1")
    }
}

/// XRC Extended Transport Header (annex A14): for which shared receive queue a request is.
pub mod xrc_eth {
    use super::*;

    /// Not used.
    pub const RESV8: Field = Field::dec("reserved", (0, 0), 8);
    /// The receiver's shared receive queue.
    pub const XRC_SRQ: Field = Field::hex("XRCSRQ", (1, 0), 24);

    /// The whole header.
    pub const HEADER: Header = Header::new("XRCETH", "XRC Extended Transport Header", 4, &[RESV8, XRC_SRQ]);
}

/// FLUSH Extended Transport Header (annex A19).
pub mod feth {
    use super::*;

    /// Not used.
    pub const RESV26: Field = Field::hex("reserved", (0, 0), 26);
    /// A range, the whole region, or all.
    pub const SELECTIVITY: Field = Field::dec("SelectivityLevel", (3, 2), 2);
    /// Visible to others, persistent, or both.
    pub const PLACEMENT: Field = Field::hex("PlacementType", (3, 4), 4);

    /// The whole header.
    pub const HEADER: Header = Header::new("FETH", "FLUSH Extended Transport Header", 4, FIELDS);

    const FIELDS: &[Field] = &[RESV26, SELECTIVITY, PLACEMENT];
}

/// What follows the BTH of a congestion notification packet (annex A17.9.3): nothing but zeroes.
pub mod cnp {
    use super::*;

    /// The whole header.
    pub const HEADER: Header = Header::new("CNP", "Congestion Notification Packet", 16, FIELDS);

    const FIELDS: &[Field] = &[Field::bytes("reserved", 0, 16)];
}

/// `text` where a flag is set, else nothing.
fn on(flag: u64, text: &str) -> String {
    if flag == 0 {
        String::new()
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use crate::field::tests::assert_covered;

    #[test]
    fn every_bit_of_every_header_belongs_to_one_field() {
        for header in [
            super::bth::HEADER,
            super::reth::HEADER,
            super::atomic_eth::HEADER,
            super::aeth::HEADER,
            super::atomic_ack_eth::HEADER,
            super::imm_dt::HEADER,
            super::ieth::HEADER,
            super::deth::HEADER,
            super::cnp::HEADER,
            super::xrc_eth::HEADER,
            super::feth::HEADER,
        ] {
            assert_covered(&header);
        }
    }
}
